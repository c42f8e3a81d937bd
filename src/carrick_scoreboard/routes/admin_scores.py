"""The leaders' API: session, sections, scores, history, and what waits. Every object is checked against its owner."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from carrick.errors import InvalidInput
from carrick.relay.threads import Threads
from carrick.web.problems import Problem
from carrick.web.routes import Answer, Call, Route, as_json
from carrick_scoreboard.leaders import Leader, Leaders
from carrick_scoreboard.routes import admin_answers as answers
from carrick_scoreboard.store.scores import OVER, AlreadyUndone, InDoubt, Reused, Scores, Update
from carrick_scoreboard.submitting import Desk, Mode, ScoreUpdates, SubmissionAnswer

KEY, MODE = "X-Idempotency-Key", "X-Sync-Mode"
OWN = [401, 403, 404]


class ScoreApi:
    """The handlers."""

    def __init__(self, leaders: Leaders, desk: Desk, scores: Scores, threads: Threads) -> None:
        self._leaders = leaders
        self._desk = desk
        self._scores = scores
        self._threads = threads

    async def session(self, call: Call[Any, Any]) -> web.Response:
        leader = await self._leaders.find(call.request)
        if leader is None:
            return as_json(answers.SessionAnswer(authenticated=False))
        answer = as_json(
            answers.SessionAnswer(
                authenticated=True,
                user=answers.User(osm_user_id=leader.user_id, name=leader.session.osm_user_name),
                selected_section_id=leader.session.selected_section_id,
                csrf_token=leader.csrf,
                pending_writes=await self._threads.call(self._scores.waiting, leader.user_id),
                sign_in_again=leader.session.revoked_at is not None,
            )
        )
        self._leaders.renew(call.request, answer)
        return answer

    async def sections(self, call: Call[Any, Any]) -> answers.Sections:
        leader = await self._leaders.require(call.request)
        found = await self._leaders.sections(leader)
        return answers.Sections(sections=[answers.section_answer(section) for section in found])

    async def submit(self, call: Call[Any, ScoreUpdates]) -> Answer:
        leader = await self._leaders.require(call.request)
        section_id = whole(call.request, "section_id")
        await self._leaders.own_section(leader, section_id)
        given = await _refusing(
            self._desk.submit(leader.user_id, section_id, _key(call.request), call.body.updates, _mode(call.request))
        )
        await self._leaders.select(leader, section_id)
        return _answered(given)

    async def history(self, call: Call[answers.HistoryQuery, Any]) -> answers.History:
        leader = await self._leaders.require(call.request)
        section_id = whole(call.request, "section_id")
        await self._leaders.section(leader, section_id)
        wanted = call.query
        found = await self._threads.call(self._scores.history, section_id, wanted.limit + 1, wanted.before)
        lines = [answers.history_line(update, leader.user_id) for update in found[: wanted.limit]]
        return answers.History(history=lines, next=str(lines[-1].id) if len(found) > wanted.limit else None)

    async def undo(self, call: Call[Any, Any]) -> Answer:
        leader = await self._leaders.require(call.request)
        update = await self._own(leader, whole(call.request, "id"))
        key = _key(call.request)
        if update.applied_at is None:
            raise Problem(409, "not_applied", "these points are not in OSM yet; discard them instead")
        await self._leaders.section(leader, update.section_id)
        return _answered(await _refusing(self._desk.undo(update, leader.user_id, key)))

    async def pending(self, call: Call[Any, Any]) -> answers.PendingLines:
        leader = await self._leaders.require(call.request)
        found = await self._threads.call(self._scores.unfinished, leader.user_id)
        reasons = await self._desk.reasons(found)
        return answers.PendingLines(
            pending=[answers.pending_line(update, why, {}) for update, why in zip(found, reasons, strict=True)]
        )

    async def retry(self, call: Call[answers.Seen, Any]) -> Answer:
        """Dead points go round again; what needs a person is applied anyway; what is in doubt is looked up first."""
        leader = await self._leaders.require(call.request)
        update = await self._own_unfinished(leader, call, "dead")
        await self._threads.call(self._scores.retry, update)
        return Answer(value=await self._line(update.id), status=202)

    async def discard(self, call: Call[answers.Seen, Any]) -> web.Response | Answer:
        """Points are given up; where nobody knows whether OSM has them, that is looked up first."""
        leader = await self._leaders.require(call.request)
        update = await self._own_unfinished(leader, call, "dead", "pending", None)
        try:
            if await self._desk.discard(update):
                return web.Response(status=204)
        except InDoubt as error:  # somebody has read that OSM has them, just now
            raise Problem(409, "over", str(error)) from None
        return Answer(value=await self._line(update.id), status=202)

    async def _line(self, update_id: int) -> answers.PendingLine:
        update = await self._threads.call(self._scores.update, update_id)
        assert update is not None
        [why] = await self._desk.reasons([update])
        return answers.pending_line(update, why, {})

    async def _own(self, leader: Leader, update_id: int) -> Update:
        """An update of the leader; another's is as if it were not there."""
        update = await self._threads.call(self._scores.update, update_id)
        if update is None or update.osm_user_id != leader.user_id:
            raise Problem(404, "not_found", f"there are no points of yours with the number {update_id}")
        return update

    async def _own_unfinished(self, leader: Leader, call: Call[answers.Seen, Any], *states: str | None) -> Update:
        update = await self._own(leader, whole(call.request, "id"))
        if update.applied_at is not None or update.discarded_at is not None:
            raise Problem(409, "over", OVER)
        if update.state not in states and update.state is None:
            raise Problem(409, "over", "these points have been removed; they can only be discarded")
        if update.state not in states:
            raise Problem(409, "on_its_way", "these points are still on their way; they are tried again by themselves")
        if call.query.found not in ("", answers.found_of(update)):
            raise Problem(409, "changed", "it has been looked up what OSM has; look at the numbers, then decide again")
        return update

    def routes(self) -> list[Route]:
        section, one = "/api/admin/sections/{section_id}", "/api/admin/pending/{id}"
        return [
            Route(method="GET", path="/api/admin/session", summary="Who is signed in", handle=self.session,
                  gives=answers.SessionAnswer),
            Route(method="GET", path="/api/admin/sections", summary="The sections where the leader may write",
                  handle=self.sections, gives=answers.Sections, problems=[401]),
            Route(method="POST", path=f"{section}/scores", summary="Give points to patrols", handle=self.submit,
                  takes=ScoreUpdates, gives=SubmissionAnswer, problems=[202, 400, *OWN, 409]),
            Route(method="GET", path=f"{section}/history", summary="Points that OSM has taken", handle=self.history,
                  query=answers.HistoryQuery, gives=answers.History, problems=[400, *OWN]),
            Route(method="POST", path="/api/admin/history/{id}/undo", summary="Take points back", handle=self.undo,
                  gives=SubmissionAnswer, problems=[202, 400, *OWN, 409]),
            Route(method="GET", path="/api/admin/pending", summary="The leader's points that are not in OSM yet",
                  handle=self.pending, gives=answers.PendingLines, problems=[401]),
            Route(method="POST", path=f"{one}/retry", summary="Try points again, or apply them anyway",
                  handle=self.retry, query=answers.Seen, gives=answers.PendingLine, status=202,
                  problems=[400, *OWN, 409]),
            Route(method="POST", path=f"{one}/discard", summary="Give points up", handle=self.discard,
                  query=answers.Seen, gives=None, status=204, problems=[202, 400, *OWN, 409]),
        ]  # fmt: skip


async def _refusing(submitting: Any) -> SubmissionAnswer:
    """What is wrong with a submission, as an answer."""
    try:
        answer: SubmissionAnswer = await submitting
    except Reused as error:
        raise Problem(409, "key_reused", str(error), field=KEY) from None
    except AlreadyUndone as error:
        raise Problem(409, "already_undone", str(error)) from None
    return answer


def _answered(given: SubmissionAnswer) -> Answer:
    return Answer(value=given, status=200 if given.status == "applied" else 202)


def _key(request: web.Request) -> str:
    key = request.headers.get(KEY, "")
    if not key:
        raise Problem(400, "idempotency_key_required", "Idempotency key required", field=KEY)
    return key


def _mode(request: web.Request) -> Mode:
    given = request.headers.get(MODE, "interactive")
    modes: dict[str, Mode] = {"interactive": "interactive", "background": "background"}
    if given not in modes:
        raise InvalidInput(MODE, f"{given[:40]!r} is no mode", " or ".join(modes))
    return modes[given]


def whole(request: web.Request, name: str) -> int:
    """The number in the path. Raises Problem."""
    given = request.match_info[name]
    if not given.isascii() or not given.isdecimal() or len(given) > 15 or int(given) < 1:
        raise Problem(404, "not_found", f"{given[:40]!r} is no number; accepted: 1 and up")
    return int(given)
