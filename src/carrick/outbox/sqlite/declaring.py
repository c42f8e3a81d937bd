"""Channels: declared by the application, visible to SQL users."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from carrick.errors import ChannelConflict, UnknownChannel
from carrick.outbox.channel import Channel, Mode, OnFull
from carrick.outbox.sqlite.database import rows


def declare(connection: sqlite3.Connection, channel: Channel, keeps: Collection[str] = ()) -> None:
    """Create the channel or change its options, but for those that it keeps.

    Raises ChannelConflict for another mode while entries live.
    """
    known = rows(connection, "channel", name=channel.name)
    if known:
        there = _channel(known[0])
        channel = msgspec.structs.replace(channel, **{option: getattr(there, option) for option in keeps})
    if known and known[0][1] != channel.mode and rows(connection, "channel_is_live", name=channel.name):
        raise ChannelConflict(
            f"channel {channel.name!r} is declared as {known[0][1]!r} and still has entries; "
            f"it cannot become {channel.mode.value!r} now"
        )
    rows(connection, "declare_channel", **row_of(channel))


def row_of(channel: Channel) -> dict[str, Any]:
    """The channel's row, for declare_channel.sql."""
    said = None if channel.said is None else ",".join(channel.said)
    return {**msgspec.to_builtins(channel), "said": said}


def channels(connection: sqlite3.Connection) -> dict[str, Channel]:
    """All declared channels by name."""
    return {row[0]: _channel(row) for row in rows(connection, "channels")}


def known_channel(connection: sqlite3.Connection, name: str) -> Channel:
    """The channel of that name. Raises UnknownChannel with the known ones."""
    found = rows(connection, "channel", name=name)
    if not found:
        raise UnknownChannel(name, list(channels(connection)))
    return _channel(found[0])


def _channel(row: Sequence[Any]) -> Channel:
    options = dict(zip(Channel.__struct_fields__, row, strict=True))
    said = options.pop("said")
    options["said"] = None if said is None else tuple(said.split(",")) if said else ()
    kinds = {"mode": Mode, "one_tenant": bool, "fair": bool, "on_full": OnFull}
    return Channel(**options | {name: kind(options[name]) for name, kind in kinds.items()})
