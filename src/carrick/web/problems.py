"""What a caller is told when something is wrong: one JSON form, a status, never a stack trace."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from carrick.errors import BacklogFull, CarrickError, EntryNotFound, InvalidInput, KeyReused, RequestReused, StoreError
from carrick.web import figures

log = logging.getLogger("carrick.web")

PLACE = re.compile(r"\$(?:\[(\d+)\])?(.*)")
"""Where the decoder found a fault: the place in the list, if it is one, and the path in there."""
NAMED = re.compile(r"(?:missing required|unknown) field `(.*)`$")


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The form of every answer that says what is wrong. `index` is the place of a bad event in a list."""

    error: str
    message: str
    field: str | None = None
    index: int | None = None


class Problem(Exception):
    """Answer with this status and body."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        *,
        field: str | None = None,
        index: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds after which the same request may be welcome."""
        self.body = ProblemBody(error=error, message=message, field=field, index=index)


STATUSES: tuple[tuple[type[CarrickError], int, str], ...] = (
    (InvalidInput, 400, "invalid_input"),
    (KeyReused, 409, "key_reused"),
    (RequestReused, 409, "request_reused"),
    (BacklogFull, 507, "backlog_full"),
    (EntryNotFound, 404, "not_found"),
    (StoreError, 503, "store_unavailable"),
)
"""What Carrick's own errors answer; the first that fits."""


def problem_of(error: CarrickError, *, index: int | None = None, field: str | None = None) -> Problem:
    """The problem that an error of Carrick is for the caller."""
    for kind, status, name in STATUSES:
        if isinstance(error, kind):
            return Problem(status, name, str(error), field=field or getattr(error, "field", None), index=index)
    return Problem(400, "refused", str(error), index=index)


def bad_input(where: str, said: str) -> Problem:
    """What the decoder did not accept, with the path of the fault (`Expected int - at $[3].priority`)."""
    message, _, path = said.partition(" - at ")
    place = path.strip("`")
    found = PLACE.fullmatch(place)
    index = int(found[1]) if found and found[1] else None
    text = f"{where}: {message}" + (f" at {place}" if place else "")
    return Problem(400, "invalid_input", text, field=_field(message, found[2] if found else ""), index=index)


def _field(message: str, path: str) -> str | None:
    """The field at that path, or the one in there that is missing or unknown; None when it is the whole."""
    named = NAMED.search(message)
    steps = [path.removeprefix("."), named[1] if named else ""]
    return ".".join(step for step in steps if step) or None


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def catch_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every refusal into the one form; what nobody expected is logged whole and told in one word."""
    try:
        return await handler(request)
    except Problem as problem:
        return _answer(problem)
    except CarrickError as error:
        return _answer(problem_of(error))
    except web.HTTPRequestEntityTooLarge:
        return _answer(Problem(413, "too_large", f"the body is larger than {request.client_max_size:,} bytes"))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        answer = _answer(Problem(error.status, error.reason.lower().replace(" ", "_"), _said(request, error)))
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
        return answer
    except ConnectionError:
        log.info("web.gone", extra={"method": request.method, "path": request.path})
        return _answer(Problem(400, "gone", "the connection ended before the request did"))
    except Exception:
        log.exception("web.failed", extra={"method": request.method, "path": request.path})
        return _answer(Problem(500, "internal_error", "something went wrong here; the log has the details"))


def _said(request: web.Request, error: web.HTTPException) -> str:
    if isinstance(error, web.HTTPMethodNotAllowed):
        return f"{request.method} is not allowed here; accepted: {', '.join(sorted(error.allowed_methods))}"
    return f"{request.method} {request.path}: {error.reason}"


def _answer(problem: Problem) -> web.Response:
    figures.REFUSED.labels(problem.body.error).inc()
    body: Any = msgspec.json.encode(problem.body)
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return web.Response(body=body, status=problem.status, content_type="application/json", headers=headers)
