"""What OSM says to the whole application: blocks, which a person ends with a reason, and calls that it will end."""

from __future__ import annotations

from datetime import datetime

import msgspec

from carrick.errors import InvalidInput
from carrick_scoreboard.store.audit import write_audit
from carrick_scoreboard.store.tables import Tables, first_of, fitting, value_of

MAX_HEADER = 500
MAX_REASON = 500


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block. `header` is what OSM said. While it stands it has no end."""

    id: int
    blocked_at: datetime
    header: str
    cleared_at: datetime | None = None
    cleared_by: str | None = None
    reason: str | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A call that OSM will no longer answer, as it said last. `ends_at` is None where it named no date."""

    endpoint: str
    said: str
    ends_at: datetime | None
    noted_at: datetime

    @property
    def in_words(self) -> str:
        """Which call, and when."""
        return f"{self.endpoint}, " + (f"said {self.said!r}" if self.ends_at is None else f"{self.ends_at:%Y-%m-%d}")


class Blocks:
    """The book of blocks, of which at most one stands, and of endings."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def standing(self) -> Block | None:
        """The block that stands, if one does."""
        with self._tables.reading() as ask:
            return first_of(ask("block_standing"), Block)

    def note(self, header: str) -> bool:
        """OSM has blocked the application; whether that is news. Whatever it said can be written down."""
        with self._tables.writing() as ask:
            return bool(ask("block_note", header=fitting(header, MAX_HEADER)))

    def clear(self, actor: str, reason: str) -> Block | None:
        """End the block that stands, with an audit row; None where none does. Raises InvalidInput without a reason."""
        if not reason.strip() or not reason.isprintable() or len(reason) > MAX_REASON:
            raise InvalidInput("reason", f"{reason[:40]!r} is none", f"1 to {MAX_REASON} printable characters")
        with self._tables.writing() as ask:
            cleared = first_of(ask("block_clear", actor=actor, reason=reason), Block)
            if cleared is not None:
                detail = {"reason": reason, "block": cleared.id, "header": cleared.header}
                write_audit(ask, actor, "osm.unblock", "osm", detail)
            return cleared

    def latest(self, limit: int = 20) -> list[Block]:
        """The latest blocks, the newest first."""
        with self._tables.reading() as ask:
            return [value_of(row, Block) for row in ask("block_list", limit=limit)]

    def note_ending(self, endpoint: str, said: str, ends_at: datetime | None) -> None:
        """OSM will no longer answer that call."""
        with self._tables.writing() as ask:
            ask("ending_note", endpoint=endpoint, said=fitting(said, MAX_HEADER), ends_at=ends_at)

    def forget_ending(self, endpoint: str) -> None:
        """OSM says nothing of the kind any more."""
        with self._tables.writing() as ask:
            ask("ending_forget", endpoint=endpoint)

    def endings(self) -> list[Ending]:
        """The calls that OSM will end."""
        with self._tables.reading() as ask:
            return [value_of(row, Ending) for row in ask("ending_list")]
