"""Seals all credentials again with the newest key, beside services that run."""

from __future__ import annotations

from typing import Literal

import msgspec

from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.sealing import KeyRing, Unreadable
from carrick_scoreboard.store.credentials import SealedRow, StoredCredentials


class Resealed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the credentials of all users; `unreadable` are users whose key is not there any more."""

    key: str
    users: int
    resealed: int
    current: int
    """Those that were sealed with the newest key before."""
    unreadable: list[int]


def reseal_all(stored: StoredCredentials, keys: KeyRing) -> Resealed:
    """Seal everything with the newest key. What a service replaces meanwhile is looked at again."""
    resealed: set[int] = set()
    while True:
        outcomes = {row.osm_user_id: _reseal(stored, keys, row) for row in stored.all_sealed()}
        resealed |= {user for user, outcome in outcomes.items() if outcome == "resealed"}
        if "replaced" not in outcomes.values():
            unreadable = [user for user, outcome in outcomes.items() if outcome == "unreadable"]
            return Resealed(
                key=keys.newest,
                users=len(outcomes.keys() | resealed),
                resealed=len(resealed),
                current=len(outcomes.keys() - resealed) - len(unreadable),
                unreadable=unreadable,
            )


def _reseal(
    stored: StoredCredentials, keys: KeyRing, row: SealedRow
) -> Literal["current", "resealed", "replaced", "unreadable"]:
    user = row.osm_user_id
    try:
        if keys.is_newest(row.osm_access_token) and keys.is_newest(row.osm_refresh_token):
            return "current"
        access, refresh = place_of(user, "access"), place_of(user, "refresh")
        new_access = keys.seal(keys.unseal(row.osm_access_token, access), access)
        new_refresh = keys.seal(keys.unseal(row.osm_refresh_token, refresh), refresh)
    except Unreadable:
        return "unreadable"
    return "resealed" if stored.reseal(user, row.generation, new_access, new_refresh) else "replaced"
