"""The body of a batch without its compression, as the reading thread needs it."""

from __future__ import annotations

from carrick.ingest.problems import TooLarge, Unreadable
from carrick.web import unfolding

MAX_BODY_BYTES = 10 * 1024 * 1024
"""How large a body may be, as sent and unfolded."""


def unfolded(body: bytes, encoding: str, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The body as JSON text. Raises TooLarge, or Unreadable when it is damaged or ends too early."""
    try:
        return unfolding.unfolded(body, encoding, max_bytes)
    except unfolding.TooMuch as error:
        raise TooLarge(str(error)) from None
    except unfolding.Damaged as error:
        raise Unreadable(str(error)) from None
