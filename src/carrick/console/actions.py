"""What a person can do in the console. Everything that changes something is written down: who, from where, what."""

from __future__ import annotations

import logging
from typing import Any

from carrick.console import answers
from carrick.console.answers import Act, Changed
from carrick.console.door import Door
from carrick.console.plug import Plug
from carrick.errors import InvalidInput
from carrick.outbox.dead import Discarded, discard_all
from carrick.outbox.store import Store
from carrick.relay.threads import Threads
from carrick.web.routes import Call, Route

log = logging.getLogger("carrick.console")

DISCARD_SECONDS = 10.0
"""A browser waits 20 seconds for an answer."""


class Actions:
    """The endpoints that change something."""

    def __init__(self, store: Store, threads: Threads, door: Door, plug: Plug) -> None:
        self._store = store
        self._threads = threads
        self._door = door
        self._plug = plug

    def routes(self) -> list[Route]:
        return [
            self._route("redrive", "Send dead entries round again", self.redrive, answers.Redrive),
            self._route("discard", "Remove dead entries for good", self.discard, answers.Discard),
            self._route("gates/open", "Open a gate", self.open_gate, answers.OpenGate),
            self._route("gates/close", "Close a gate", self.close_gate, answers.CloseGate),
            self._route(
                "release-expired", "Give back what ended leases hold", self.release_expired, answers.ReleaseExpired
            ),
        ]

    def _route(self, path: str, summary: str, handle: Any, takes: Any) -> Route:
        return Route(
            method="POST",
            path=f"/api/console/{path}",
            summary=summary,
            handle=handle,
            takes=takes,
            gives=Changed,
            problems=[400, 401, 403, 404, 429, 503],
            guards=[self._door.act],
        )

    async def redrive(self, call: Call[None, answers.Redrive]) -> Changed:
        asked = call.body
        _check_choice(asked)
        count = await self._threads.call(
            self._store.redrive,
            asked.channel,
            ids=asked.ids,
            reason=asked.reason,
            max_rows=asked.limit,
            spread_seconds=asked.spread_seconds,
            dry_run=asked.dry_run,
        )
        if not asked.dry_run:
            await self._write_down(call, "redrive", asked.channel, {"count": count, **_chosen(asked)})
        return Changed(count=count, dry_run=asked.dry_run)

    async def discard(self, call: Call[None, answers.Discard]) -> Changed:
        """Many go for DISCARD_SECONDS at most; `left` says that there are more."""
        asked = call.body
        _check_choice(asked)
        if asked.dry_run:
            return Changed(count=await self._threads.call(self._would_discard, asked), dry_run=True)
        count, left = await self._threads.call(self._discard, asked)
        await self._write_down(call, "discard", asked.channel, {"count": count, **_chosen(asked)})
        return Changed(count=count, left=left)

    def _would_discard(self, asked: answers.Discard) -> int:
        """In a thread. Dead entries are counted as for a redrive."""
        if asked.died_by is not None:
            raise InvalidInput("died_by", "is not looked at by a dry_run", "one of them")
        return self._store.redrive(
            asked.channel, ids=asked.ids, reason=asked.reason, max_rows=asked.limit, dry_run=True
        )

    def _discard(self, asked: answers.Discard) -> Discarded:
        """In a thread."""
        if asked.ids is not None:
            if asked.reason is not None or asked.limit is not None or asked.died_by is not None:
                raise InvalidInput("body", "narrows what is named by ids", "reason, limit and died_by with everything")
            return Discarded(self._store.discard(asked.channel, asked.ids), left=False)
        return discard_all(
            self._store,
            asked.channel,
            reason=asked.reason,
            died_by=asked.died_by,
            limit=asked.limit,
            seconds=DISCARD_SECONDS,
        )

    async def open_gate(self, call: Call[None, answers.OpenGate]) -> Changed:
        asked = call.body
        await self._threads.call(self._store.open_gate, asked.channel, asked.scope)
        await self._write_down(call, "gate.open", asked.channel, {"scope": asked.scope})
        return Changed(count=1)

    async def close_gate(self, call: Call[None, answers.CloseGate]) -> Changed:
        asked = call.body
        await self._threads.call(self._store.close_gate, asked.channel, asked.scope, asked.seconds, asked.reason)
        detail = {"scope": asked.scope, "seconds": asked.seconds, "reason": asked.reason}
        await self._write_down(call, "gate.close", asked.channel, detail)
        return Changed(count=1)

    async def release_expired(self, call: Call[None, answers.ReleaseExpired]) -> Changed:
        count = await self._threads.call(self._store.release_expired, call.body.channel)
        await self._write_down(call, "release_expired", call.body.channel, {"count": count})
        return Changed(count=count)

    async def _write_down(self, call: Call[Any, Any], action: str, channel: str, detail: dict[str, Any]) -> None:
        act = act_of(self._door, call, action, f"channel:{channel}", detail)
        log_act(act)
        await self._plug.audit(act)


def act_of(door: Door, call: Call[Any, Any], action: str, subject: str, detail: dict[str, Any]) -> Act:
    """What the sender of this call did."""
    person = door.person(call.request)
    assert person is not None, "the guard has let it in"
    return Act(actor=person.name, address=person.address, action=action, subject=subject, detail=detail)


def log_act(act: Act) -> None:
    """One line for every act, on every service."""
    log.warning(
        "console.action",
        extra={
            "actor": act.actor,
            "address": act.address,
            "action": act.action,
            "subject": act.subject,
            "detail": act.detail,
        },
    )


def _check_choice(asked: answers.Redrive | answers.Discard) -> None:
    """Refuse a choice of entries that is none, or that says two things."""
    if (asked.ids is None) == (not asked.everything):
        raise InvalidInput("body", "names neither or both of ids and everything", "one of them")


def _chosen(asked: answers.Redrive | answers.Discard) -> dict[str, Any]:
    chosen = {"ids": None if asked.ids is None else _texts(asked.ids), "reason": asked.reason, "limit": asked.limit}
    said = {name: value for name, value in chosen.items() if value}
    return said if isinstance(asked, answers.Discard) else {"spread_seconds": asked.spread_seconds, **said}


def _texts(ids: list[Any]) -> list[str]:
    """The first of them: the count stands beside."""
    return [str(one) for one in ids[:20]]
