"""The leaders' API: the scores of a section, its colours and its board links, and the displays of a leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from carrick.relay.threads import Threads
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick_scoreboard.leaders import Leader, Leaders
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.patrols.decision import Error
from carrick_scoreboard.patrols.known import Viewer
from carrick_scoreboard.patrols.patrols import Patrols, Refused
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.routes import admin_answers as answers
from carrick_scoreboard.routes.admin_scores import OWN, whole
from carrick_scoreboard.routes.patrols import refusal
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.boards import Boards
from carrick_scoreboard.store.credentials import WritableSection
from carrick_scoreboard.store.devices import Device, Devices
from carrick_scoreboard.store.sections import SectionSettings
from carrick_scoreboard.web_security import is_secret, new_secret

UNREAD = [429, 502, 503]
WHY: Mapping[Error, str] = {
    "rate_limited": "OSM asks us to wait before we read again.",
    "service_blocked": "OSM has blocked this service.",
    "upstream_error": "OSM did not answer.",
    "internal_error": "OSM's answer made no sense.",
}
"""Why OSM is not asked now, in words that a leader understands."""


class SectionApi:
    """The handlers."""

    def __init__(
        self,
        leaders: Leaders,
        patrols: Patrols,
        shelf: Shelf,
        settings: SectionSettings,
        boards: Boards,
        devices: Devices,
        threads: Threads,
        exposed_domain: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._leaders = leaders
        self._patrols = patrols
        self._shelf = shelf
        self._settings = settings
        self._boards = boards
        self._devices = devices
        self._threads = threads
        self._exposed_domain = exposed_domain
        self._now = now

    async def scores(self, call: Call[Any, Any]) -> Any:
        leader, section = await self._asked(call.request)
        await self._leaders.select(leader, section.id)
        return await self._scores(leader, section)

    async def refresh(self, call: Call[Any, Any]) -> Any:
        leader, section = await self._asked(call.request)
        return await self._scores(leader, section, anew=True)

    async def _scores(self, leader: Leader, section: WritableSection, *, anew: bool = False) -> Any:
        viewer = Viewer(section_id=section.id, osm_user_id=leader.user_id)
        try:
            found = await self._patrols.scores(viewer, anew=anew)
        except Refused as refused:
            return refusal(refused, self._now())
        served = found.scores
        last = await self._shelf.last_scores(section.id)
        return answers.SectionScoresAnswer(
            section=answers.section_answer(section),
            term_id=None if last is None else last.term_id,
            patrols=[
                answers.ScorePatrol(
                    id=patrol.id,
                    name=patrol.name,
                    score=patrol.score,
                    pending_delta=patrol.pending_delta,
                    has_pending=patrol.has_pending,
                )
                for patrol in served.patrols
            ],
            fetched_at=whole_second(served.cached_at),
            cache_expires_at=served.cache_expires_at,
            stale=served.stale,
            rate_limit_state=served.rate_limit_state,
            message=None if found.why is None else WHY[found.why],
            settings=answers.SectionSettingsBody(patrol_colors=served.settings.patrol_colors),
        )

    async def settings(self, call: Call[Any, Any]) -> answers.SectionSettingsAnswer:
        leader, section = await self._asked(call.request)
        if await self._shelf.last_scores(section.id) is None:
            with suppress(Refused):  # without the names of patrols there are still the colours
                await self._patrols.scores(Viewer(section_id=section.id, osm_user_id=leader.user_id))
        return await self._settings_answer(section, await self._threads.call(self._settings.colors, section.id))

    async def _settings_answer(self, section: WritableSection, colors: dict[str, str]) -> answers.SectionSettingsAnswer:
        """With the patrols as they were read last."""
        last = await self._shelf.last_scores(section.id)
        known = () if last is None else last.patrols
        return answers.SectionSettingsAnswer(
            section_id=section.id,
            patrol_colors=colors,
            patrols=[answers.PatrolName(id=patrol.id, name=patrol.name) for patrol in known],
        )

    async def set_settings(self, call: Call[Any, answers.SectionSettingsBody]) -> answers.SectionSettingsAnswer:
        leader, section = await self._asked(call.request)
        colors = await self._threads.call(
            self._settings.set_colors, section.id, call.body.patrol_colors, osm_user_id=leader.user_id
        )
        await self._shelf.tell(section.id)
        return await self._settings_answer(section, colors)

    async def add_board(self, call: Call[Any, Any]) -> answers.BoardAnswer:
        leader, section = await self._asked(call.request)
        token = new_secret()
        await self._threads.call(self._boards.add, digest(token), section.id, leader.user_id)
        return answers.BoardAnswer(token=token, url=f"{self._exposed_domain}/board/{token}")

    async def end_board(self, call: Call[Any, Any]) -> web.Response:
        _, section = await self._asked(call.request)
        token = call.request.match_info["token"]
        if not is_secret(token) or not await self._threads.call(self._boards.revoke, digest(token), section.id):
            raise Problem(404, "not_found", "there is no such link to this section's board")
        await self._shelf.tell(section.id)  # screens that show it find that it has ended
        return web.Response(status=204)

    async def scoreboards(self, call: Call[Any, Any]) -> answers.Scoreboards:
        leader = await self._leaders.require(call.request)
        found = await self._threads.call(self._devices.of_user, leader.user_id)
        return answers.Scoreboards(scoreboards=[answers.scoreboard_line(device) for device in found])

    async def move(self, call: Call[Any, answers.NewSection]) -> answers.ScoreboardLine:
        leader = await self._leaders.require(call.request)
        section_id, device_id = int(call.body.section_id), whole(call.request, "id")
        await self._leaders.section(leader, section_id)
        return _own(await self._threads.call(self._devices.move, device_id, leader.user_id, section_id))

    async def rename(self, call: Call[Any, answers.NewName]) -> answers.ScoreboardLine:
        leader = await self._leaders.require(call.request)
        device_id, name = whole(call.request, "id"), call.body.name.strip()
        if not name or not name.isprintable():
            raise Problem(400, "invalid_input", "name: accepted are printable characters", field="name")
        return _own(await self._threads.call(self._devices.rename, device_id, leader.user_id, name))

    async def revoke(self, call: Call[Any, Any]) -> web.Response:
        leader = await self._leaders.require(call.request)
        device_id, actor = whole(call.request, "id"), f"osm:{leader.user_id}"
        _own(await self._threads.call(self._devices.revoke, device_id, leader.user_id, actor=actor))
        return web.Response(status=204)

    async def _asked(self, request: web.Request) -> tuple[Leader, WritableSection]:
        """The leader, and the section of theirs in the path. Raises Problem."""
        leader = await self._leaders.require(request)
        return leader, await self._leaders.section(leader, whole(request, "section_id"))

    def routes(self) -> list[Route]:
        section, board = "/api/admin/sections/{section_id}", "/api/admin/scoreboards/{id}"
        return [
            Route(method="GET", path=f"{section}/scores", summary="The scores of a section", handle=self.scores,
                  gives=answers.SectionScoresAnswer, problems=[*OWN, 400, 409, *UNREAD]),
            Route(method="POST", path=f"{section}/refresh", summary="Read the section again", handle=self.refresh,
                  gives=answers.SectionScoresAnswer, problems=[*OWN, 400, 409, *UNREAD]),
            Route(method="GET", path=f"{section}/settings", summary="The colours of patrols", handle=self.settings,
                  gives=answers.SectionSettingsAnswer, problems=OWN),
            Route(method="PUT", path=f"{section}/settings", summary="Set the colours of patrols",
                  handle=self.set_settings, takes=answers.SectionSettingsBody, gives=answers.SectionSettingsAnswer,
                  problems=[400, *OWN]),
            Route(method="POST", path=f"{section}/boards", summary="A link to the live board", handle=self.add_board,
                  gives=answers.BoardAnswer, problems=OWN),
            Route(method="DELETE", path=f"{section}/boards/{{token}}", summary="End a link to the live board",
                  handle=self.end_board, gives=None, status=204, problems=OWN),
            Route(method="GET", path="/api/admin/scoreboards", summary="The leader's displays",
                  handle=self.scoreboards, gives=answers.Scoreboards, problems=[401]),
            Route(method="PUT", path=f"{board}/section", summary="Show another section", handle=self.move,
                  takes=answers.NewSection, gives=answers.ScoreboardLine, problems=[400, *OWN]),
            Route(method="PUT", path=f"{board}/name", summary="Rename a display", handle=self.rename,
                  takes=answers.NewName, gives=answers.ScoreboardLine, problems=[400, *OWN]),
            Route(method="DELETE", path=board, summary="Shut a display out", handle=self.revoke, gives=None,
                  status=204, problems=OWN),
        ]  # fmt: skip


def _own(device: Device | None) -> answers.ScoreboardLine:
    """A display of the leader; another's is as if it were not there."""
    if device is None:
        raise Problem(404, "not_found", "you have no such display")
    return answers.scoreboard_line(device)
