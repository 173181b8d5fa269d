"""The table of the jobs' work."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations: ClassVar = [
        migrations.CreateModel(
            name="Work",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("job", models.CharField(max_length=100)),
                ("slot", models.BigIntegerField()),
                ("attempt", models.IntegerField()),
                ("fence", models.BigIntegerField()),
                ("trigger", models.CharField(max_length=20)),
                ("pid", models.IntegerField()),
                ("state", models.CharField(default="started", max_length=20)),
            ],
        ),
    ]
