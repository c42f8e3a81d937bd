"""JSON objects inside a body: their size is looked at before they become objects of Python, thirty times larger."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from carrick.errors import InvalidInput

ESCAPED = 6
"""Bytes that one byte may have been written with."""
RawObject = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
"""A field of a body that `object_in` reads."""


def no_object() -> Any:
    """As the default of such a field."""
    return msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


_decoder = msgspec.json.Decoder(dict[str, Any] | None)


def object_in(field: str, raw: msgspec.Raw, most: int) -> dict[str, Any] | None:
    """What the field holds. Raises InvalidInput for what is no object, and for much more than so many bytes: how many
    they are is told when it is written anew, without spaces and escapes."""
    accepted = f"an object of at most {most} bytes"
    text = memoryview(raw)
    if len(text) > ESCAPED * most:
        raise InvalidInput(field, f"has {len(text)} bytes", accepted)
    try:
        found: dict[str, Any] | None = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(field, str(error), accepted) from None
    return found
