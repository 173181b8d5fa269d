"""As little as this application needs."""

from __future__ import annotations

import os

SECRET_KEY = "only an example"  # noqa: S105 - as it says
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["shop.apps.ShopConfig"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", "shop.sqlite3"),
        "OPTIONS": {"timeout": 20},
    }
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"short": {"format": "%(levelname)s:%(name)s:%(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "short"}},
    "loggers": {"anarchon": {"handlers": ["console"], "level": "INFO"}},
}

REDIS_URL = os.environ.get("REDIS_URL", "redis://localhost:6379")
