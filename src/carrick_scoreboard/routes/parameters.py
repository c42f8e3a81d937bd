"""The parameters in a body: a form, or a JSON object, whichever the sender likes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from carrick.web.bodies import BODIES
from carrick.web.problems import Problem

MAX_BYTES = 16 * 1024
MAX_FIELDS = 50
BODY_SECONDS = 20.0
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class BadParameters(Exception):
    """The body cannot be read; the text says why. `status` is the one to answer with."""

    def __init__(self, said: str, status: int = 400) -> None:
        super().__init__(said)
        self.status = status


async def form_of(request: web.Request) -> dict[str, str]:
    """The fields of a form. Raises BadParameters."""
    if request.content_type != FORM:
        raise BadParameters(f"the body is {request.content_type}; accepted: {FORM}")
    return _once(_form(await _body(request)))


async def parameters_of(request: web.Request) -> dict[str, str]:
    """The text parameters of a form or of a JSON object. What is empty counts as not sent (RFC 6749, 3.1).

    What is no text is left out, so that whoever needs it says that it is missing. Raises BadParameters.
    """
    body = await _body(request)
    if request.content_type == FORM:
        found = _once(_form(body))
    elif request.content_type == JSON:
        found = _json(body)
    else:
        raise BadParameters(f"the body is {request.content_type}; accepted: {FORM} or {JSON}")
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


async def _body(request: web.Request) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise BadParameters("the body is compressed; accepted: as it is", 415)
    try:
        async with request.app[BODIES].of(request, MAX_BYTES, BODY_SECONDS) as body:
            return body.sent
    except Problem as problem:
        raise BadParameters(str(problem), problem.status) from None


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:  # not UTF-8, or too many fields
        raise BadParameters(f"the body is no form in UTF-8 of at most {MAX_FIELDS} fields") from None


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadParameters("the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadParameters("the body is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The parameters by name. None may be there twice: which of the two counts would be a guess."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadParameters("a parameter is there twice; accepted: each once")
    return found
