"""What the application sees of shared state: values that end by themselves, counters, and messages nobody keeps."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

import msgspec

from carrick.errors import InvalidInput

MAX_KEY = 512
MAX_VALUE_BYTES = 1024 * 1024
MAX_TTL_SECONDS = 366 * 86_400
MAX_MESSAGE_BYTES = 7_999
"""PostgreSQL's NOTIFY takes less than 8000 bytes; the other two keep to it, so that one program runs on all."""
MAX_KEYS = 1_000
MAX_STEP = 1_000_000_000


class Item(msgspec.Struct, frozen=True):
    """One value as lists show it; `ends_in` is in seconds."""

    key: str
    value: bytes
    ends_in: float


class Count(msgspec.Struct, frozen=True):
    """A counter after it was added to; `ends_in` is in seconds."""

    sum: int
    ends_in: float


class Message(msgspec.Struct, frozen=True):
    """What somebody has published."""

    text: str


class Gap(msgspec.Struct, frozen=True):
    """Something may have been missed up to now, for this reason: look at the state itself."""

    reason: str


Heard = Message | Gap


class Kv(Protocol):
    """Shared state of all replicas. Raises InvalidInput for what it cannot take, StoreError when it cannot work.

    `ttl` is in seconds, more than 0. A value that has ended is as if it had never been.
    """

    async def get(self, key: str) -> bytes | None:
        """The value, None where there is none."""

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that there are, by key; all of one moment."""

    async def set(self, key: str, value: bytes, *, ttl: float) -> None:
        """Write the value, whatever was there."""

    async def set_if_absent(self, key: str, value: bytes, *, ttl: float) -> bool:
        """Write the value if there is none: of many who try, one is told True. A lock is taken this way.

        Such a lock saves work and decides nothing: it may end while it is held.
        """

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, *, ttl: float) -> bool:
        """Write the value if the expected one is there; whether it was."""

    async def delete(self, key: str) -> bytes | None:
        """Remove the value; what it was, None where there was none. Of many who try, one is given it."""

    async def compare_and_delete(self, key: str, expected: bytes) -> bool:
        """Remove the value if it is the expected one; whether it was. A lock is given back this way."""

    async def increment(self, key: str, *, ttl: float, by: int = 1) -> Count:
        """Add to a counter. The first one begins at 0 and says when the counter ends; later ones do not.

        For limiters: a counter may begin anew before its end, when Redis loses it, goes or comes back. Raises
        InvalidInput where the value is no whole number in decimal digits.
        """

    async def scan(self, prefix: str, *, limit: int = 100) -> list[Item]:
        """At most so many of the values whose keys begin with the prefix, sorted by key. To look at, not to work by."""

    def copy(self, key: str, value: bytes | None, *, ttl: float = MAX_TTL_SECONDS) -> None:
        """Let Redis have a copy, or none any more (None), for people who look there. Nobody reads it, nobody waits."""

    async def publish(self, topic: str, text: str) -> None:
        """Tell all who are subscribed now."""

    def subscribe(self, topic: str) -> AsyncGenerator[Heard, None]:
        """What is published from now on, for ever; a connection that is lost is made again.

        The first thing heard is a Gap: from there on it listens. A Gap comes again whenever something may have been
        missed. A message may be heard twice. Close it (`contextlib.aclosing`) when done.
        """


def check_key(key: object, field: str = "key") -> None:
    """Refuse what is no key or topic in every one of the databases."""
    accepted = f"1 to {MAX_KEY} characters without NUL or lone surrogates"
    if not isinstance(key, str) or not key:
        raise InvalidInput(field, f"{key!r:.80} is no name", accepted)
    if len(key) > MAX_KEY:
        raise InvalidInput(field, f"has {len(key)} characters", accepted)
    check_text(field, key, accepted)


def check_keys(keys: Sequence[str]) -> None:
    """Refuse a list with a bad key in it, or a text instead of a list."""
    if isinstance(keys, str | bytes) or len(keys) > MAX_KEYS:
        raise InvalidInput("keys", f"{len(keys)} keys or no list", f"a list of 0 to {MAX_KEYS} keys")
    for key in keys:
        check_key(key)


def check_prefix(prefix: object) -> None:
    """Refuse what no key can begin with; nothing is a prefix of all."""
    if prefix != "":
        check_key(prefix, "prefix")


def check_text(field: str, text: str, accepted: str) -> None:
    """Refuse text that PostgreSQL or UTF-8 cannot hold."""
    if "\x00" in text:
        raise InvalidInput(field, "contains a NUL character", accepted)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "contains a lone surrogate", accepted) from None


def check_value(value: object, field: str = "value") -> None:
    """Refuse a value that is not bytes, or too large."""
    accepted = f"bytes, at most {MAX_VALUE_BYTES}"
    if not isinstance(value, bytes):
        raise InvalidInput(field, f"is of type {type(value).__name__}", accepted)
    if len(value) > MAX_VALUE_BYTES:
        raise InvalidInput(field, f"has {len(value)} bytes", accepted)


def check_ttl(ttl: object) -> None:
    """Refuse a time to live that is no time, or too long."""
    known = isinstance(ttl, int | float) and not isinstance(ttl, bool)
    if not known or not math.isfinite(ttl) or not 0 < ttl <= MAX_TTL_SECONDS:  # type: ignore[arg-type, operator]
        raise InvalidInput("ttl", f"{ttl!r:.80} is out of range", f"seconds, more than 0, at most {MAX_TTL_SECONDS}")


def check_step(by: object) -> None:
    """Refuse what cannot be added to a counter."""
    if not isinstance(by, int) or isinstance(by, bool) or not 1 <= by <= MAX_STEP:
        raise InvalidInput("by", f"{by!r:.80} is out of range", f"a whole number from 1 to {MAX_STEP}")


def check_message(text: object) -> None:
    """Refuse a message that is no text, or longer than every database can pass on."""
    accepted = f"text of at most {MAX_MESSAGE_BYTES} bytes in UTF-8, without NUL or lone surrogates"
    if not isinstance(text, str):
        raise InvalidInput("text", f"is of type {type(text).__name__}", accepted)
    check_text("text", text, accepted)
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise InvalidInput("text", f"has {len(text.encode())} bytes", accepted)
