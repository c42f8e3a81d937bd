"""What `carrick drain --once` prints, and how it ends."""

from __future__ import annotations

import json

import pytest

from carrick.cli.drain import _report
from carrick.entry import ChannelStats
from carrick.relay.meter import Tally

HELD = ChannelStats(
    channel="events",
    pending_count=104_407,
    held_count=104_407,
    claimed_count=0,
    dead_count=0,
    backlog_bytes=0,
    oldest_pending_age_seconds=None,
    last_success_at=None,
    last_error_at=None,
    approximate=("pending_count", "held_count"),
)


def test_how_many_are_held_says_so_when_it_is_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert _report({"events": Tally()}, {"events": HELD}, as_json=False) == 1
    assert capsys.readouterr().out.endswith(", held about 104,000\n")
    assert _report({"events": Tally()}, {"events": HELD}, as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["held"], said["held_approximate"]) == ({"events": 104_407}, ["events"])
