"""Everything is sealed with the newest key, also what a service replaces in the middle of it."""

from __future__ import annotations

from pathlib import Path

from carrick import wiring as carrick_wiring
from carrick_scoreboard import wiring
from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.resealing import reseal_all
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.store.credentials import SealedRow, SealedTokens, StoredCredentials

OLD, NEW = {"old": b"o" * 32}, {"new": b"n" * 32}


def sealed(keys: KeyRing, user: int, token: str) -> SealedTokens:
    return SealedTokens(keys.seal(token, place_of(user, "access")), keys.seal(token, place_of(user, "refresh")), 3600)


class Busy(StoredCredentials):
    """A service refreshes right after the row was read, and seals with the key that it knew."""

    refreshed = False

    def sealed(self, after: int, limit: int = 100) -> list[SealedRow]:
        rows = super().sealed(after, limit)
        if rows and not self.refreshed:
            self.refreshed = True
            self.end_refresh(7, 1, sealed(KeyRing(OLD), 7, "refreshed"))
        return rows


def test_what_was_replaced_in_the_middle_is_sealed_again_too(sqlite_path: Path) -> None:
    carrick_wiring.migrate(f"sqlite:///{sqlite_path}")
    with wiring.opened_tables(f"sqlite:///{sqlite_path}") as tables:
        stored = Busy(tables)
        stored.save(7, "Ann", "", sealed(KeyRing(OLD), 7, "first"))
        done = reseal_all(stored, KeyRing({**NEW, **OLD}))
        assert (done.users, done.resealed, done.current, done.unreadable) == (1, 1, 0, [])
        row = stored.get(7)
        assert row is not None
        assert KeyRing(NEW).unseal(row.osm_access_token, place_of(7, "access")) == "refreshed"


def test_tokens_that_were_moved_to_another_user_are_not_opened(sqlite_path: Path) -> None:
    carrick_wiring.migrate(f"sqlite:///{sqlite_path}")
    with wiring.opened_tables(f"sqlite:///{sqlite_path}") as tables:
        stored = StoredCredentials(tables)
        stored.save(8, "Bob", "", sealed(KeyRing(OLD), 7, "Ann's"))
        assert reseal_all(stored, KeyRing({**NEW, **OLD})).unreadable == [8]
