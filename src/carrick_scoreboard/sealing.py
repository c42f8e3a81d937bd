"""Seals what must not be readable in a dump of the database: AES-GCM, with the name of the key beside it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carrick.errors import CarrickError, SettingsError

KEY_BYTES = 32
NONCE_BYTES = 12
VERSION = b"\x01"


class Unreadable(CarrickError):
    """Something sealed cannot be opened: its key is not in CARRICK_SECRET_KEYS, or it was altered."""


class KeyRing:
    """Keys by name. The first one seals, all of them open."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("a key ring without a key")
        self._keys = {name: AESGCM(key) for name, key in keys.items()}
        self._marking = {name: hmac.digest(key, b"carrick mark", "sha256") for name, key in keys.items()}
        self.newest = next(iter(keys))

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    def seal(self, plain: str, place: str) -> bytes:
        """The text, sealed for that place alone: what is moved to another place cannot be opened there."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        name = self.newest.encode()
        sealed = self._keys[self.newest].encrypt(nonce, plain.encode(), place.encode())
        return VERSION + bytes([len(name)]) + name + nonce + sealed

    def unseal(self, sealed: bytes, place: str) -> str:
        """The text that was sealed for that place. Raises Unreadable."""
        name, rest = _split(sealed)
        key = self._keys.get(name)
        if key is None:
            raise Unreadable(f"sealed with key {name!r}, which is not in CARRICK_SECRET_KEYS")
        try:
            return key.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], place.encode()).decode()
        except InvalidTag:
            raise Unreadable(f"what was sealed with key {name!r} for {place} is not what was sealed") from None

    def is_newest(self, sealed: bytes) -> bool:
        """Whether it was sealed with the key that seals now."""
        return _split(sealed)[0] == self.newest

    def mark(self, text: str, place: str) -> str:
        """What only this ring can make of the text, for that place alone: who shows it has got it from here."""
        return _mark(self._marking[self.newest], text, place)

    def is_marked(self, mark: str, text: str, place: str) -> bool:
        """Whether one of the keys has made that mark. Takes as long for a wrong one."""
        given = mark.encode(errors="replace")
        return True in [hmac.compare_digest(_mark(key, text, place).encode(), given) for key in self._marking.values()]


def _mark(key: bytes, text: str, place: str) -> str:
    return hmac.new(key, f"{place}\0{text}".encode(), "sha256").hexdigest()


def _split(sealed: bytes) -> tuple[str, bytes]:
    """The name of the key, and the rest."""
    length = sealed[1] if len(sealed) > 1 else 0
    if sealed[:1] != VERSION or len(sealed) < 2 + length + NONCE_BYTES:
        raise Unreadable("this was not sealed by this release")
    return sealed[2 : 2 + length].decode(errors="replace"), sealed[2 + length :]


def own_keys(path: Path) -> KeyRing:
    """The keys in a file beside an embedded database, made when it is not there. Raises SettingsError."""
    try:
        if not path.exists():
            _make_key(path)
        return KeyRing({"own": _decoded(path.read_text(encoding="ascii"))})
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "not a key"
        raise SettingsError(f"{path} cannot be used: {said}; or set CARRICK_SECRET_KEYS") from None


def _make_key(path: Path) -> None:
    """A new key under that name, whole from the first moment; of two that make one, the first to come wins."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _decoded(text: str) -> bytes:
    key = base64.b64decode(text.strip(), validate=True)
    if len(key) != KEY_BYTES:
        raise ValueError("not a key")
    return key


def digest(secret: str) -> str:
    """What is kept of a token that only has to be recognised."""
    return hashlib.sha256(secret.encode()).hexdigest()


def short(secret: str) -> str:
    """How a device code may be named in a log: the first 8 digits of its digest."""
    return digest(secret)[:8]
