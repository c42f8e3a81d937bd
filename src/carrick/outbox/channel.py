"""What an application declares about a channel, and what is acceptable there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

from carrick.errors import InvalidInput

KIB = 1024
MIB = 1024 * KIB

CHANNEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")

MAX_BATCH_ROWS = 10_000
MAX_BATCH_BYTES = 1024 * MIB
MAX_LEASE_SECONDS = 86_400
MAX_WAIT_SECONDS = 366 * 86_400.0


class Mode(StrEnum):
    """How a channel treats groups: not at all, in order, or folded into one delivery each."""

    STREAM = "stream"
    ORDERED = "ordered"
    COALESCE = "coalesce"


class OnFull(StrEnum):
    """What a bounded channel does with a put when it is full."""

    REJECT = "reject"
    EVICT = "evict"


class Channel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named stream of entries with one destination and one policy. Times in seconds unless named days.

    `said`: which options its declarations have said, None: all; the others may be set by `OUTBOX_…` of a process.
    `one_tenant`: a claim holds entries of one tenant only. `fair`: tenants take turns; without it the oldest
    entry goes first whoever's it is. `remember_keys_days`: how long a key is remembered after its entry was pruned.
    """

    name: str
    mode: Mode = Mode.STREAM
    one_tenant: bool = False
    fair: bool = True
    batch_rows: int = 100
    batch_bytes: int = MIB
    lease_seconds: int = 120
    max_attempts: int = 10
    backoff_base_seconds: float = 1.0
    backoff_cap_seconds: float = 300.0
    max_payload_bytes: int = MIB
    max_backlog_bytes: int | None = None
    on_full: OnFull = OnFull.REJECT
    retention_days: float = 7.0
    dead_retention_days: float = 30.0
    remember_keys_days: float = 0.0
    said: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not CHANNEL_NAME.fullmatch(self.name):
            raise InvalidInput(
                "name", f"{self.name[:120]!r} is no channel name", "1 to 100 letters, digits and _ . : -"
            )
        _within("batch_rows", self.batch_rows, 1, MAX_BATCH_ROWS)
        _within("batch_bytes", self.batch_bytes, 1, MAX_BATCH_BYTES)
        _within("lease_seconds", self.lease_seconds, 1, MAX_LEASE_SECONDS)
        _within("max_attempts", self.max_attempts, 1, 1_000)
        _within("backoff_base_seconds", self.backoff_base_seconds, 0.001, 86_400)
        _within("backoff_cap_seconds", self.backoff_cap_seconds, self.backoff_base_seconds, 31 * 86_400)
        _within("max_payload_bytes", self.max_payload_bytes, 2, 256 * MIB)
        if self.max_backlog_bytes is not None:
            _within("max_backlog_bytes", self.max_backlog_bytes, 1, 2**62)
        _within("retention_days", self.retention_days, 0, 36_500)
        _within("dead_retention_days", self.dead_retention_days, 0, 36_500)
        _within("remember_keys_days", self.remember_keys_days, 0, 36_500)


OPTIONS = Channel.__struct_fields__[1:-1]


def declared(
    name: str, options: Mapping[str, Any], *, defaults: Mapping[str, Any] = MappingProxyType({}), known: Channel | None
) -> Channel:
    """A channel from options as a user writes them. Raises InvalidInput, naming the option.

    What they leave open is as `defaults` says, else as the `known` channel has it if no declaration has said that, too.
    """
    kept = {} if known is None else {option: getattr(known, option) for option in left_open(known)}
    return _channel(name, {**kept, **defaults, **options}, said=sorted(options))


def with_defaults(channel: Channel, defaults: Mapping[str, Any]) -> Channel:
    """The channel as a process's settings want it, in what its declarations have left open. Raises InvalidInput."""
    options = {option: getattr(channel, option) for option in OPTIONS}
    options |= {option: defaults[option] for option in left_open(channel) if option in defaults}
    return _channel(channel.name, options, said=channel.said)


def left_open(channel: Channel) -> set[str]:
    """The options that no declaration of the channel has said."""
    return set() if channel.said is None else set(OPTIONS) - set(channel.said)


def _channel(name: str, options: Mapping[str, Any], *, said: Sequence[str] | None) -> Channel:
    if "said" in options:
        raise InvalidInput("options", "said is no option", ", ".join(OPTIONS))
    try:
        return msgspec.convert({"name": name, **options, "said": said}, Channel, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidInput):
            raise error.__cause__ from None
        problem, _, where = str(error).partition(" - at `$.")
        unknown = "unknown field" in problem
        field = "options" if unknown else where.rstrip("`") or "name"
        raise InvalidInput(field, problem, ", ".join(OPTIONS) if unknown else _accepted(field)) from None


def _accepted(field: str) -> str:
    members = {"mode": Mode, "on_full": OnFull}.get(field)
    return ", ".join(members) if members else "see the reference of channel options"


def _within(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses NaN
        raise InvalidInput(field, f"{value!r} is out of range", f"{low} to {high}")
