"""``manage.py run_jobs``: the scheduler as a process of its own, without the web application."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from shop.jobs import scheduler


class Command(BaseCommand):
    help = "Run the jobs until SIGTERM or Ctrl-C."

    def handle(self, *args: object, **options: object) -> None:  # noqa: ARG002 - Django's words
        scheduler.run()
