"""Seals what must not be readable in a dump of the database: AES-GCM, with the name of the key beside it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carrick.errors import CarrickError

KEY_BYTES = 32
NONCE_BYTES = 12
VERSION = b"\x01"
KEY_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
KEYS_ACCEPTED = f"ID:BASE64 of {KEY_BYTES} random bytes each, no ID twice, the first one seals; `carrick keys new`"


class Unreadable(CarrickError):
    """Something sealed cannot be opened: its key is not in CARRICK_SECRET_KEYS, or it was altered."""


class Key:
    """One key: seals, opens and marks."""

    def __init__(self, key: bytes) -> None:
        self.sealing = AESGCM(key)
        self.marking = hmac.digest(key, b"carrick mark", "sha256")


class KeyRing:
    """Keys by name. The first one seals, all of them open."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("a key ring without a key")
        self._keys = {name: Key(key) for name, key in keys.items()}

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._known())})"

    @property
    def newest(self) -> str:
        """The name of the key that seals."""
        return next(iter(self._known()))

    def seal(self, plain: str, place: str) -> bytes:
        """The text, sealed for that place alone: what is moved to another place cannot be opened there."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        name, key = next(iter(self._known().items()))
        sealed = key.sealing.encrypt(nonce, plain.encode(), place.encode())
        return VERSION + bytes([len(name)]) + name.encode() + nonce + sealed

    def unseal(self, sealed: bytes, place: str) -> str:
        """The text that was sealed for that place. Raises Unreadable."""
        name, rest = _split(sealed)
        key = self._known().get(name)
        if key is None:
            raise Unreadable(f"sealed with key {name!r}, which is not in CARRICK_SECRET_KEYS")
        try:
            return key.sealing.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], place.encode()).decode()
        except InvalidTag:
            raise Unreadable(f"what was sealed with key {name!r} for {place} is not what was sealed") from None

    def is_newest(self, sealed: bytes) -> bool:
        """Whether it was sealed with the key that seals now. Raises Unreadable for what was not sealed at all."""
        return _split(sealed)[0] == self.newest

    def mark(self, text: str, place: str) -> str:
        """What only this ring can make of the text, for that place alone: who shows it has got it from here."""
        return _mark(next(iter(self._known().values())), text, place)

    def is_marked(self, mark: str, text: str, place: str) -> bool:
        """Whether one of the keys has made that mark. Takes as long for a wrong one."""
        given = mark.encode(errors="replace")
        return True in [hmac.compare_digest(_mark(key, text, place).encode(), given) for key in self._known().values()]

    def _known(self) -> Mapping[str, Key]:
        """The keys as they are now."""
        return self._keys


def _mark(key: Key, text: str, place: str) -> str:
    return hmac.new(key.marking, f"{place}\0{text}".encode(), "sha256").hexdigest()


def _split(sealed: bytes) -> tuple[str, bytes]:
    """The name of the key, and the rest."""
    length = sealed[1] if len(sealed) > 1 else 0
    if sealed[:1] != VERSION or len(sealed) < 2 + length + NONCE_BYTES:
        raise Unreadable("this was not sealed by this release")
    return sealed[2 : 2 + length].decode(errors="replace"), sealed[2 + length :]


def new_key() -> tuple[str, bytes]:
    """A fresh key and its name."""
    return f"k{secrets.token_hex(4)}", secrets.token_bytes(KEY_BYTES)


def key_text(name: str, key: bytes) -> str:
    """A key as it is written down, `ID:BASE64`."""
    return f"{name}:{base64.b64encode(key).decode()}"


def keys_in(items: list[str]) -> dict[str, bytes]:
    """Keys that were written down, in that order. Raises ValueError, showing no part of them."""
    keys = {}
    for item in items:
        name, _, encoded = item.partition(":")
        key = base64.b64decode(encoded, validate=True)
        if not KEY_NAME.fullmatch(name) or len(key) != KEY_BYTES or name in keys:
            raise ValueError(f"not a list of keys; accepted: {KEYS_ACCEPTED}")
        keys[name] = key
    return keys


def digest(secret: str) -> str:
    """What is kept of a token that only has to be recognised."""
    return hashlib.sha256(secret.encode()).hexdigest()


def short(secret: str) -> str:
    """How a device code may be named in a log: the first 8 digits of its digest."""
    return digest(secret)[:8]
