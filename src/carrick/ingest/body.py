"""The body of a batch: what it may be, and without its compression."""

from __future__ import annotations

from carrick.ingest.problems import TooLarge, Unreadable, Unsupported
from carrick.web import unfolding
from carrick.web.unfolding import UnknownEncoding, encoding_of

MAX_BODY_BYTES = 10 * 1024 * 1024
"""How large a body may be, as sent and unfolded."""
JSON_TYPE = "application/json"


def check_type(content_type: str | None) -> None:
    """Raise Unsupported unless the header says JSON, in UTF-8 if it says."""
    kind, *parameters = (content_type or "").lower().split(";")
    if kind.strip() != JSON_TYPE:
        raise Unsupported(f"Content-Type {content_type or ''!r:.100} is not supported; accepted: {JSON_TYPE}")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise Unsupported(f"charset {value.strip()!r:.100} is not supported; accepted: utf-8")


def check_encoding(content_encoding: str | None) -> str:
    """One of ENCODINGS. Raises Unsupported."""
    try:
        return encoding_of(content_encoding)
    except UnknownEncoding as error:
        raise Unsupported(str(error)) from None


def unfolded(body: bytes, encoding: str, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The body as JSON text. Raises TooLarge, or Unreadable when it is damaged or ends too early."""
    try:
        return unfolding.unfolded(body, encoding, max_bytes)
    except unfolding.TooMuch as error:
        raise TooLarge(str(error)) from None
    except unfolding.Damaged as error:
        raise Unreadable(str(error)) from None


def too_large(max_bytes: int = MAX_BODY_BYTES) -> TooLarge:
    return TooLarge(f"the body is larger than {max_bytes:,} bytes")
