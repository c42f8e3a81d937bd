"""When two puts with one key are the same: equal event type, group and principal, and the same JSON value or text."""

from __future__ import annotations

import hashlib
import json
from typing import Any


class Number(str):
    """A JSON number in one spelling per value, however it was written; exact whatever its size."""

    __slots__ = ()

    def __new__(cls, written: str) -> Number:
        mantissa, _, exponent = written.lstrip("-").lower().partition("e")
        whole, _, fraction = mantissa.partition(".")
        digits = (whole + fraction).lstrip("0")
        significant = digits.rstrip("0")
        if not significant:
            return super().__new__(cls, "0")
        power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
        return super().__new__(cls, f"{'-' if written.startswith('-') else ''}{significant}e{power}")


def content_hash(event_type: str, payload: str, group_key: str | None, principal: str | None) -> bytes:
    """What is remembered of an entry's content after it was pruned."""
    parts = json.dumps([event_type, group_key, principal, canonical(payload)])
    return hashlib.sha256(parts.encode()).digest()


def same_json(one: str, other: str) -> bool:
    """The same text, or the same value: spaces, the order of keys and the spelling of numbers do not matter."""
    return one == other or canonical(one) == canonical(other)


def canonical(text: str) -> str:
    """One spelling per JSON value; what no reader can follow is its own."""
    try:
        return _written(json.loads(text, parse_int=Number, parse_float=Number))
    except (ValueError, RecursionError):
        return text


def _written(value: Any) -> str:
    match value:
        case Number():
            return str(value)
        case dict():
            members = sorted((json.dumps(name), _written(member)) for name, member in value.items())
            return "{" + ",".join(f"{name}:{member}" for name, member in members) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case _:
            return json.dumps(value)
