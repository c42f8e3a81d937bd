"""A batch as the forwarder sends it, and what is wrong with it. Pure.

A fault of the whole batch is raised with its path. A fault of one event is told for that event, and the others go on.
Payloads are slices of the body: never parsed into values, never encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, overload

import msgspec
from msgspec import Meta

from carrick.ingest.problems import TooLarge, Unreadable
from carrick.outbox.producing import (
    BACKSLASH,
    DEEPEST,
    EDGES,
    HALF,
    MAX_HEADERS_BYTES,
    MAX_TEXT,
    NO_UTF_8,
    depth_exceeds,
)

MAX_EVENTS = 1000
MAX_SAID = 500
"""Characters of a message about one event."""
VERSION = "1."
MAX_BESIDE = MAX_HEADERS_BYTES + 16 * 1024
"""Bytes of an event beside its payload: further fields, and its own with every character escaped."""
CERTAINLY_FLAT = 2 * DEEPEST
"""Bytes in which nothing can be nested too deeply."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Moment = Annotated[datetime, Meta(tz=True)]

MARKS = tuple(map(chr, range(0xFDD0, 0xFDF0)))
"""Stand-ins for a lone surrogate: characters that mean nothing; one that the body does not have is taken."""

TOKENS = re.compile(rb'(?s)([\[{])|([\]}])|"(?:[^"\\]++|\\.)*+"?')
"""Brackets, and texts with the brackets in them. One that does not end is a text, too: nothing is tried twice."""
OPENS, CLOSES = 1, 2
LEVELS_KEPT = 2 * DEEPEST
"""So many levels of a body are enough to see that something in an event is nested too deeply."""
MOST_LEVELS, MOST_TOKENS, MOST_HALVES = 10_000, 50_000, 10_000
"""A body with more levels, with more brackets and texts where one is too deep, or with more lone surrogates, is not
looked through to its end. A forwarder that is refused sends halves, down to the event at fault."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event. Fields that are not named here are kept with it. `tenant_id`, when given, is the batch's."""

    event_id: Text
    event_type: Text
    payload: msgspec.Raw
    tenant_id: str | None = None
    occurred_at: Moment | None = None
    trace_id: Annotated[str, Meta(max_length=MAX_TEXT)] | None = None
    schema_version: str = "1.0"


class PlainEvent(Event, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """An event with nothing to keep beside its own fields."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one tenant, sent together. At most 1000."""

    tenant_id: Annotated[str, Meta(max_length=MAX_TEXT)]
    events: Annotated[list[Event], Meta(max_length=MAX_EVENTS)]
    edge_id: Annotated[str, Meta(max_length=MAX_TEXT)] | None = None
    sent_at: Moment | None = None


class _PlainBatch(Batch, frozen=True, kw_only=True):
    events: list[PlainEvent]  # type: ignore[assignment]


_Events = msgspec.defstruct(
    "_Events", [(f"e{place}", msgspec.Raw, msgspec.UNSET) for place in range(MAX_EVENTS + 1)], array_like=True
)
"""Events as they came, and one more than there may be: what follows is skipped, where a list would hold all of it."""


class _RoughBatch(Batch, frozen=True, kw_only=True):
    events: _Events  # type: ignore[valid-type]


class _Named(msgspec.Struct, frozen=True, gc=False):
    event_id: Any = None


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """An event that is fit to be stored. `occurred_at` is in microseconds since 1970; `extra` is JSON text."""

    event_id: str
    event_type: str
    payload: bytes
    occurred_at: int | None
    trace_id: str | None
    extra: bytes | None


class Arrivals(Sequence[Arrival]):
    """Events that are fit to be stored, field by field, as databases take them: thousands of objects less."""

    __slots__ = ("event_ids", "event_types", "extras", "occurred_at", "payloads", "trace_ids")

    def __init__(
        self,
        event_ids: Sequence[str],
        event_types: Sequence[str],
        payloads: Sequence[bytes],
        occurred_at: Sequence[int | None],
        trace_ids: Sequence[str | None],
        extras: Sequence[bytes | None],
    ) -> None:
        self.event_ids = event_ids
        self.event_types = event_types
        self.payloads = payloads
        self.occurred_at = occurred_at
        self.trace_ids = trace_ids
        self.extras = extras

    @property
    def columns(self) -> tuple[Sequence[Any], ...]:
        """The fields in the order of an Arrival's."""
        return (self.event_ids, self.event_types, self.payloads, self.occurred_at, self.trace_ids, self.extras)

    def __len__(self) -> int:
        return len(self.event_ids)

    def __iter__(self) -> Iterator[Arrival]:
        return map(Arrival, *self.columns)

    @overload
    def __getitem__(self, place: int) -> Arrival: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Arrival]: ...
    def __getitem__(self, place: int | slice) -> Arrival | Sequence[Arrival]:
        return list(self)[place]


def arrivals_of(events: Sequence[Arrival]) -> Arrivals:
    """The same events, field by field."""
    fields = (
        zip(*map(msgspec.structs.astuple, events), strict=True) if events else [()] * len(Arrival.__struct_fields__)
    )
    return Arrivals(*fields)


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one event was not stored. `index` is its place in the batch, given when it has no usable `event_id`."""

    event_id: str | None = None
    index: int | None = None
    error: str
    retryable: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was looked at: what can be stored, each event once, and what cannot."""

    tenant_id: str
    edge_id: str | None
    arrivals: Arrivals
    repeated: int
    """Events whose id stood in the batch before."""
    faults: Sequence[Fault]


class _Bad(Exception):
    """What is wrong with the event at hand. `name`: its id, if it has one to tell, when it could not be read."""

    def __init__(self, said: str, name: str | None = None) -> None:
        super().__init__(said[:MAX_SAID])
        self.name = name


_plain = msgspec.json.Decoder(_PlainBatch)
_rough = msgspec.json.Decoder(_RoughBatch)
_event = msgspec.json.Decoder(Event)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_named = msgspec.json.Decoder(_Named)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

FIXED = frozenset(Event.__struct_fields__)
Sent = tuple[Event | _Bad, bytes | None]
"""One event, or what is wrong with it, and its further fields."""


def read_batch(text: bytes, *, tenant_header: str | None = None, max_payload_bytes: int) -> Checked:
    """Look at a whole batch. Raises Unreadable or TooLarge; then nothing of it can be stored."""
    _check_utf8(text)
    try:
        batch: Any = _plain.decode(text)
        count, sent = len(batch.events), _plainly(batch)
    except (msgspec.DecodeError, RecursionError):
        batch, mark = _roughly(text)
        events = [raw for raw in msgspec.structs.astuple(batch.events) if raw is not msgspec.UNSET]
        count, sent = len(events), _one_by_one(events, mark)
    if count > MAX_EVENTS:
        raise TooLarge(f"the batch has more than {MAX_EVENTS:,} events; accepted: at most {MAX_EVENTS:,}")
    _check_batch(batch, tenant_header)
    nul = b"\\" in text and rb"\u0000" in text  # mostly there is none, and one byte is found much faster
    if isinstance(batch, _PlainBatch) and not nul and (arrivals := _at_once(batch, max_payload_bytes)) is not None:
        return Checked(tenant_id=batch.tenant_id, edge_id=batch.edge_id, arrivals=arrivals, repeated=0, faults=[])
    return _checked(batch, sent, max_payload_bytes, nul)


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"body: not UTF-8 ({error.reason} at byte {error.start})") from None


def _check_batch(batch: Batch, tenant_header: str | None) -> None:
    for name in ("tenant_id", "edge_id"):
        if "\x00" in (getattr(batch, name) or ""):
            raise Unreadable(f"body: contains a NUL character at $.{name}")
    if tenant_header is not None and tenant_header != batch.tenant_id:
        raise Unreadable("x-tenant-id is not the batch's tenant; accepted: the value of $.tenant_id, or no such header")


def _plainly(batch: Batch) -> Iterator[Sent]:
    return ((event, None) for event in batch.events)


def _roughly(text: bytes) -> tuple[Batch, str | None]:
    """The batch with its events as they came, but for what stops the decoder wherever it stands in the body: half of a
    surrogate pair, for which there is a mark, and what is nested too deeply, which is cut."""
    mark: str | None = None
    while True:
        try:
            batch = _rough.decode(text)
        except msgspec.ValidationError as error:
            raise Unreadable(f"body: {_placed(str(error))}") from None
        except msgspec.DecodeError as error:
            text, mark = _marked(text, error)
        except RecursionError:
            text = _cut(text)
        else:
            _check_marks(batch, mark)
            return batch, mark


def _marked(text: bytes, error: Exception) -> tuple[bytes, str]:
    """The body with a mark for each half of a surrogate pair, and that mark. Raises Unreadable when there is none."""
    if rb"\u" not in text:
        raise Unreadable(f"body: not JSON ({error})") from None
    lower = text.lower()
    mark = next((mark for mark in MARKS if _escaped(mark) not in lower and mark.encode() not in text), None)
    if mark is None:
        raise Unreadable(f"body: not JSON ({error})") from None
    escaped = _escaped(mark)
    marked, count = HALF.subn(lambda _: escaped, text.replace(BACKSLASH, NO_UTF_8), MOST_HALVES)
    if count == 0:
        raise Unreadable(f"body: not JSON ({error})") from None
    if count == MOST_HALVES:
        raise Unreadable(f"body: contains {MOST_HALVES:,} lone surrogates or more")
    return marked.replace(NO_UTF_8, BACKSLASH), mark


def _escaped(mark: str) -> bytes:
    return rb"\u%04x" % ord(mark)


def _check_marks(batch: Batch, mark: str | None) -> None:
    for name in ("tenant_id", "edge_id"):
        if mark is not None and mark in (getattr(batch, name) or ""):
            raise Unreadable(f"body: contains a lone surrogate at $.{name}")


def _cut(text: bytes) -> bytes:
    """The body with what is nested most deeply cut: what is left is still too deep, and small enough to be read."""
    pieces: list[bytes] = []
    depth = start = end = 0
    for number, token in enumerate(TOKENS.finditer(text)):
        if number == MOST_TOKENS:
            raise Unreadable(f"body: nested deeper than {LEVELS_KEPT} levels, and too long to say where")
        if token.lastindex == OPENS:
            depth += 1
            if depth == LEVELS_KEPT + 1:
                start = token.start()
            elif depth > MOST_LEVELS:
                raise Unreadable(f"body: nested deeper than {MOST_LEVELS:,} levels at byte {token.start()}")
        elif token.lastindex == CLOSES:
            if depth == LEVELS_KEPT + 1:
                pieces += text[end:start], b"0"
                end = token.end()
            depth -= 1
    if not pieces:
        raise Unreadable(f"body: not JSON (nested deeper than {LEVELS_KEPT} levels, and does not end)")
    return b"".join((*pieces, text[end:]))


def _one_by_one(events: Sequence[msgspec.Raw], mark: str | None) -> Iterator[Sent]:
    """Each event by itself, so that one that is wrong does not hide the others."""
    for raw in events:
        text = bytes(raw)
        try:
            if mark is not None and _escaped(mark) in text:
                raise _Bad("contains a lone surrogate; accepted: whole surrogate pairs")
            event = _event.decode(text)
            yield event, _further(text, len(text) - len(bytes(event.payload)))
        except (msgspec.ValidationError, _Bad) as error:
            yield _Bad(_placed(str(error)), _name_in(text, mark)), None


def _further(text: bytes, beside: int) -> bytes | None:
    """The fields beside the event's own, as JSON text; what no database could keep or relay is refused.

    `beside`: the bytes beside the payload, looked at before there is an object for each field.
    """
    if beside > MAX_BESIDE:
        raise _Bad(f"the event has {beside:,} bytes beside its payload; accepted: at most {MAX_BESIDE:,}")
    further = {name: raw for name, raw in _fields.decode(text).items() if name not in FIXED}
    if not further:
        return None
    found = _encode(further)
    if len(found) > MAX_HEADERS_BYTES:
        raise _Bad(f"the further fields have {len(found):,} bytes; accepted: at most {MAX_HEADERS_BYTES:,}")
    if b"\\u0000" in found or (len(found) > CERTAINLY_FLAT and depth_exceeds(found, DEEPEST)):
        raise _Bad("a further field contains NUL or is nested too deeply")
    try:
        _decode(found)
    except msgspec.DecodeError as error:  # a number that others could not read
        raise _Bad(f"a further field cannot be kept ({error})") from None
    return found


def _at_once(batch: Batch, max_payload_bytes: int) -> Arrivals | None:
    """All events, in less time; None when one is amiss or comes twice, and each must be looked at by itself."""
    events = batch.events
    ids = [event.event_id for event in events]
    payloads = [bytes(event.payload) for event in events]
    moments = [event.occurred_at for event in events]
    if (
        len(set(ids)) < len(ids)
        or not {event.tenant_id for event in events} <= {None, batch.tenant_id}
        or not all(version.startswith(VERSION) for version in {event.schema_version for event in events})
        or not EDGES.isdisjoint({when.year for when in moments if when is not None})
        or (
            max(map(len, payloads), default=0) > min(max_payload_bytes, CERTAINLY_FLAT)
            and any(_payload_fault(payload, max_payload_bytes) for payload in payloads)
        )
    ):
        return None
    times = [None if when is None else _since_epoch(when) for when in moments]
    types, traces = [event.event_type for event in events], [event.trace_id for event in events]
    return Arrivals(ids, types, payloads, times, traces, [None] * len(ids))


def _payload_fault(payload: bytes, max_payload_bytes: int) -> str | None:
    if len(payload) > max_payload_bytes:
        return f"payload: has {len(payload):,} bytes; accepted: at most {max_payload_bytes:,}"
    if len(payload) > CERTAINLY_FLAT and depth_exceeds(payload, DEEPEST):
        return f"payload: nested deeper than {DEEPEST} levels"
    return None


def _checked(batch: Batch, sent: Iterator[Sent], max_payload_bytes: int, nul: bool) -> Checked:
    arrivals: dict[str, Arrival] = {}
    faults: list[Fault] = []
    repeated = 0
    for index, (event, extra) in enumerate(sent):
        try:
            arrival = _arrival(event, extra, batch.tenant_id, max_payload_bytes, nul)
        except _Bad as bad:
            faults.append(_fault(bad, index, event))
            continue
        if arrivals.setdefault(arrival.event_id, arrival) is not arrival:
            repeated += 1
    return Checked(
        tenant_id=batch.tenant_id,
        edge_id=batch.edge_id,
        arrivals=arrivals_of(list(arrivals.values())),
        repeated=repeated,
        faults=faults,
    )


def _fault(bad: _Bad, index: int, event: Event | _Bad) -> Fault:
    """The fault by the event's id, if it has one that an answer can repeat, else by its place."""
    name = event.event_id if isinstance(event, Event) else bad.name
    return Fault(index=index, error=str(bad)) if name is None else Fault(event_id=name, error=str(bad))


def _name_in(text: bytes, mark: str | None) -> str | None:
    try:
        name = _named.decode(text).event_id
    except msgspec.ValidationError:
        return None
    if not isinstance(name, str) or (mark is not None and mark in name):
        return None
    return name if 1 <= len(name) <= MAX_TEXT else None


def _arrival(event: Event | _Bad, extra: bytes | None, tenant_id: str, max_payload_bytes: int, nul: bool) -> Arrival:
    """The event, fit to be stored. `nul`: the batch has one somewhere. Raises _Bad."""
    if isinstance(event, _Bad):
        raise event
    payload = bytes(event.payload)
    if event.tenant_id is not None and event.tenant_id != tenant_id:
        raise _Bad("tenant_id: is not that of the batch")
    if nul and any("\x00" in (text or "") for text in (event.event_id, event.event_type, event.trace_id)):
        raise _Bad("event_id, event_type and trace_id must not contain NUL")
    if not event.schema_version.startswith(VERSION):
        raise _Bad(f"schema_version: {event.schema_version!r:.40} is not known; accepted: 1.0")
    if fault := _payload_fault(payload, max_payload_bytes):
        raise _Bad(fault)
    return Arrival(
        event.event_id,
        event.event_type,
        payload,
        None if event.occurred_at is None else _microseconds(event.occurred_at),
        event.trace_id,
        extra,
    )


def _microseconds(when: datetime) -> int:
    if when.year in EDGES:
        raise _Bad("occurred_at: is out of range; accepted: the years 2 to 9998")
    return _since_epoch(when)


def _since_epoch(when: datetime) -> int:
    """In microseconds; twice as fast as dividing one span by another."""
    span = when - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _placed(said: str) -> str:
    """What the decoder says, with the path behind it."""
    message, _, path = said.partition(" - at ")
    return f"{message} at {path.strip('`')}" if path else message
