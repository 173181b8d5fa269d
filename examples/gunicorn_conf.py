"""Settings of gunicorn for the Flask example: a scheduler in each worker, from start to end.

This is right with and without --preload: a scheduler that was started before the fork would stay
behind in the master process.
"""

from __future__ import annotations


def post_worker_init(_worker: object) -> None:
    from examples.flask_app import jobs  # noqa: PLC0415 - not in the master: it has not forked yet

    jobs.start()


def worker_exit(_server: object, _worker: object) -> None:
    """Let running jobs end while the interpreter is whole; its exit would come to it too."""
    from examples.flask_app import jobs  # noqa: PLC0415 - as above

    jobs.stop()
