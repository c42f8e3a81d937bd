"""Where half of a surrogate pair stands in a body: the decoder says of it only that the text ends too early."""

from __future__ import annotations

import json
from typing import Any

from carrick.web.problems import Problem

LARGE_BYTES = 256 * 1024


def surrogate_problem(body: bytes) -> Problem:
    """The problem with a body that has a lone surrogate in it; also the field that has it, unless the body is large."""
    index, field = _place(body)
    where = f"$[{index}]" if index is not None else "$"
    at = f" at {where}.{field}" if field else ""
    said = f"body: contains a lone surrogate{at}; accepted: whole surrogate pairs"
    return Problem(400, "invalid_input", said, field=field, index=index)


def _place(body: bytes) -> tuple[int | None, str | None]:
    """The place in the list, if it is one, and the field."""
    if len(body) > LARGE_BYTES:  # as Python objects it would be thirty times larger
        return None, None
    try:
        given = json.loads(body)  # takes lone surrogates
        if isinstance(given, list):
            index = next((index for index, one in enumerate(given) if _is_broken(one)), None)
            return index, None if index is None else _field(given[index])
        return None, _field(given)
    except (ValueError, RecursionError):
        return None, None


def _field(given: Any) -> str | None:
    """The field that has it; none when it stands in a field's name."""
    if not isinstance(given, dict):
        return None
    return next((name for name, value in given.items() if _is_broken(value) and not _is_broken(name)), None)


def _is_broken(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
