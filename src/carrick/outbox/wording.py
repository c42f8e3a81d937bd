"""Text that comes from elsewhere and must not stand in the way of what it is about."""

from __future__ import annotations

import json
from typing import Any

from carrick.errors import InvalidInput


def cleaned(text: str, most: int) -> str:
    """What somebody said, cut, and without what no database holds: NUL characters and lone surrogates."""
    return text[:most].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def intent_text(intent: Any) -> str:
    """What a delivery is about to do, as JSON. Raises InvalidInput."""
    accepted = "a JSON value (finite numbers, text keys) without NUL or lone surrogates"
    try:
        text = json.dumps(intent, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("intent", f"cannot be written as JSON ({error})", accepted) from None
    if "\\u0000" in text:
        raise InvalidInput("intent", "contains a NUL character", accepted)
    return text
