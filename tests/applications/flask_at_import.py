"""The Flask example, its scheduler started where the module is imported."""

from __future__ import annotations

from examples.flask_app import app, jobs

jobs.start()

__all__ = ["app"]
