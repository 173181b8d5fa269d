"""What the jobs write down in the database."""

from __future__ import annotations

from django.db import models


class Work(models.Model):
    """An attempt at a run, by which process, and whether it came to its end."""

    job = models.CharField(max_length=100)
    slot = models.BigIntegerField()
    attempt = models.IntegerField()
    fence = models.BigIntegerField()
    trigger = models.CharField(max_length=20)
    pid = models.IntegerField()
    state = models.CharField(max_length=20, default="started")

    def __str__(self) -> str:
        return f"{self.job} at {self.slot}, attempt {self.attempt}: {self.state}"
