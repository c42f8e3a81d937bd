"""Every call to OSM comes through here: who it is, the block, the budget, faults, holds, the log; then its own work."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
from aiohttp import web

from carrick_osmsim import pages
from carrick_osmsim.calls import CallRecord
from carrick_osmsim.faults import BLOCKED, BLOCKING, Fault, blocked, reply_of
from carrick_osmsim.forms import fields_of
from carrick_osmsim.reply import Reply, as_html, as_json
from carrick_osmsim.sending import drop, send, send_half
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.work import Visit, endpoint_of, work
from carrick_osmsim.world import Block, BlockStyle

LOOK_SECONDS = 0.05
"""How often a call that gets no answer is looked after: has the caller gone?"""

Manner = Literal["whole", "half", "not_at_all"]


class Door:
    """Answers the calls of one simulator."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Let go of every call that is held, slow or never answered."""
        self._closing.set()
        self._simulator.holds.release_all()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The whole way of one call."""
        visit = await self._visit(request)
        record = self._record(request, visit)
        try:
            block = self._simulator.world.block
            if block is None:
                reply, manner = await self._served(request, visit, record)
            else:
                reply, manner = _turned_away(block), "whole"
                self._simulator.save()
            record.effect, record.applied = reply.effect, reply.applied
            answer = await self._send(request, visit, record, reply, manner)
            if block is not None or record.fault in BLOCKING:
                self._told()
            return answer
        finally:
            self._simulator.calls.close(record)

    async def _visit(self, request: web.Request) -> Visit:
        form, problem = await _form(request)
        tokens, budgets = self._simulator.tokens, self._simulator.budgets
        endpoint = endpoint_of(request.method, request.path, request.query.get("action"))
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        grant = tokens.grant_of(token.strip()) if scheme.lower() == "bearer" else None
        return Visit(
            endpoint=endpoint,
            method=request.method,
            query=dict(request.query),
            form=form,
            grant=grant,
            user_id=grant.user_id if grant else tokens.user_of(form) if endpoint == "token" else None,
            allowed=grant is None or self._simulator.world.block is not None or budgets.spend(grant.user_id),
            problem=problem,
        )

    def _record(self, request: web.Request, visit: Visit) -> CallRecord:
        return self._simulator.calls.open(
            at=self._simulator.clock.moment().isoformat(timespec="milliseconds"),
            user_id=visit.user_id,
            endpoint=visit.endpoint,
            method=visit.method,
            path=request.path,
            query=visit.query,
            form=visit.form,
        )

    async def _served(self, request: web.Request, visit: Visit, record: CallRecord) -> tuple[Reply, Manner]:
        """Do the work, with the faults and holds that are for this call."""
        target, holds = visit.target, self._simulator.holds
        fault, deprecated = self._simulator.faults.take(target)
        record.fault = fault.kind if fault else "deprecated" if deprecated else None
        await holds.at("before_apply", target, record.number)
        if fault is not None and fault.kind == "slow" and not fault.does_the_work:
            await self._pause(request, fault.seconds)
        reply = self._done(visit, record, fault)
        await holds.at("after_apply", target, record.number)
        manner = "whole" if fault is None else await self._suffered(request, fault)
        if deprecated:
            reply = msgspec.structs.replace(reply, headers={**reply.headers, "X-Deprecated": deprecated})
        await holds.at("before_answer", target, record.number)
        return reply, manner

    def _done(self, visit: Visit, record: CallRecord, fault: Fault | None) -> Reply:
        """The work, unless the fault prevents it, and the answer that comes of it."""
        works = fault is None or fault.does_the_work or fault.kind == "slow"
        usual = work(self._simulator, visit) if works else None
        if usual is not None:
            record.effect, record.applied = usual.effect, usual.applied
        if fault is not None and fault.blocks:
            style: BlockStyle = "page" if fault.kind == "block_page" else "header"
            reason = fault.text or BLOCKED
            self._simulator.world.block = Block(reason, style, self._simulator.clock.now())
        self._simulator.save()
        if fault is None:
            assert usual is not None
            return usual
        return reply_of(fault, usual)

    async def _suffered(self, request: web.Request, fault: Fault) -> Manner:
        """What the fault does to the way the answer is sent."""
        match fault.kind:
            case "slow":
                if fault.does_the_work:
                    await self._pause(request, fault.seconds)
                return "whole"
            case "never_answer":
                await self._pause(request, None)
                return "not_at_all"
            case "apply_then_drop" | "drop_before_apply":
                return "not_at_all"
            case "truncated":
                return "half"
            case _:
                return "whole"

    async def _pause(self, request: web.Request, seconds: float | None) -> None:
        """Wait so long, or until the caller gives up; in any case no longer than the simulator lives."""
        if seconds is not None:
            await self._wait(seconds)
            return
        while not self._closing.is_set() and request.transport is not None and not request.transport.is_closing():
            await self._wait(LOOK_SECONDS)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    async def _send(
        self, request: web.Request, visit: Visit, record: CallRecord, reply: Reply, manner: Manner
    ) -> web.StreamResponse:
        """Send it in that manner; a caller who has gone in the meantime is noted."""
        if manner == "not_at_all":
            return drop(request)
        headers = {**self._simulator.budgets.headers(visit.user_id), **reply.headers}
        reply = msgspec.structs.replace(reply, headers=headers)
        try:
            answer = await (send(request, reply) if manner == "whole" else send_half(request, reply))
        except ConnectionError:
            record.effect += " (the caller had gone)"
            return drop(request)
        record.status = reply.status
        return answer

    def _told(self) -> None:
        """The application knows now that it is blocked."""
        if self._simulator.world.block is not None:
            self._simulator.world.block.told = True


def _turned_away(block: Block) -> Reply:
    """The answer to a blocked application. Once it has been told, each further call counts against it."""
    if block.told:
        block.sins += 1
        block.permanent = True
    reply = as_html(pages.blocked(block.reason)) if block.style == "page" else blocked(block.reason)
    effect = f"refused: blocked for good, sin {block.sins}" if block.permanent else "refused: blocked"
    return msgspec.structs.replace(reply, effect=effect)


async def _form(request: web.Request) -> tuple[dict[str, str], Reply | None]:
    """The fields of the body; or the answer to a body that is none."""
    if request.method != "POST":
        return {}, None
    try:
        return await fields_of(request), None
    except web.HTTPRequestEntityTooLarge:
        return {}, as_html(pages.server_error(413), 413, effect="refused: the body is too large")
    except ValueError as error:
        return {}, as_json({"error": "invalid_request"}, 400, effect=f"refused: {error}")
