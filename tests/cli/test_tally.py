"""The judge of the demo, on records made up for it: each thing that can be wrong is seen."""

from __future__ import annotations

import pytest

from anarchon.cli.demo.records import Kind, Record, record_of_line
from anarchon.cli.demo.tally import Slot, Tally, Terms, judge, lives_of

LEASE = 2000
A, B = Slot("a", 10_000), Slot("a", 12_000)


def body(  # noqa: PLR0913 - what a body says
    slot: Slot,
    start: int,
    end: int | None = None,
    how: Kind = Kind.DONE,
    *,
    pid: int = 1,
    attempt: int = 1,
) -> list[Record]:
    """Return what one body says: that it began, and if it came to that, how it ended."""
    began = Record(Kind.BEGAN, pid, start, slot.job, slot.time, attempt)
    if end is None:
        return [began]
    return [began, Record(how, pid, end, slot.job, slot.time, attempt)]


def verdict(
    records: list[Record],
    due: tuple[Slot, ...] = (A,),
    skipped: tuple[Slot, ...] = (),
    deaths: dict[int, int] | None = None,
    broken_off: int | None = None,
) -> Tally:
    return judge(due, lives_of(records, deaths or {}), skipped, Terms(LEASE, broken_off=broken_off))


def test_a_slot_that_one_body_finished_is_fine() -> None:
    tally = verdict(body(A, 10_005, 10_100))
    assert tally.line() == "slots 1, doubled 0, lost 0, taken over 0"
    assert tally.done == {A}


def test_a_slot_that_nobody_began_is_lost() -> None:
    tally = verdict(body(A, 10_005, 10_100), due=(A, B))
    assert tally.lost == {B: "never begun"}
    assert tally.line() == "slots 2, doubled 0, lost 1, taken over 0"


@pytest.mark.parametrize("how", [Kind.FAILED, Kind.STOPPED])
def test_a_slot_that_nobody_finished_is_lost(how: Kind) -> None:
    assert verdict(body(A, 10_005, 10_100, how)).lost == {A: "begun, but never finished"}
    assert verdict(body(A, 10_005)).lost == {A: "begun, but never finished"}


def test_two_bodies_that_finished_one_slot_are_seen_also_one_after_the_other() -> None:
    tally = verdict(body(A, 10_005, 10_100) + body(A, 14_000, 14_100, pid=2, attempt=2))
    assert tally.doubled == {A: "finished 2 times"}
    assert tally.line() == "slots 1, doubled 1, lost 0, taken over 0"


def test_an_attempt_that_began_twice_is_seen() -> None:
    records = body(A, 10_005, 10_100, Kind.FAILED) + body(A, 10_200, 10_300, pid=2)
    assert verdict(records).doubled == {A: "the same attempt began twice"}


def test_two_bodies_at_once_are_seen() -> None:
    records = body(A, 10_000, 11_000, Kind.FAILED) + body(A, 10_999, 12_000, pid=2, attempt=2)
    assert verdict(records).doubled == {A: "two bodies at once"}


def test_a_body_that_has_not_ended_counts_as_alive() -> None:
    records = body(A, 10_000) + body(A, 15_000, 16_000, pid=2, attempt=2)
    assert verdict(records).doubled == {A: "two bodies at once"}


def test_doubled_is_seen_also_where_nothing_was_due() -> None:
    records = body(B, 12_000, 12_100) + body(B, 12_000, 12_100, pid=2)
    assert verdict(records, due=()).doubled == {B: "finished 2 times"}


def test_a_takeover_from_a_killed_process_is_counted_and_fine() -> None:
    records = body(A, 10_000) + body(A, 13_000, 14_000, pid=2, attempt=2)
    tally = verdict(records, deaths={1: 11_000})
    assert tally.line() == "slots 1, doubled 0, lost 0, taken over 1"
    assert tally.taken_over == {A}


def test_a_takeover_before_the_process_was_killed_is_doubled() -> None:
    records = body(A, 10_000) + body(A, 10_900, 14_000, pid=2, attempt=2)
    assert verdict(records, deaths={1: 11_000}).doubled == {A: "two bodies at once"}


def test_a_killed_run_that_nobody_took_over_is_lost() -> None:
    tally = verdict(body(A, 10_000), deaths={1: 11_000})
    assert tally.line() == "slots 1, doubled 0, lost 1, taken over 0"


def test_a_run_won_by_a_process_that_died_before_its_body_began_is_taken_over() -> None:
    tally = verdict(body(A, 13_000, 14_000, pid=2, attempt=2), deaths={1: 10_001})
    assert tally.taken_over == {A}


def test_a_body_on_its_way_out_may_overlap_the_one_that_took_over() -> None:
    stopped = body(A, 10_000, 13_050, Kind.STOPPED)
    tally = verdict(stopped + body(A, 13_000, 14_000, pid=2, attempt=2))
    assert tally.line() == "slots 1, doubled 0, lost 0, taken over 1"


def test_a_retry_is_no_takeover() -> None:
    failed = body(A, 10_000, 10_100, Kind.FAILED)
    tally = verdict(failed + body(A, 10_400, 10_500, pid=2, attempt=2))
    assert tally.line() == "slots 1, doubled 0, lost 0, taken over 0"
    assert tally.retried == {A}


def test_a_slot_skipped_during_another_run_is_not_counted() -> None:
    tally = verdict(body(A, 10_000, 13_000), due=(A, B), skipped=(B,))
    assert tally.line() == "slots 1, doubled 0, lost 0, taken over 0"
    assert tally.skipped == {B}


def test_a_slot_skipped_while_a_dead_process_held_the_lease_is_not_counted() -> None:
    records = body(A, 10_000) + body(A, 13_500, 14_000, pid=2, attempt=2)
    tally = verdict(records, due=(A, B), skipped=(B,), deaths={1: 11_000})
    assert tally.skipped == {B}
    assert tally.lost == {}


def test_a_slot_skipped_without_another_run_is_lost() -> None:
    late = Slot("a", 20_000)
    other_job = body(Slot("b", 20_000), 20_000, 25_000)
    records = body(A, 10_000, 10_100) + other_job
    tally = verdict(records, due=(A, late), skipped=(late,))
    assert tally.lost == {late: "skipped, although no other run of the job was at work"}
    assert tally.line() == "slots 2, doubled 0, lost 1, taken over 0"


def test_a_slot_called_skipped_that_began_all_the_same_must_be_finished() -> None:
    assert verdict(body(A, 10_000), skipped=(A,)).lost == {A: "begun, but never finished"}


def test_what_was_under_way_when_it_was_broken_off_is_not_lost() -> None:
    due = (A, B, Slot("a", 18_000), Slot("a", 19_500))
    records = body(A, 10_000, 10_100) + body(Slot("a", 18_000), 18_000)
    tally = verdict(records, due=due, broken_off=20_000)
    assert tally.lost == {B: "never begun"}
    assert tally.open == {due[2], due[3]}
    assert tally.line() == "slots 2, doubled 0, lost 1, taken over 0"


def test_the_clock_of_the_host_may_be_ahead_of_the_stores() -> None:
    # By the host's clock everything happens an hour later.
    hour = 3_600_000
    records = body(A, 10_000 + hour, 13_000 + hour)
    tally = judge((A, B), lives_of(records, {}), {B}, Terms(LEASE, ahead=hour))
    assert tally.skipped == {B}
    assert tally.lost == {}


def test_a_record_survives_the_pipe() -> None:
    record = Record(Kind.BEGAN, 4711, 1_800_000_000_123, "tägliche Arbeit", 1_800_000_000_000, 2)
    assert record_of_line(record.line()) == record
    assert record.line().count(b"\n") == 1


@pytest.mark.parametrize("line", [b"", b"hello", b"[]", b"{}", b'["up"]', b"7", b'["on",1,2]'])
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        record_of_line(line)
