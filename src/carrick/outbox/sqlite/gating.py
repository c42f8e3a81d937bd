"""Gates: a closed gate holds a channel (`*`), a tenant or a principal; held entries are not touched (G7).

One that failures closed is half open when its time is up: `claiming` lets one entry go ahead to try.
"""

from __future__ import annotations

import random
import sqlite3

from carrick.entry import ClosedBy
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.moment import FOREVER, PER_SECOND, span
from carrick.outbox.wording import cleaned

MAX_REASON = 2_000


def close_gate(
    connection: sqlite3.Connection, channel: str, scope: str, seconds: float | None, reason: str, closed_by: ClosedBy
) -> None:
    """Close a gate for that long, or until opened. Raises UnknownChannel."""
    known_channel(connection, channel)
    ((now,),) = rows(connection, "now")
    until = FOREVER if seconds is None else now + span(seconds)
    said = cleaned(reason or "", MAX_REASON)
    rows(
        connection,
        "close_gate",
        channel=channel,
        scope=scope,
        now=now,
        closed_until=until,
        reason=said,
        closed_by=closed_by,
    )


def open_gate(connection: sqlite3.Connection, channel: str, scope: str, closed_by: ClosedBy | None) -> None:
    """Open a gate, and forget its failures. Raises UnknownChannel."""
    known_channel(connection, channel)
    rows(connection, "open_gate", channel=channel, scope=scope, closed_by=closed_by)


def fail_gate(
    connection: sqlite3.Connection, channel: str, scope: str, reason: str, cap_seconds: float, *, probe: bool
) -> float:
    """Count a failure and close the gate for longer; for how many seconds it is closed now. Raises UnknownChannel."""
    known_channel(connection, channel)
    ((now,),) = rows(connection, "now")
    rows(
        connection,
        "fail_gate",
        channel=channel,
        scope=scope,
        now=now,
        cap_seconds=cap_seconds,
        jitter=0.5 + random.random() / 2,  # noqa: S311  spread, not a secret
        reason=cleaned(reason or "", MAX_REASON),
        probe=probe,
    )
    ((until,),) = rows(connection, "gate_end", channel=channel, scope=scope)
    return float("inf") if until == FOREVER else (until - now) / PER_SECOND
