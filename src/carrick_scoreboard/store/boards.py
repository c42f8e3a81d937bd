"""Links to the live board of a section. The token in the link is kept as a digest."""

from __future__ import annotations

from datetime import datetime

import msgspec

from carrick_scoreboard.store.tables import Tables, first_of


class BoardLink(msgspec.Struct, frozen=True, kw_only=True):
    """Whose credential shows which section to whoever has the link."""

    section_id: int
    osm_user_id: int
    created_at: datetime


class Boards:
    """The links."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, token_digest: str, section_id: int, osm_user_id: int) -> None:
        """A new link."""
        with self._tables.writing() as ask:
            ask("board_add", token_digest=token_digest, section_id=section_id, osm_user_id=osm_user_id)

    def get(self, token_digest: str) -> BoardLink | None:
        """The link with that token, unless it was revoked."""
        with self._tables.reading() as ask:
            return first_of(ask("board_get", token_digest=token_digest), BoardLink)

    def revoke(self, token_digest: str, section_id: int) -> bool:
        """End a link of that section; False where there is none."""
        with self._tables.writing() as ask:
            return bool(ask("board_revoke", token_digest=token_digest, section_id=section_id))

    def tidy(self, *, days: int) -> int:
        """End and forget links that were made so many days ago; how many."""
        with self._tables.writing() as ask:
            return len(ask("board_prune", days=days))
