"""The ingest's HTTP API: parse, call, answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from aiohttp import web

from carrick import __version__
from carrick.contacts.api import routes as contact_routes
from carrick.contacts.contacts import Contacts
from carrick.contacts.store import Resolved
from carrick.errors import BacklogFull, CarrickError, StoreError
from carrick.ingest import answers, auth
from carrick.ingest.batch import Batch
from carrick.ingest.body import MAX_BODY_BYTES
from carrick.ingest.desk import Desk
from carrick.ingest.metrics import IngestMetrics
from carrick.ingest.problems import BatchRefused, Replayed, TooLarge
from carrick.ingest.store import Inbox
from carrick.outbox.producing import check_text
from carrick.relay.threads import Threads
from carrick.web import bodies
from carrick.web.probes import described, liveness, readiness
from carrick.web.problems import Problem, problem_of
from carrick.web.routes import Call, Route

log = logging.getLogger("carrick.ingest")

PREFIX = "/api/v1/edge"
BUSY_SECONDS = 1
"""What Retry-After says while too many batches are under way."""
FULL_SECONDS = 30
"""What Retry-After says while the channel that events are relayed to is full."""
SIGNATURE = "carrick.signature"
"""Where a request keeps its signature, once that was found to fit."""


class Api:
    """The endpoints, as methods; `routes` lists them. `checks` says whether the database can be used."""

    def __init__(
        self,
        inbox: Inbox,
        desk: Desk,
        guard: auth.Guard,
        threads: Threads,
        metrics: IngestMetrics,
        *,
        checks: Callable[[], None],
        limits: answers.Limits,
        max_in_flight: int,
        body_seconds: float,
        contacts: Contacts,
    ) -> None:
        self._inbox = inbox
        self._desk = desk
        self._guard = guard
        self._threads = threads
        self._metrics = metrics
        self._checks = checks
        self._limits = limits
        self._max_in_flight = max_in_flight
        self._body_seconds = body_seconds
        self._contacts = contacts
        self._in_flight = 0

    def routes(self) -> list[Route]:
        """Every endpoint."""
        return described(
            "Carrick ingest",
            "Takes batches of events, each event once, and keeps one contact per person.",
            [*self._own(), *self._of_contacts(), *self._diagnostics()],
        )

    def _own(self) -> list[Route]:
        return [
            liveness(),
            readiness(partial(self._threads.call, self._checks), answers.Ready()),
            Route(
                method="POST",
                path=f"{PREFIX}/batch",
                summary="Take a batch; each of its events is stored once",
                handle=self.take_batch,
                takes=Batch,
                reads_itself=True,
                gives=answers.Verdict,
                problems=[400, 401, 408, 413, 415, 429, 503],
            ),
        ]

    def _of_contacts(self) -> list[Route]:
        """Guarded as a batch is."""
        return contact_routes(
            self._contacts,
            self._threads,
            guards=[self._admit_headers],
            body_guards=[self._admit_resolve],
            resolve=self._resolve,
        )

    def _diagnostics(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path=f"{PREFIX}/diagnostics/handshake",
                summary="The time here, and what is accepted",
                handle=self.handshake,
                gives=answers.Handshake,
            ),
            Route(
                method="GET",
                path=f"{PREFIX}/diagnostics/dedupe",
                summary="The events of a tenant that came last",
                handle=self.dedupe,
                query=answers.DedupeQuery,
                gives=answers.Dedupe,
                problems=[400, 401, 503],
                guards=[self._admit],
            ),
        ]

    async def take_batch(self, call: Call[None, None]) -> answers.Verdict:
        started = time.perf_counter()
        with self._telling(call.request):
            verdict = await self._take(call.request)
        self._metrics.taken(verdict, time.perf_counter() - started)
        return verdict

    async def handshake(self, _: Call[Any, Any]) -> answers.Handshake:
        return answers.Handshake(
            server_time=datetime.now(UTC),
            version=__version__,
            auth_mode=self._guard.mode,
            clock_seconds=auth.WINDOW_SECONDS if self._guard.mode == "hmac" else None,
            limits=self._limits,
        )

    async def dedupe(self, call: Call[answers.DedupeQuery, None]) -> answers.Dedupe:
        asked = call.query
        check_text("tenant_id", asked.tenant_id)
        events = await self._threads.call(self._inbox.recent, asked.tenant_id, asked.limit)
        return answers.Dedupe(tenant_id=asked.tenant_id, events=events)

    def _admit(self, request: web.Request) -> None:
        """The same authentication as for a batch; what is read is not remembered, so it may be asked again."""
        with self._telling(request):
            self._guard.check(_as_sent(request, b""), _now_ms())

    def _admit_headers(self, request: web.Request) -> None:
        with self._telling(request):
            self._guard.check_headers(request.headers, _now_ms())

    def _admit_resolve(self, request: web.Request, body: bytes) -> None:
        with self._telling(request):
            request[SIGNATURE] = self._guard.check(_as_sent(request, body), _now_ms())

    def _resolve(self, request: web.Request, *asked: Any) -> Resolved:
        """Resolve what is asked; a signed request once, as an old one that comes again would bring old traits back."""
        signature = request[SIGNATURE]
        if signature is None:
            return self._contacts.resolve(*asked)
        try:
            found: Resolved = self._inbox.once(signature, lambda one: self._contacts.resolve_in(one, *asked))
            return found
        except Replayed as replayed:
            raise self._told(request, replayed) from None

    async def _take(self, request: web.Request) -> answers.Verdict:
        """Whoever is known by the head has a place from there on; who signs, once the signature was found to fit."""
        self._guard.check_headers(request.headers, _now_ms())
        bodies.check_type(request)
        encoding = bodies.check_encoding(request)
        if self._guard.mode == "hmac":
            async with self._body(request) as body:
                sent = _as_sent(request, body.sent)
                signature = await self._signature(request.app[bodies.BODIES], sent)
                with self._a_place():
                    return await self._desk.take(sent, encoding, signature)
        with self._a_place():
            async with self._body(request) as body:
                return await self._desk.take(_as_sent(request, body.sent), encoding, None)

    def _body(self, request: web.Request) -> AbstractAsyncContextManager[bodies.Body]:
        return request.app[bodies.BODIES].of(request, MAX_BODY_BYTES, self._body_seconds)

    async def _signature(self, strangers: bodies.Bodies, sent: auth.Request) -> bytes | None:
        """Of a large body in a thread, but not in one of those that store. Raises auth.Refused."""
        if len(sent.body) <= bodies.SMALL_BYTES:
            return self._guard.check(sent, _now_ms())
        return await strangers.in_thread(self._guard.check, sent, _now_ms())

    @contextmanager
    def _a_place(self) -> Iterator[None]:
        """One of the places for batches under way, until the answer."""
        if self._in_flight >= self._max_in_flight:
            said = f"{self._max_in_flight} batches are under way already"
            raise Problem(429, "busy", said, retry_after=BUSY_SECONDS)
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    @contextmanager
    def _telling(self, request: web.Request) -> Iterator[None]:
        """Turn every refusal into a problem that is counted and logged."""
        try:
            yield
        except (auth.Refused, BatchRefused, CarrickError, Problem) as error:
            raise self._told(request, error) from None

    def _told(self, request: web.Request, error: Exception) -> Problem:
        """The problem that a refusal is, counted and logged."""
        problem = _problem(error)
        self._metrics.refused(problem.body.error)
        log.log(
            logging.ERROR if isinstance(error, StoreError) else logging.WARNING,
            "ingest.refused",
            extra={
                "status": problem.status,
                "reason": problem.body.error,
                "said": problem.body.message,
                "peer": request.remote,
                "request_id": request.headers.get("x-request-id", "")[:100],
            },
        )
        return problem


def _as_sent(request: web.Request, body: bytes) -> auth.Request:
    return auth.Request(method=request.method, path=request.rel_url.raw_path, headers=request.headers, body=body)


def _problem(error: Exception) -> Problem:
    """What the sender is told. A full channel is no fault of the batch: it may come again, unspent."""
    match error:
        case Problem():
            return error
        case auth.Refused():
            return Problem(401, "unauthorized", str(error))
        case Replayed():
            said = "this very request was taken before; to send it again, sign it with a new x-edge-timestamp"
            return Problem(401, "replayed", said)
        case TooLarge():
            return Problem(413, "too_large", str(error))
        case BatchRefused():
            return Problem(400, "malformed", str(error))
        case BacklogFull():
            return Problem(503, "backlog_full", str(error), retry_after=FULL_SECONDS)
        case CarrickError():
            return problem_of(error)
        case _:
            raise error


def _now_ms() -> int:
    return int(time.time() * 1000)
