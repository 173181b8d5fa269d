"""Exceptions that were raised from one another, again and again, are looked at once each."""

from __future__ import annotations

import pytest

from anarchon.engine.error_text import MOST_CAUSES, loggable

LENGTH = 12
"""Of a chain, through which there are 2^12 ways."""
TOO_OFTEN = 1000


class LookedAtError(ValueError):
    """Counts how often its text is asked for."""

    times = 0

    def __str__(self) -> str:
        type(self).times += 1
        assert self.times < TOO_OFTEN, "it might never end"
        return "looked at"


@pytest.fixture(autouse=True)
def _anew() -> None:
    LookedAtError.times = 0


def raised_from(before: BaseException, *, group: bool) -> BaseException:
    """An exception that was raised from another: as its cause, and while it was handled."""
    try:
        try:
            raise before  # noqa: TRY301 - to be handled is the point
        except BaseException as error:
            if group:
                raise BaseExceptionGroup("again", [error, LookedAtError()]) from error
            raise LookedAtError from error
    except BaseException as error:  # noqa: BLE001 - a group of any
        return error


@pytest.mark.parametrize("group", [False, True], ids=["causes", "groups"])
def test_an_error_of_many_attempts_is_looked_at_once_for_each(group: bool) -> None:
    error: BaseException = LookedAtError()
    for _ in range(LENGTH):
        error = raised_from(error, group=group)
    told = loggable(error)
    assert told is not None
    assert told[1] is error
    assert LookedAtError.times <= 2 * (LENGTH + 1)


def test_an_error_of_more_attempts_than_are_written_out_is_told_without_them() -> None:
    error: BaseException = LookedAtError()
    for _ in range(MOST_CAUSES):
        error = raised_from(error, group=False)
    assert loggable(error) is None
    assert LookedAtError.times <= MOST_CAUSES + 1


def test_errors_that_cause_one_another_are_looked_at_once() -> None:
    first, second = LookedAtError(), LookedAtError()
    first.__cause__ = first.__context__ = second
    second.__cause__ = second.__context__ = first
    assert loggable(first) is not None
    assert LookedAtError.times == 2
