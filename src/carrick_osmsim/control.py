"""The control API: what is going on, as JSON, and actions, as JSON or as forms of the panel."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from carrick_osmsim.actions import ACTIONS
from carrick_osmsim.faults import MEANINGS
from carrick_osmsim.forms import fields_of
from carrick_osmsim.panel import log_page, panel
from carrick_osmsim.simulator import Simulator
from carrick_osmsim.state_file import StateError

PATIENCE_SECONDS = 30.0
"""How long a question that waits for something may take at most."""


Count = Annotated[int, msgspec.Meta(ge=0)]


class Problem(Exception):
    """Answer with that status, and say why."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error = error


class AfterQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`/control/calls`: those after that number; with `finished` it waits until so many of them are over."""

    after: Count = 0
    limit: Count = 1000
    finished: Count = 0
    timeout_seconds: float = 10.0


class ReachedQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`/control/holds/{name}`: wait until so many calls have come to it."""

    count: Count = 1
    timeout_seconds: float = 10.0


class Control:
    """The routes under /control."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def routes(self) -> list[web.RouteDef]:
        """All of them. The panel is one page; what is not here belongs to OSM."""
        return [
            web.get("/control/", self.panel),
            web.get("/control/log", self.log),
            web.get("/control/state", self.state),
            web.get("/control/calls", self.calls),
            web.get("/control/holds/{name}", self.reached),
            web.post("/control/{action}", self.act),
            web.route("*", "/control{rest:.*}", self.unknown),
        ]

    async def panel(self, request: web.Request) -> web.Response:
        """The page for people."""
        said = request.query
        text = panel(self._simulator, said.get("done", ""), said.get("problem", ""), said.get("open", ""))
        return web.Response(text=text, content_type="text/html")

    async def log(self, request: web.Request) -> web.Response:
        """The calls, newest first, on a page that renews itself."""
        return web.Response(text=log_page(self._simulator), content_type="text/html")

    async def state(self, request: web.Request) -> web.Response:
        """Everything but tokens and secrets."""
        return answer(state_of(self._simulator))

    async def calls(self, request: web.Request) -> web.Response:
        """The log after a number."""
        asked = _query(request, AfterQuery)
        calls = self._simulator.calls
        if asked.finished:
            patience = min(asked.timeout_seconds, PATIENCE_SECONDS)
            if not await calls.finished_after(asked.after, asked.finished, patience):
                raise Problem(408, "timeout", f"there were no {asked.finished} finished calls after {asked.after}")
        return answer({"calls": calls.after(asked.after, asked.limit), "last": calls.last_number})

    async def reached(self, request: web.Request) -> web.Response:
        """Answers when calls wait at a hold."""
        name, asked = request.match_info["name"], _query(request, ReachedQuery)
        gate = self._simulator.holds.gates.get(name)
        if gate is None:
            raise Problem(404, "not_found", f"there is no hold {name}")
        patience = min(asked.timeout_seconds, PATIENCE_SECONDS)
        if not await self._simulator.holds.reached(name, asked.count, patience):
            raise Problem(408, "timeout", f"{gate.reached} calls came to the hold {name}, not {asked.count}")
        return answer({"name": name, "reached": gate.reached, "waiting": gate.waiting})

    async def act(self, request: web.Request) -> web.Response:
        """One action. A form is answered with the panel, JSON with JSON."""
        _own_pages_only(request)
        name = request.match_info["action"]
        if name not in ACTIONS:
            raise Problem(404, "not_found", f"there is no action {name}; accepted: {', '.join(ACTIONS)}")
        body = (await request.read()).strip()
        if request.content_type == "application/x-www-form-urlencoded" and not body.startswith(b"{"):
            return await self._act_on_form(request, name)  # what begins with { is JSON that curl calls a form
        try:
            asked = msgspec.json.decode(body or b"{}", type=ACTIONS[name])
            value = self._done(asked)
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
            raise Problem(400, "invalid_input", str(error)) from None
        return answer(value)

    async def _act_on_form(self, request: web.Request, name: str) -> web.Response:
        try:
            given = {field: value for field, value in (await fields_of(request)).items() if value != ""}
            if given.get("times") == "always":
                given["times"] = "null"
            self._done(msgspec.convert(given, ACTIONS[name], strict=False))
        except (msgspec.ValidationError, ValueError, OverflowError) as error:
            where = f"/control/?problem={quote(f'{name}: {error}')}"
        else:
            number = quote(given.get("section_id") or given.get("user_id") or "")
            place = f"&open={number}#at-{number}" if number and name != "fault" else ""
            where = f"/control/?done={quote(name)}{place}"
        raise web.HTTPSeeOther(where)

    def _done(self, asked: Any) -> Any:
        value = asked.act(self._simulator)
        self._simulator.save()
        return value

    async def unknown(self, request: web.Request) -> web.Response:
        """Not a call of OSM, so not for the door either."""
        raise Problem(404, "not_found", f"{request.method} {request.path}: see docs/reference/osm-simulator.md")


@web.middleware
async def tell_problems(request: web.Request, handler: Any) -> web.StreamResponse:
    """A refusal of the control API as JSON; and, for any call, that the state file could not be written."""
    try:
        response: web.StreamResponse = await handler(request)
    except Problem as problem:
        return answer({"error": problem.error, "message": str(problem)}, problem.status)
    except StateError as error:
        return answer({"error": "state_file", "message": str(error)}, 507)
    return response


def state_of(simulator: Simulator) -> dict[str, Any]:
    """What `/control/state` tells."""
    world, budgets = simulator.world, simulator.budgets
    return {
        "clock": simulator.clock.moment(),
        "clock_stands": world.clock.stands_at is not None,
        "block": world.block,
        "refresh_refusal": world.refresh_refusal,
        "users": [
            {
                "user_id": user.user_id,
                "full_name": user.full_name,
                "email": user.email,
                "rights": {section: levels["member"] for section, levels in user.rights.items()},
                "limit": budgets.of(user.user_id).limit,
                "remaining": budgets.remaining(user.user_id),
                "reset_seconds": budgets.reset_seconds(user.user_id),
                "over_limit": budgets.of(user.user_id).over,
                "grants": len(simulator.tokens.live(user.user_id)),
            }
            for user in world.users.values()
        ],
        "sections": [
            {
                "section_id": section.section_id,
                "section_name": section.section_name,
                "section_type": section.section_type,
                "group_name": section.group_name,
                "terms": section.terms,
                "patrols": section.patrols,
            }
            for section in world.sections.values()
        ],
        "apps": [{"client_id": app.client_id, "redirect_uris": app.redirect_uris} for app in world.apps.values()],
        "faults": simulator.faults.waiting,
        "fault_kinds": MEANINGS,
        "holds": [
            {"hold": gate.hold, "waiting": gate.waiting, "reached": gate.reached}
            for gate in simulator.holds.gates.values()
        ],
        "last_call": simulator.calls.last_number,
    }


def answer(value: Any, status: int = 200) -> web.Response:
    """JSON."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def _query(request: web.Request, kind: Any) -> Any:
    try:
        return msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(400, "invalid_input", f"query: {error}") from None


def _own_pages_only(request: web.Request) -> None:
    """A page of somebody else's must not press our buttons."""
    origin = request.headers.get("Origin")
    if origin is not None and origin not in (f"http://{request.host}", f"https://{request.host}"):
        raise Problem(403, "forbidden", f"asked by a page of {origin}; accepted: pages of this simulator")
