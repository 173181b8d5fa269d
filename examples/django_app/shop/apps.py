"""Starts the scheduler in the processes that serve requests, and in no other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "shop"

    def ready(self) -> None:
        from shop import jobs  # noqa: PLC0415 - models can be imported only now

        if serves():
            jobs.background.start()


def serves() -> bool:
    """Whether this process answers requests.

    The commands of manage.py do not (migrate, shell, test, and run_jobs, which runs the scheduler
    itself), except for runserver: there it is the child of the autoreloader that does.
    """
    if Path(sys.argv[0]).name not in {"manage.py", "django-admin"}:
        return True
    if sys.argv[1:2] != ["runserver"]:
        return False
    return os.environ.get("RUN_MAIN") == "true" or "--noreload" in sys.argv
