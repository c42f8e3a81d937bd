"""Finding entries by an id, a key, a group or a tenant, in any state. The stores ask; what is asked for stands here.

Nothing reads a table through. What no index leads to is looked for among a bounded number of entries, and the answer
says where the look ended: keys and groups of MOST_PAIRS tenants, and tenants and groups of the newest LOOK_ROWS
entries that have ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from carrick.entry import Found, Line
from carrick.errors import InvalidInput

MOST_PAIRS = 5_000
"""In so many pairs of channel and tenant a key or a group is looked for when no tenant is given."""
LOOK_ROWS = 10_000
"""So many ended entries are looked at, over all channels and both states."""
LEAST_ROWS = 50
"""In each channel and state at least so many."""
MOST_ROWS = 200
LONGEST_TEXT = 255
NAME = re.compile(rf"[^\x00\ud800-\udfff]{{0,{LONGEST_TEXT}}}")
ENDED = ("find_dead", "find_delivered")

Pair = tuple[str, str]


class Asked(Protocol):
    """One view of a database. `ids` runs a query by name; None in its answer says that there is more behind."""

    def channels(self) -> list[str]:
        """The names of all channels."""

    def pairs(self, name: str, most: int) -> list[Pair]:
        """Channels and tenants that `find_keyed` or `find_grouped` steps through."""

    def among(self, name: str, pairs: Sequence[Pair], text: str, limit: int) -> list[UUID]:
        """What `find_key` or `find_group` finds of these tenants."""

    def ids(self, name: str, text: str, tenant: str | None, limit: int) -> list[UUID]:
        """What `find_tenant` or `find_claimed` finds."""

    def ended(self, name: str, channel: str, text: str, tenant: str | None, look: int, limit: int) -> list[UUID | None]:
        """What `find_dead` or `find_delivered` finds in a channel."""

    def lines(self, ids: Sequence[UUID]) -> list[Line]:
        """These entries, in any order."""


def find(asked: Asked, text: str, tenant: str | None, max_rows: int) -> Found:
    """What the text names: first by id and key, then what waits, is on its way, is dead, was delivered."""
    _check(text, tenant, max_rows)
    wanted = max_rows + 1  # one more tells whether there is more
    channels = asked.channels()
    keyed, keyed_whole = _pairs(asked, "find_keyed", channels, tenant)
    grouped, grouped_whole = _pairs(asked, "find_grouped", channels, tenant)
    found: dict[UUID, None] = dict.fromkeys(_as_id(text))
    found |= dict.fromkeys(asked.among("find_key", keyed, text, wanted))
    found |= dict.fromkeys(asked.among("find_group", grouped, text, wanted))
    for name in ("find_tenant", "find_claimed"):
        found |= dict.fromkeys(asked.ids(name, text, tenant, wanted))
    ended = [
        one
        for name in ENDED
        for channel in channels
        for one in asked.ended(name, channel, text, tenant, _look(channels), wanted + 1)
    ]
    found |= dict.fromkeys(one for one in ended if one is not None)
    there = {line.id: line for line in asked.lines(list(found))}
    lines = [there[one] for one in found if one in there]
    return Found(
        lines=tuple(lines[:max_rows]),
        cut=len(lines) > max_rows,
        tenants_unseen=not (keyed_whole and grouped_whole),
        ended_unseen=None in ended,
    )


def _check(text: str, tenant: str | None, max_rows: int) -> None:
    for field, value in (("text", text), ("tenant", tenant)):
        if value is not None and (not isinstance(value, str) or not NAME.fullmatch(value)):
            raise InvalidInput(field, f"{value!r:.80} names nothing", f"up to {LONGEST_TEXT} characters without NUL")
    if not text:
        raise InvalidInput("text", "is empty", "an entry's id, a key, a group or a tenant")
    if not isinstance(max_rows, int) or isinstance(max_rows, bool) or not 1 <= max_rows <= MOST_ROWS:
        raise InvalidInput("max_rows", f"{max_rows!r:.80} is out of range", f"1 to {MOST_ROWS}")


def _as_id(text: str) -> Iterable[UUID]:
    try:
        return [UUID(text)]
    except ValueError:
        return []  # then it is something else


def _pairs(asked: Asked, name: str, channels: Sequence[str], tenant: str | None) -> tuple[list[Pair], bool]:
    """Where to look, and whether that is everywhere."""
    if tenant is not None:
        return [(channel, tenant) for channel in channels], True
    found = asked.pairs(name, MOST_PAIRS + 1)
    return found[:MOST_PAIRS], len(found) <= MOST_PAIRS


def _look(channels: Sequence[str]) -> int:
    return max(LEAST_ROWS, LOOK_ROWS // (len(ENDED) * max(1, len(channels))))
