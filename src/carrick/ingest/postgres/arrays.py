"""Arrays as PostgreSQL reads them in binary. The driver's own lists cost ten times as much for a thousand texts."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import cast

BYTEA, INT, TEXT, TIMESTAMPTZ, UUID = 17, 23, 25, 1184, 2950
NULL = struct.pack("!i", -1)
EPOCH_MICROSECONDS = 946_684_800_000_000
"""PostgreSQL counts from the year 2000."""

_length = struct.Struct("!i").pack
_int = struct.Struct("!ii").pack
_time = struct.Struct("!iq").pack
_head = struct.Struct("!iiIii").pack


def str_array(values: Sequence[str | None]) -> bytes:
    """As the type text[]. Ids are mostly of one length and in ASCII: such are put together in one go."""
    if values and None not in values and len(lengths := set(map(len, cast(Sequence[str], values)))) == 1:
        length = lengths.pop()
        before = _length(length).decode("latin-1")
        items = before + before.join(cast(Sequence[str], values))
        if items.isascii():
            return _head(1, 1, TEXT, len(values), 1) + items.encode()
    return text_array([None if value is None else value.encode() for value in values])


def text_array(values: Sequence[bytes | None]) -> bytes:
    """As the type text[]: texts in UTF-8, or None."""
    return _array(TEXT, len(values), _sized(values))


def bytea_array(values: Sequence[bytes]) -> bytes:
    """As the type bytea[]."""
    return _array(BYTEA, len(values), _sized(values))


def int_array(values: Sequence[int]) -> bytes:
    """As the type int[]."""
    return _array(INT, len(values), (_int(4, value) for value in values))


def time_array(values: Sequence[int | None]) -> bytes:
    """As the type timestamptz[]: microseconds since 1970, or None."""
    if None in values:
        items = [NULL if value is None else _time(8, value - EPOCH_MICROSECONDS) for value in values]
        return _array(TIMESTAMPTZ, len(values), items)
    sized = [8] * (2 * len(values))
    sized[1::2] = [value - EPOCH_MICROSECONDS for value in cast(Sequence[int], values)]
    return _array(TIMESTAMPTZ, len(values), [struct.pack("!" + "iq" * len(values), *sized)])


def uuid_array(values: Sequence[str]) -> bytes:
    """As the type uuid[]: 32 hexadecimal digits each."""
    digits = bytes.fromhex("".join(values))
    sixteen = _length(16)
    items = (sixteen + digits[at : at + 16] for at in range(0, len(digits), 16))
    return _array(UUID, len(values), items)


def _sized(values: Sequence[bytes | None]) -> Iterable[bytes]:
    """Each value behind its length; what the values have in common is used, as there are many of them."""
    if None not in values:
        count = len(values)
        lengths = struct.pack(f"!{count}i", *map(len, cast(Sequence[bytes], values)))
        parts: list[bytes] = [b""] * (2 * count)
        parts[0::2] = [lengths[at : at + 4] for at in range(0, 4 * count, 4)]
        parts[1::2] = cast(Sequence[bytes], values)
        return parts
    if not any(values):
        return [NULL if value is None else _length(0) for value in values]
    return chain.from_iterable((NULL, b"") if value is None else (_length(len(value)), value) for value in values)


def _array(kind: int, count: int, items: Iterable[bytes]) -> bytes:
    """One dimension, with nulls allowed; an empty array has none."""
    if not count:
        return _head(0, 1, kind, 0, 0)[:12]
    return b"".join((_head(1, 1, kind, count, 1), *items))
