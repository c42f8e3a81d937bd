"""Lists of entries, page by page. The stores find the rows behind a place; what a page and its cursor are stands here.

A list goes state by state in the order of an entry's life, so that an entry that moves on meanwhile is rather seen
twice than missed. A cursor is a place in such a list, as text. It belongs to the list it was given for.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec

from carrick.entry import Line, Page, State
from carrick.errors import InvalidInput

SECTIONS = (State.PENDING, State.CLAIMED, State.DEAD, State.DELIVERED)
MOST_ROWS = 1000
LOOK_ROWS = 5000
"""How many ended entries one page looks at for those of one tenant; then it ends, short, with a cursor."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where an entry stands in the list of its state; `at` is a rank or a time, in microseconds since 1970.

    Waiting and claimed entries: seq. Ended ones: when they ended, seq.
    """

    tenant_id: str
    at: Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)] | None
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

    @property
    def moment(self) -> datetime | None:
        """`at` as a datetime."""
        return None if self.at is None else EPOCH + self.at * MICROSECOND


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A place in the list that was asked for."""

    channel: str
    state: State | None
    tenant: str | None
    section: State
    place: Place


class Seen(NamedTuple):
    """An entry that was looked at. Without a line it belongs to another tenant and only marks how far the look went."""

    line: Line | None
    place: Place


class Looked(NamedTuple):
    """What a store is asked for: entries of a state behind a place, at most `rows`, out of the next `look`."""

    channel: str
    tenant: str | None
    section: State
    after: Place
    rows: int
    look: int


def page(
    look: Callable[[Looked], list[Seen]],
    channel: str,
    *,
    state: State | None,
    tenant: str | None,
    max_rows: int,
    after: str | None,
) -> Page:
    """One page of a list. Raises InvalidInput for a cursor of another list and for more rows than a page may have."""
    if not isinstance(max_rows, int) or isinstance(max_rows, bool) or not 1 <= max_rows <= MOST_ROWS:
        raise InvalidInput("max_rows", f"{max_rows!r:.80} is out of range", f"1 to {MOST_ROWS}")
    sections: tuple[State, ...] = SECTIONS if state is None else (State(state),)
    place = Place(tenant or "", None, 0)
    if after is not None:
        cursor = _read(after, channel, state, tenant)
        sections, place = sections[sections.index(cursor.section) :], cursor.place
    lines: list[Line] = []
    for section in sections:
        wanted = max_rows - len(lines) + 1  # one more tells whether there is more
        seen = look(Looked(channel, tenant, section, place, wanted, wanted if tenant is None else LOOK_ROWS))
        shown = seen[: wanted - 1]
        lines += [entry.line for entry in shown if entry.line is not None]
        if len(seen) >= wanted or any(entry.line is None for entry in seen):
            last = shown[-1].place if shown else place
            return Page(lines=tuple(lines), next=_write(Cursor(channel, state, tenant, section, last)))
        place = Place(tenant or "", None, 0)
    return Page(lines=tuple(lines), next=None)


def _write(cursor: Cursor) -> str:
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _read(text: str, channel: str, state: State | None, tenant: str | None) -> Cursor:
    accepted = "None, or the `next` of a page of the same channel, state and tenant"
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except (TypeError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise InvalidInput("after", f"{text!r:.80} is no cursor ({error})", accepted) from None
    belongs = (cursor.channel, cursor.state, cursor.tenant) == (channel, state, tenant)
    if not belongs or (state is not None and cursor.section != state) or "\x00" in cursor.place.tenant_id:
        raise InvalidInput("after", f"{text!r:.80} is the cursor of another list", accepted)
    return cursor
