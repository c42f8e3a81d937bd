"""Short notes about people who are on their way through a sign-in: sealed, and found by a secret they carry."""

from __future__ import annotations

import logging
from typing import Generic, TypeVar

import msgspec

from carrick.state.kv import Kv
from carrick_scoreboard.sealing import KeyRing, Unreadable, digest

log = logging.getLogger("carrick.scoreboard.notes")

T = TypeVar("T")


class Notes(Generic[T]):
    """Notes of one kind. Nothing of them can be read in the database, nor the secret that leads to them."""

    def __init__(self, kv: Kv, keys: KeyRing, name: str, kind: type[T], *, seconds: float) -> None:
        self._kv = kv
        self._keys = keys
        self._name = name
        self._kind = kind
        self._seconds = seconds

    async def keep(self, secret: str, note: T) -> None:
        """Keep the note under the secret from now on, whatever was there."""
        key = self._key(secret)
        sealed = self._keys.seal(msgspec.json.encode(note).decode(), key)
        await self._kv.set(key, sealed, ttl=self._seconds)

    async def read(self, secret: str) -> T | None:
        """The note; None when there is none, no longer, or none that this release can read."""
        key = self._key(secret)
        return self._opened(key, await self._kv.get(key))

    async def take(self, secret: str) -> T | None:
        """The note, once: of many who try, one gets it."""
        key = self._key(secret)
        return self._opened(key, await self._kv.delete(key))

    def _key(self, secret: str) -> str:
        return f"{self._name}:{digest(secret)}"

    def _opened(self, key: str, sealed: bytes | None) -> T | None:
        if sealed is None:
            return None
        try:
            return msgspec.json.decode(self._keys.unseal(sealed, key), type=self._kind)
        except (Unreadable, msgspec.MsgspecError) as error:  # a key or a release that is gone: the person starts again
            log.warning("notes.unreadable", extra={"kind": self._name, "why": type(error).__name__})
            return None
