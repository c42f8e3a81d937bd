"""Checks what a producer gives, before any database sees it: a bad value never breaks the caller's transaction."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any
from uuid import UUID

import msgspec

from carrick.entry import NewEntry
from carrick.errors import InvalidInput, InvalidPayload
from carrick.outbox.channel import MAX_WAIT_SECONDS

MAX_TEXT = 255
MAX_HEADERS_BYTES = 64 * 1024
PRIORITIES = range(-1000, 1001)
DEEPEST = 100
"""Levels of nesting in a payload that every database can read back."""
EDGES = frozenset({1, 9999})
"""Years in which a time may lie outside of what every database can hold, once it is in UTC."""

BYTES = (bytes, bytearray, memoryview)
JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
STEP_DOWN, STEPS = b"\x01", bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[{]}")
"""Brackets as steps between levels: one down or one up, as signed bytes."""
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL character in JSON, but not the same text behind an escaped backslash."""
HALF = re.compile(
    rb"\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u)[dD][c-fC-F][0-9a-fA-F]{2})"
)
"""Half of a surrogate pair in JSON, once no backslash in it is escaped."""
BACKSLASH, NO_UTF_8 = rb"\\", b"\xff\xfe"
"""An escaped backslash, and what stands for it meanwhile."""

Seconds = float | int | timedelta


def new_entry(
    *,
    channel: str,
    event_type: str,
    payload: Any,
    id: UUID | str | None = None,  # noqa: A002  the entry's own name for it
    key: str | None = None,
    tenant_id: str = "",
    group: str | None = None,
    principal: str | None = None,
    priority: int = 0,
    headers: Mapping[str, Any] | None = None,
    traceparent: str | None = None,
    occurred_at: datetime | None = None,
    delay: Seconds | None = None,
    max_wait: Seconds | None = None,
) -> NewEntry:
    """Everything a producer may give, checked. Raises InvalidInput or InvalidPayload, naming the field."""
    if max_wait is not None and delay is None:
        raise InvalidInput("max_wait", "given without delay", "max_wait together with delay")
    return NewEntry(
        channel=_known_text("channel", channel, empty=False),
        event_type=_known_text("event_type", event_type, empty=False),
        payload=encode_payload(payload),
        id=id if id is None else _uuid(id),
        key=_key(key, id) if key is None else check_text("key", key, empty=False),
        tenant_id=_known_text("tenant_id", tenant_id),
        group_key=group if group is None else check_text("group", group, empty=False),
        principal=principal if principal is None else check_text("principal", principal, empty=False),
        priority=priority if priority == 0 and type(priority) is int else _priority(priority),
        headers=headers if headers is None else _headers(headers),
        traceparent=traceparent if traceparent is None else check_text("traceparent", traceparent, empty=False),
        occurred_at=occurred_at if occurred_at is None else _moment("occurred_at", occurred_at),
        delay_seconds=delay if delay is None else _seconds("delay", delay),
        max_wait_seconds=max_wait if max_wait is None else _seconds("max_wait", max_wait),
    )


def encode_payload(payload: Any) -> bytes:
    """The JSON text of a payload. `bytes` are taken as they are when they hold JSON. Raises InvalidPayload."""
    if isinstance(payload, BYTES):
        text = bytes(payload)
        _check_json(text)
        return text
    if isinstance(payload, msgspec.Struct):
        payload = msgspec.to_builtins(payload)
    try:
        text = _to_json(payload)
    except TypeError as error:
        raise InvalidPayload("payload", str(error), _ACCEPTED) from None
    except (ValueError, RecursionError) as error:
        raise InvalidPayload("payload", f"cannot be written as JSON ({error})", _ACCEPTED) from None
    if depth_exceeds(text, DEEPEST):
        raise _too_deep()
    return text


_ACCEPTED = "a JSON value (finite numbers, text keys), bytes that hold JSON, or a msgspec Struct"


def _to_json(value: Any) -> bytes:
    """Compact JSON. Lone surrogates survive as escapes; text is otherwise left readable."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _check_json(text: bytes) -> None:
    """Refuse what is not JSON in UTF-8, or nested deeper than every reader can follow."""
    try:
        text.decode()
        msgspec.json.decode(text, type=msgspec.Raw)
    except UnicodeDecodeError as error:
        raise InvalidPayload("payload", f"not UTF-8 ({error.reason} at byte {error.start})", _ACCEPTED) from None
    except (msgspec.DecodeError, RecursionError) as error:
        if has_lone_surrogate(text):
            raise InvalidPayload("payload", "contains a lone surrogate", "whole surrogate pairs") from None
        raise InvalidPayload("payload", f"not JSON ({error})", _ACCEPTED) from None
    if depth_exceeds(text, DEEPEST):
        raise _too_deep()


def has_lone_surrogate(text: bytes) -> bool:
    """Whether JSON text has half of a surrogate pair in it: decoders say of it that the text ends too early."""
    return rb"\u" in text and HALF.search(text.replace(BACKSLASH, NO_UTF_8)) is not None


def _too_deep() -> InvalidPayload:
    return InvalidPayload("payload", f"nested deeper than {DEEPEST} levels", _ACCEPTED)


def depth_exceeds(text: bytes, limit: int) -> bool:
    """Whether JSON text is nested deeper than that."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    steps = JSON_TEXT.sub(b"", text).translate(STEPS, NO_BRACKETS)
    return STEP_DOWN * (limit + 1) in steps or max(accumulate(memoryview(steps).cast("b")), default=0) > limit


def _uuid(value: Any) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput("id", f"{value!r:.80} is no UUID", "a UUID") from None


def _key(key: None, entry_id: UUID | str | None) -> str | None:
    """An id that comes again must be recognised, so it is a key, too."""
    return key if entry_id is None else str(_uuid(entry_id))


def check_text(field: str, value: Any, *, empty: bool = True, most: int = MAX_TEXT) -> str:
    """The text, when a database can hold it and it is not too long. Raises InvalidInput."""
    accepted = f"text of {0 if empty else 1} to {most} characters without NUL"
    if not isinstance(value, str):
        raise InvalidInput(field, f"is {type(value).__name__}, not text", accepted)
    if not value and not empty:
        raise InvalidInput(field, "is empty", accepted)
    if len(value) > most:
        raise InvalidInput(field, f"has {len(value)} characters", accepted)
    if "\x00" in value:
        raise InvalidInput(field, "contains a NUL character", accepted)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "contains a lone surrogate", accepted) from None
    return value


def _known_text(field: str, value: Any, *, empty: bool = True) -> str:
    """As `check_text`, for fields whose few values come again and again."""
    return _remembered_text(field, value, empty) if isinstance(value, str) else check_text(field, value, empty=empty)


@lru_cache(maxsize=4096)
def _remembered_text(field: str, value: str, empty: bool) -> str:
    return check_text(field, value, empty=empty)


def _priority(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in PRIORITIES:
        raise InvalidInput(
            "priority", f"{str(value)[:40]} is out of range", f"a whole number {PRIORITIES[0]} to {PRIORITIES[-1]}"
        )
    return value


def _seconds(field: str, value: Seconds) -> float:
    accepted = f"0 to {MAX_WAIT_SECONDS:.0f} seconds, or a timedelta"
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, f"is {type(value).__name__}", accepted)
    if not math.isfinite(value) or not 0 <= value <= MAX_WAIT_SECONDS:
        raise InvalidInput(field, f"{value} is out of range", accepted)
    return float(value)


def _moment(field: str, value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInput(field, f"{value!r:.80} has no time zone or is no datetime", "a datetime with a time zone")
    try:
        moment = value.astimezone(UTC)
    except OverflowError:  # its time zone takes it out of the calendar
        moment = None
    if moment is None or moment.year in EDGES:
        raise InvalidInput(field, "is out of range", "the years 2 to 9998")
    return moment


def _headers(value: Any) -> bytes:
    return encode_object("headers", value, MAX_HEADERS_BYTES)


def encode_object(field: str, value: Any, most: int) -> bytes:
    """The JSON text of a mapping that every database can hold and compare. Raises InvalidInput."""
    accepted = f"a mapping of text to JSON values, at most {most} bytes, without NUL or lone surrogates"
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidInput(field, "is not a mapping with text keys", accepted)
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "contains a lone surrogate", accepted) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field, f"cannot be written as JSON ({error})", accepted) from None
    if len(text) > most:
        raise InvalidInput(field, f"has {len(text)} bytes", accepted)
    if NUL.search(text) or depth_exceeds(text, DEEPEST):
        raise InvalidInput(field, "contains a NUL character or deep nesting", accepted)
    return text
