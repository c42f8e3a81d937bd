"""What `carrick drain --once` prints, and how it ends."""

from __future__ import annotations

import json

import msgspec
import pytest

from carrick.cli.drain import _printed
from carrick.entry import ChannelStats
from carrick.outbox.store import MOST_TROUBLED
from carrick.relay.meter import Tally
from carrick.relay.report import report

HELD = ChannelStats(
    channel="events",
    pending_count=104_407,
    held_count=104_407,
    claimed_count=0,
    dead_count=0,
    backlog_bytes=0,
    oldest_pending_age_seconds=None,
    delivered_per_second=0.0,
    last_success_at=None,
    last_error_at=None,
    approximate=("pending_count", "held_count"),
)


def test_how_many_are_held_says_so_when_it_is_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert _printed(report({"events": Tally()}, {"events": HELD}, {"events": 0}), as_json=False) == 1
    assert capsys.readouterr().out.endswith(", held about 104,000, troubled 0\n")
    assert _printed(report({"events": Tally()}, {"events": HELD}, {"events": 0}), as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["held"], said["held_approximate"]) == ({"events": 104_407}, ["events"])


NOTHING_HELD = msgspec.structs.replace(HELD, held_count=0, approximate=())


def test_what_was_tried_in_vain_before_this_run_is_left_because_of_errors(capsys: pytest.CaptureFixture[str]) -> None:
    stats, done = {"events": NOTHING_HELD}, {"events": Tally(claimed=1, delivered=1)}
    assert _printed(report(done, stats, {"events": 2}), as_json=False) == 1
    assert capsys.readouterr().out.endswith(", held 0, troubled 2\n")
    assert _printed(report(done, stats, {"events": 2}), as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["troubled"], said["failed"]) == ({"events": 2}, True)
    assert _printed(report(done, stats, {"events": 0}), as_json=False) == 0


def test_how_many_are_troubled_says_so_where_counting_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        _printed(report({"events": Tally()}, {"events": NOTHING_HELD}, {"events": MOST_TROUBLED}), as_json=False) == 1
    )
    assert capsys.readouterr().out.endswith(", troubled 10,000 or more\n")
