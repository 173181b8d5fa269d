"""Writes the rows into docs/behaviour.md."""

from __future__ import annotations

from tests.behaviour.rows import PAGE, written

if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
