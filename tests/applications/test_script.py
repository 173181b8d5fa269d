"""Programs of their own: one that only runs jobs, and one that forgets to stop them."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.applications.support import (
    LEASE,
    Application,
    assert_each_slot_once,
    assert_in_time,
    wait_slots,
)
from tests.processes.support import assert_each_attempt_once

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

pytestmark = pytest.mark.processes


def test_two_scripts_share_the_runs(valkey9: Server, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "examples.script")
    with (
        Application(valkey9, tmp_path, command) as one,
        Application(valkey9, tmp_path, command) as other,
    ):
        pids = one.wait_instances(1) + other.wait_instances(1)
        wait_slots(one.log, "import_orders", 2)
        for app, number in ((one, signal.SIGTERM), (other, signal.SIGINT)):
            asked_at = app.send(number)
            assert app.wait_ended() == 0, app.output()
            assert_in_time(time.time() - asked_at, 3)
            app.assert_no_orphans()
            app.assert_quiet()
        assert_each_slot_once(one.log.read("start", job="refresh_prices"), 1)
        assert_each_attempt_once(one.log)
        assert {start["pid"] for start in one.log.read("start")} <= set(pids)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_runs_end_in_peace_when_the_program_ends(
    valkey9: Server, tmp_path: Path, host: str
) -> None:
    command = (sys.executable, "-m", "tests.applications.ends_by_itself")
    seconds = 1.5 * LEASE
    with Application(valkey9, tmp_path, command, host=host, seconds=seconds) as app:
        assert app.wait_ended() == 0
        app.assert_no_orphans()
        assert app.log.read("cut short") == []
        assert {end["job"] for end in app.log.read("end")} == {"plain", "slow"}
        assert "stopped " in app.output()
        app.assert_quiet()
