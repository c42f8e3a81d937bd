"""OSM credentials at rest: one row per user, tokens sealed; who refreshes them holds the row for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from carrick_scoreboard.store.tables import Tables, first_of, fitting, value_of

MAX_TEXT = 255


class StoredCredential(msgspec.Struct, frozen=True, kw_only=True):
    """One user's credential. `now_at` is the database's clock when it was read."""

    osm_user_id: int
    osm_user_name: str
    osm_email: str
    osm_access_token: bytes
    osm_refresh_token: bytes
    osm_token_expiry: datetime
    generation: int
    refreshing_by: str | None
    refresh_ends_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None
    now_at: datetime

    @property
    def left_seconds(self) -> float:
        """How long the access token is still good."""
        return (self.osm_token_expiry - self.now_at).total_seconds()


class SealedTokens(msgspec.Struct, frozen=True):
    """Tokens as they are kept, and how long the access token is good."""

    access: bytes
    refresh: bytes
    seconds: int


class UserOverview(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown of a credential."""

    osm_user_id: int
    osm_user_name: str
    osm_token_expiry: datetime
    generation: int
    revoked_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None


class SealedRow(msgspec.Struct, frozen=True):
    """The sealed tokens of one user, to be sealed again."""

    osm_user_id: int
    osm_access_token: bytes
    osm_refresh_token: bytes
    generation: int


class WritableSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section where a user may write."""

    id: int
    name: str
    group_name: str


class StoredCredentials:
    """The rows. A generation counts the tokens of a user: every change names the one it replaces."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def save(
        self,
        osm_user_id: int,
        name: str,
        email: str,
        tokens: SealedTokens,
        writable: Sequence[WritableSection] | None = None,
    ) -> bool:
        """What a sign-in gave; a revocation ends with it. `writable`: where it may write, None where it may not at all.

        False when the tokens that are there may write and these may not: they are kept.
        """
        with self._tables.writing() as ask:
            who = {"osm_user_name": fitting(name, MAX_TEXT), "osm_email": fitting(email, MAX_TEXT)}
            sections = msgspec.json.encode(writable or ()).decode()
            may = {"can_write": writable is not None, "osm_sections": sections}
            return bool(ask("credential_save", osm_user_id=osm_user_id, **who, **_given(tokens), **may))

    def writable(self, osm_user_id: int) -> list[WritableSection]:
        """The sections where a user may write, as their last sign-in said."""
        with self._tables.reading() as ask:
            rows = ask("credential_sections", osm_user_id=osm_user_id)
        return msgspec.json.decode(rows[0]["osm_sections"], type=list[WritableSection]) if rows else []

    def leaders_of(self, section_id: int) -> list[int]:
        """Who is signed in and may write to that section, as their last sign-in said."""
        with self._tables.reading() as ask:
            rows = ask("credential_sections_all")
        return [
            row["osm_user_id"]
            for row in rows
            if any(one.id == section_id for one in msgspec.json.decode(row["osm_sections"], type=list[WritableSection]))
        ]

    def clean(self, days: int) -> list[int]:
        """Forget credentials that nobody needs and nobody has used for so many days; whose."""
        with self._tables.writing() as ask:
            return [row["osm_user_id"] for row in ask("credential_clean", days=days)]

    def get(self, osm_user_id: int) -> StoredCredential | None:
        """The credential of that user."""
        with self._tables.reading() as ask:
            return first_of(ask("credential_get", osm_user_id=osm_user_id), StoredCredential)

    def begin_refresh(self, osm_user_id: int, generation: int, by: str, seconds: float) -> bool:
        """Take the refresh for a time; False when somebody else has it, or when it has been done."""
        with self._tables.writing() as ask:
            return bool(ask("credential_begin", osm_user_id=osm_user_id, generation=generation, by=by, seconds=seconds))

    def end_refresh(self, osm_user_id: int, generation: int, tokens: SealedTokens) -> bool:
        """What the refresh of that generation gave; False when there are newer tokens already."""
        with self._tables.writing() as ask:
            return bool(ask("credential_end", osm_user_id=osm_user_id, generation=generation, **_given(tokens)))

    def drop_refresh(self, osm_user_id: int, by: str) -> None:
        """Give back a refresh that came to nothing."""
        with self._tables.writing() as ask:
            ask("credential_drop", osm_user_id=osm_user_id, by=by)

    def revoke(self, osm_user_id: int, generation: int) -> bool:
        """OSM no longer accepts the tokens of that generation; whether that is news."""
        with self._tables.writing() as ask:
            return bool(ask("credential_revoke", osm_user_id=osm_user_id, generation=generation))

    def used(self, osm_user_id: int) -> None:
        """The credential was used."""
        with self._tables.writing() as ask:
            ask("credential_used", osm_user_id=osm_user_id)

    def overview(self) -> list[UserOverview]:
        """All users, without what is secret."""
        with self._tables.reading() as ask:
            return [value_of(row, UserOverview) for row in ask("credential_list")]

    def count_active(self) -> int:
        """How many users' sign-ins are good."""
        with self._tables.reading() as ask:
            return int(ask("credential_count")[0]["active"])

    def sealed(self, after: int, limit: int = 100) -> list[SealedRow]:
        """The sealed tokens of users with a higher id than that."""
        with self._tables.reading() as ask:
            return [value_of(row, SealedRow) for row in ask("credential_sealed", after=after, limit=limit)]

    def all_sealed(self) -> Iterator[SealedRow]:
        """The sealed tokens of all users."""
        after = 0
        while rows := self.sealed(after):
            yield from rows
            after = rows[-1].osm_user_id

    def reseal(self, osm_user_id: int, generation: int, access: bytes, refresh: bytes) -> bool:
        """The same tokens under another key; False when they were replaced meanwhile."""
        with self._tables.writing() as ask:
            given = {"osm_access_token": access, "osm_refresh_token": refresh}
            return bool(ask("credential_reseal", osm_user_id=osm_user_id, generation=generation, **given))


def _given(tokens: SealedTokens) -> dict[str, bytes | int]:
    return {"osm_access_token": tokens.access, "osm_refresh_token": tokens.refresh, "seconds": tokens.seconds}
