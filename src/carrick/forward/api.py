"""The forwarder's HTTP API: parse, call, answer."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from aiohttp import web

from carrick.entry import ChannelStats, Gate, NewEntry, State
from carrick.errors import InvalidInput, KeyReused
from carrick.forward import answers
from carrick.forward.answers import entry_view
from carrick.forward.events import CHANNEL, Event, Events, entries_of
from carrick.forward.places import refusal
from carrick.outbox.producing import check_text
from carrick.outbox.store import Store
from carrick.relay.meter import Tally
from carrick.relay.threads import Threads
from carrick.web.probes import described, liveness, readiness
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick.web.tokens import AdminToken

MAX_KEY = 255
REDRIVES = 'either {"ids": ["…", "…"]} for these entries, or {"allDlq": true} for all dead ones'


class Engine:
    """What the API needs of the running service."""

    def __init__(
        self,
        *,
        mode: str,
        cycle: Callable[[], Awaitable[Tally]],
        catching_up: Callable[[], bool],
        diagnose: Callable[[], Awaitable[answers.Diagnostics]],
        problem: Callable[[], str],
    ) -> None:
        self.mode = mode
        self.cycle = cycle
        self.catching_up = catching_up
        self.diagnose = diagnose
        self.problem = problem
        """Why it is ready and slower than it should be; empty while it is not."""


class Api:
    """The endpoints, as methods; `routes` lists them."""

    def __init__(self, store: Store, threads: Threads, engine: Engine, token: AdminToken, *, admin: bool) -> None:
        self._store = store
        self._threads = threads
        self._engine = engine
        self._token = token
        self._admin = admin
        self._is_cycling = False

    def routes(self) -> list[Route]:
        """Every endpoint. The admin ones are there in any case, and answer 404 unless they are enabled."""
        return described(
            "Carrick forwarder",
            "Takes events and hands them to a cloud endpoint.",
            [*self._public(), *self._admin_only()],
        )

    def _public(self) -> list[Route]:
        return [
            liveness(),
            readiness(self._ready, answers.Ready(mode=self._engine.mode)),
            Route(
                method="POST",
                path="/api/v1/events",
                summary="Take events; they are on disk when this answers",
                handle=self.take_events,
                takes=Events,
                gives=answers.Taken,
                status=202,
                problems=[400, 408, 409, 413, 415, 503, 507],
            ),
            Route(
                method="GET",
                path="/api/v1/sync/state",
                summary="The backlog at a glance",
                handle=self.state,
                gives=answers.SyncState,
                problems=[503],
            ),
            Route(
                method="GET",
                path="/api/v1/sync/outbox",
                summary="Entries, oldest first, page by page",
                handle=self.outbox,
                query=answers.OutboxQuery,
                gives=answers.EntryList,
                problems=[400, 503],
            ),
            Route(
                method="POST",
                path="/api/v1/sync/trigger",
                summary="One cycle now; one at a time",
                handle=self.trigger,
                gives=answers.CycleResult,
                problems=[429, 503],
            ),
        ]

    def _admin_only(self) -> list[Route]:
        guards = [self._admit]
        return [
            Route(
                method="GET",
                path="/api/v1/sync/dlq",
                summary="Dead entries with reason, attempts and last error",
                handle=self.dlq,
                query=answers.DlqQuery,
                gives=answers.EntryList,
                problems=[400, 401, 404, 503],
                guards=guards,
            ),
            Route(
                method="POST",
                path="/api/v1/sync/redrive",
                summary="Send dead entries round again",
                handle=self.redrive,
                takes=answers.Redrive,
                gives=answers.Redriven,
                problems=[400, 401, 404, 408, 413, 415, 503],
                guards=guards,
            ),
            Route(
                method="POST",
                path="/api/v1/sync/unclaim-stuck",
                summary="Give back entries of leases that expired",
                handle=self.unclaim_stuck,
                takes=answers.UnclaimStuck,
                body_optional=True,
                gives=answers.Unclaimed,
                problems=[400, 401, 404, 408, 413, 415, 503],
                guards=guards,
            ),
            Route(
                method="GET",
                path="/api/v1/sync/diagnostics",
                summary="Why does nothing arrive?",
                handle=self.diagnostics,
                gives=answers.Diagnostics,
                problems=[401, 404, 503],
                guards=guards,
            ),
        ]

    def _admit(self, request: web.Request) -> None:
        """Closed by default: who may not know that there is an admin API is told that there is none."""
        if not self._admin:
            raise Problem(404, "not_found", f"{request.method} {request.path}: Not Found")
        self._token.admit(request)

    async def _ready(self) -> answers.Ready:
        """Raises StoreError."""
        await self._threads.call(self._store.check_schema)
        problem = self._engine.problem()
        return answers.Ready(status="degraded" if problem else "ready", problem=problem, mode=self._engine.mode)

    async def take_events(self, call: Call[None, Event | list[Event]]) -> answers.Taken:
        entries = entries_of(call.body, _traceparent(call))
        key = call.headers.get("Idempotency-Key")
        if key is not None:
            _check_key(key)
        try:
            ids = await self._threads.call(self._put, entries, key, call.raw)
        except (InvalidInput, KeyReused) as error:
            raise await self._threads.call(refusal, error, entries, self._store) from None
        return answers.Taken(ids=ids)

    def _put(self, entries: Sequence[NewEntry], key: str | None, raw: bytes) -> Sequence[UUID]:
        if key is None:
            return [put.id for put in self._store.put_many(entries)]
        return self._store.put_once(key, hashlib.sha256(raw).digest(), entries)

    async def state(self, _: Call[Any, Any]) -> answers.SyncState:
        stats, gates = await self._threads.call(lambda: (self._stats(), self._store.gates(CHANNEL)))
        rate = stats.delivered_per_second
        waiting = stats.pending_count + stats.claimed_count
        return answers.SyncState(
            pending_count=stats.pending_count,
            claimed_count=stats.claimed_count,
            dlq_count=stats.dead_count,
            oldest_pending_age_seconds=stats.oldest_pending_age_seconds,
            last_success_at=stats.last_success_at,
            last_error_at=stats.last_error_at,
            held_count=stats.held_count,
            backlog_bytes=stats.backlog_bytes,
            approximate=["dlq_count" if field == "dead_count" else field for field in stats.approximate],
            gates=[gate_view(gate) for gate in gates],
            drain_rate_per_second=round(rate, 3),
            eta_seconds=0.0 if not waiting else round(waiting / rate, 1) if rate else None,
            catching_up=self._engine.catching_up(),
            mode=self._engine.mode,
        )

    async def outbox(self, call: Call[answers.OutboxQuery, None]) -> answers.EntryList:
        state = None if call.query.status is None else State.parse(call.query.status)
        return await self._listed(state, call.query.tenant, call.query.limit, call.query.after)

    async def trigger(self, _: Call[Any, Any]) -> answers.CycleResult:
        if self._is_cycling:
            raise Problem(429, "busy", "a cycle that somebody triggered is under way", retry_after=1)
        self._is_cycling = True
        try:
            tally = await self._engine.cycle()
        finally:
            self._is_cycling = False
        return answers.CycleResult(
            claimed=tally.claimed,
            delivered=tally.delivered,
            retried=tally.retried,
            dead=tally.dead,
            released=tally.released,
        )

    async def dlq(self, call: Call[answers.DlqQuery, None]) -> answers.EntryList:
        return await self._listed(State.DEAD, call.query.tenant, call.query.limit, call.query.after)

    async def redrive(self, call: Call[None, answers.Redrive]) -> answers.Redriven:
        asked = call.body
        if (asked.ids is None) == (not asked.all_dlq):
            named = "neither ids nor allDlq" if asked.ids is None else "both ids and allDlq"
            raise InvalidInput("body", f"names {named}", REDRIVES)
        if asked.reason is not None:
            check_text("reason", asked.reason)
        count = await self._threads.call(
            self._store.redrive,
            CHANNEL,
            ids=asked.ids,
            reason=asked.reason,
            max_rows=asked.limit,
            spread_seconds=asked.spread_seconds,
            dry_run=asked.dry_run,
        )
        return answers.Redriven(redriven=count, dry_run=asked.dry_run)

    async def unclaim_stuck(self, call: Call[None, answers.UnclaimStuck | None]) -> answers.Unclaimed:
        asked = call.body or answers.UnclaimStuck()
        count, younger = await self._threads.call(
            lambda: (
                self._store.release_expired(CHANNEL, older_than_seconds=asked.older_than_seconds),
                self._store.count_expired(CHANNEL),
            )
        )
        return answers.Unclaimed(unclaimed=count, expired_younger=younger)

    async def diagnostics(self, _: Call[Any, Any]) -> answers.Diagnostics:
        return await self._engine.diagnose()

    async def _listed(
        self, state: State | None, tenant: str | None, limit: int, after: str | None
    ) -> answers.EntryList:
        if tenant is not None:
            check_text("tenant", tenant)
        page = await self._threads.call(
            self._store.entries, CHANNEL, state=state, tenant=tenant, max_rows=limit, after=after
        )
        return answers.EntryList(entries=[entry_view(line) for line in page.lines], next=page.next)

    def _stats(self) -> ChannelStats:
        return next(stats for stats in self._store.stats() if stats.channel == CHANNEL)


def gate_view(gate: Gate) -> answers.GateView:
    """A gate as the API shows it."""
    return answers.GateView(
        scope=gate.scope,
        reason=gate.reason,
        closed_until=gate.closed_until,
        consecutive_failures=gate.consecutive_failures,
    )


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise InvalidInput("Idempotency-Key", "is empty, too long or not printable", f"1 to {MAX_KEY} characters")


def _traceparent(call: Call[Any, Any]) -> str | None:
    given = call.headers.get("traceparent")
    return given if given is not None and len(given) <= MAX_KEY and given.isascii() and given.isprintable() else None
