"""Routes as data: what a call takes and answers is written down once, for the server and for OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from carrick.outbox.producing import has_lone_surrogate
from carrick.variables import Network
from carrick.web import bodies
from carrick.web.bodies import BODIES, Bodies
from carrick.web.problems import Problem, bad_input, catch_problems
from carrick.web.sites import check_site
from carrick.web.surrogates import surrogate_problem

BODY_PROBLEMS = (400, 408, 413, 415, 429)
"""What may be amiss with any body: not of its form, slow, too large, no JSON, one of too many."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

UNFOLDS = web.AppKey("UNFOLDS", bool)
"""Set on an application whose routes unfold compressed bodies themselves: the server hands them on as they came."""

Q = TypeVar("Q")
B = TypeVar("B")


class Call(msgspec.Struct, Generic[Q, B], frozen=True, kw_only=True):
    """One request, decoded. `query` and `body` are None where the route takes none."""

    query: Q
    body: B
    raw: bytes
    """The body, without its compression."""
    headers: Any
    request: Any
    """The request itself, for a route that reads its own body."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a route answers when it is not just its value with the usual status."""

    value: Any
    status: int


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint. `takes` and `query` are msgspec types; `gives` is the type of the answer with `status`.

    `problems` are the other statuses it may answer with, beside those of every body that is read here. `guards` look at
    the request first and raise a Problem; `body_guards` look again when its body has come, at what was sent, before
    anything is made of it. `reads_itself`: the body is left in the request for `handle` to read; `takes` only
    describes it. `has_marks`: `handle` looks itself whether a page of another site has made the request.
    """

    method: str
    path: str
    summary: str
    handle: Callable[[Call[Any, Any]], Awaitable[Any]]
    gives: Any
    status: int = 200
    takes: Any = None
    body_optional: bool = False
    reads_itself: bool = False
    has_marks: bool = False
    query: Any = None
    problems: Sequence[int] = ()
    guards: Sequence[Callable[[web.Request], None]] = ()
    body_guards: Sequence[Callable[[web.Request, bytes], None]] = ()

    @property
    def refusals(self) -> list[int]:
        """Every status but that of success."""
        reads = self.takes is not None and not self.reads_itself
        return sorted({*self.problems, *(BODY_PROBLEMS if reads else ()), *((403,) if self.looks_at_site else ())})

    @property
    def looks_at_site(self) -> bool:
        """Whether pages of other sites are refused before `handle`."""
        return self.method not in SAFE_METHODS and not self.has_marks


def application(routes: Sequence[Route], *, max_body_bytes: int, trusted: Sequence[Network] = ()) -> web.Application:
    """The routes as an aiohttp application; `trusted` are TRUSTED_PROXIES."""
    app = web.Application(client_max_size=max_body_bytes, middlewares=[catch_problems])
    app[UNFOLDS] = True
    app[BODIES] = Bodies(trusted)
    app.on_cleanup.append(app[BODIES].close)
    for route in routes:
        app.router.add_route(route.method, route.path, _handler(route), expect_handler=None)
    for path, found in _by_path(routes).items():
        if all(route.guards for route in found):
            app.router.add_route("*", path, _no_such_method(found))
    return app


def _by_path(routes: Sequence[Route]) -> dict[str, list[Route]]:
    paths: dict[str, list[Route]] = {}
    for route in routes:
        paths.setdefault(route.path, []).append(route)
    return paths


def _no_such_method(routes: Sequence[Route]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Which methods a guarded path has is told to those only whom its guards let in."""
    allowed = [route.method for route in routes]

    async def refuse(request: web.Request) -> web.StreamResponse:
        for guard in routes[0].guards:
            guard(request)
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return refuse


def _handler(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    decoder = None if route.takes is None or route.reads_itself else msgspec.json.Decoder(route.takes)

    async def handle(request: web.Request) -> web.StreamResponse:
        _admit(route, request)
        if decoder is None:
            return await _answer(route, request, None, b"")
        if request.body_exists:
            bodies.check_type(request)
        encoding = bodies.check_encoding(request)
        async with request.app[BODIES].of(request, request.client_max_size) as body:
            for body_guard in route.body_guards:
                body_guard(request, body.sent)
            decode = partial(_body, route, decoder)
            raw, value = await request.app[BODIES].read(body, encoding, request.client_max_size, decode)
            return await _answer(route, request, value, raw)

    return handle


def _admit(route: Route, request: web.Request) -> None:
    """Raise Problem for whom the route is not there, and for pages of other sites."""
    for guard in route.guards:
        guard(request)
    if route.looks_at_site:
        check_site(request)


async def _answer(route: Route, request: web.Request, body: Any, raw: bytes) -> web.StreamResponse:
    call = Call(query=_query(route, request), body=body, raw=raw, headers=request.headers, request=request)
    value = await route.handle(call)
    if isinstance(value, web.StreamResponse):
        return value
    if isinstance(value, Answer):
        return as_json(value.value, value.status)
    return as_json(value, route.status)


def _query(route: Route, request: web.Request) -> Any:
    if route.query is None:
        return None
    given = dict(request.query)
    try:
        return msgspec.convert(given, route.query, strict=False)
    except msgspec.ValidationError as error:
        raise bad_input("query", str(error)) from None


def _body(route: Route, decoder: msgspec.json.Decoder[Any] | None, raw: bytes) -> Any:
    if decoder is None:
        return None
    if route.body_optional and not raw.strip():
        return None
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise bad_input("body", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if has_lone_surrogate(raw):
            raise surrogate_problem(raw) from None
        raise Problem(400, "invalid_json", f"body: not JSON ({error})") from None


def as_json(value: Any, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")
