"""The settings in effect, by the names of their variables, fit to be shown: secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from carrick.settings import Settings
from carrick.variables import Secret, mask_url

NAMED_OTHERWISE = {"CLOUD_URL": "CLOUD_INGESTION_URL", "SYNC_INTERVAL_SECONDS": "SYNC_INTERVAL_MS"}
"""Where the field of the settings and the variable have different names."""


def effective(settings: Settings) -> dict[str, str]:
    """Every variable with its value; nothing where it is not set."""
    return {name: shown(name, value) for name, value in _fields("", settings)}


def _fields(prefix: str, part: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in part.__struct_fields__:
        value, name = getattr(part, field), f"{prefix}{field}".upper()
        if name == "OUTBOX_SET":  # which of them are set is told by their values
            continue
        if isinstance(value, msgspec.Struct):
            yield from _fields(f"{field}_", value)
        elif name == "SYNC_INTERVAL_SECONDS":
            yield NAMED_OTHERWISE[name], round(value * 1000)
        else:
            yield NAMED_OTHERWISE.get(name, name), value


def shown(name: str, value: Any) -> str:
    """One value: an address without its password, a secret not at all."""
    if name == "CLOUD_INGESTION_URL":
        return address(value)
    if name.endswith(("_URL", "_PROXY", "_DOMAIN")):
        return mask_url(str(value))
    if isinstance(value, Secret):
        return "***" if value else ""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def address(url: str) -> str:
    """Where batches go, without what may be secret in it: a password, or a key in the query."""
    bare, query, _ = mask_url(url).partition("?")
    return f"{bare}?***" if query else bare
