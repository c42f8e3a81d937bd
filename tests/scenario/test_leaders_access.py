"""Whose points, sections, links and displays they are: nobody else reads or changes them, and no other site does."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.osm import EAGLES, HAZEL, SCOUTS, WILLOW
from tests.phone import Phone
from tests.scenario.leading import Hall, Tell

SECTION, PENDING, BOARD = "/api/admin/sections/{section_id}", "/api/admin/pending/{id}", "/api/admin/scoreboards/{id}"
OF_A_SECTION: dict[tuple[str, str], Any] = {
    ("GET", f"{SECTION}/scores"): None,
    ("POST", f"{SECTION}/scores"): {"updates": [{"patrolId": str(EAGLES), "points": 5}]},
    ("GET", f"{SECTION}/history"): None,
    ("POST", f"{SECTION}/refresh"): None,
    ("GET", f"{SECTION}/settings"): None,
    ("PUT", f"{SECTION}/settings"): {"patrolColors": {str(EAGLES): "blue"}},
    ("POST", f"{SECTION}/boards"): None,
    ("DELETE", f"{SECTION}/boards/{{token}}"): None,
}
OF_A_LEADER: dict[tuple[str, str], Any] = {
    ("POST", "/api/admin/history/{id}/undo"): None,
    ("POST", f"{PENDING}/retry"): None,
    ("POST", f"{PENDING}/discard"): None,
    ("PUT", f"{BOARD}/name"): {"name": "Mine"},
    ("PUT", f"{BOARD}/section"): {"sectionId": "40102"},
    ("DELETE", BOARD): None,
}
"""Every request about one object, and its body."""


class Property:
    """What Robin has: points in OSM and points that were refused, a link to the board, and a display."""

    def __init__(self, hall: Hall, token: str, numbers: dict[str, int]) -> None:
        self._hall = hall
        self.token = token
        self._numbers = numbers

    @classmethod
    async def of(cls, hall: Hall) -> Property:
        await hall.service.device_token()
        await hall.robin.give({EAGLES: 5})
        await hall.robin.give({999: 5})
        section = f"/api/admin/sections/{SCOUTS}"
        await hall.robin.ask("PUT", f"{section}/settings", {"patrolColors": {str(EAGLES): "red"}})
        _, link, _ = await hall.robin.ask("POST", f"{section}/boards")
        _, boards, _ = await hall.robin.ask("GET", "/api/admin/scoreboards")
        (applied,), (dead,) = await hall.robin.history(), await hall.robin.pending()
        assert dead["state"] == "dead"
        numbers = {"history": applied["id"], "pending": dead["id"], "scoreboards": boards["scoreboards"][0]["id"]}
        return cls(hall, link["token"], numbers)

    def path(self, template: str) -> str:
        """Where that object of Robin's is."""
        number = next((number for kind, number in self._numbers.items() if f"/{kind}/{{id}}" in template), 0)
        return template.format(section_id=SCOUTS, id=number, token=self.token)

    async def all(self) -> list[Any]:
        """Everything that somebody else could have changed."""
        asked = ["/api/admin/pending", "/api/admin/scoreboards"]
        asked += [f"/api/admin/sections/{SCOUTS}/{name}" for name in ("history", "settings")]
        found = [(await self._hall.robin.ask("GET", path))[:2] for path in asked]
        board, _, _ = await self._hall.service.get(f"/api/board/{self.token}")
        return [*found, board, await self._hall.osm.points(EAGLES)]


async def described(hall: Hall) -> set[tuple[str, str]]:
    """The requests of the leaders' API about one object, as it describes itself."""
    _, document, _ = await hall.service.get("/api/openapi.json")
    paths = {path: methods for path, methods in document["paths"].items() if path.startswith("/api/admin/")}
    return {(method.upper(), path) for path, methods in paths.items() for method in methods if "{" in path}


def test_nothing_of_another_leader_or_section_is_read_or_changed(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        assert await described(hall) == {*OF_A_SECTION, *OF_A_LEADER}
        _, sections, _ = await hall.robin.ask("GET", "/api/admin/sections")
        assert {section["id"] for section in sections["sections"]} == {SCOUTS, 40103}
        robins = await Property.of(hall)
        before = await robins.all()
        calls = len(await hall.osm.calls())
        for user_id, closed in ((WILLOW, OF_A_SECTION | OF_A_LEADER), (HAZEL, OF_A_LEADER)):
            async with Phone(hall.service.url, user_id) as other:
                await other.sign_in()
                for (method, template), body in closed.items():
                    status, answer, _ = await other.ask(method, robins.path(template), body, X_Idempotency_Key="k")
                    assert (status, answer["error"]) in {(404, "not_found"), (404, "section_not_found")}, template
                own = 40102 if user_id == HAZEL else 40202
                assert (await other.ask("DELETE", f"/api/admin/sections/{own}/boards/{robins.token}"))[0] == 404
                assert await other.pending() == []
                assert (await other.ask("GET", "/api/admin/scoreboards"))[1] == {"scoreboards": []}
        signed_in = [call for call in (await hall.osm.calls())[calls:] if call["endpoint"] in ("patrols", "points")]
        assert signed_in == [], "OSM is not asked about what is somebody else's"
        assert await robins.all() == before

    tell(story)


def test_what_changes_something_needs_the_mark_of_its_session(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        robins = await Property.of(hall)
        before, own = await robins.all(), hall.robin.csrf
        logout = "/admin/logout"
        changing = {**OF_A_SECTION, **OF_A_LEADER, ("POST", logout): None}
        for (method, template), body in changing.items():
            if method == "GET":
                continue
            path = robins.path(template)
            for mark in ("", own[:-1], "x" * 64):
                hall.robin.csrf = mark
                status, answer, _ = await hall.robin.ask(method, path, body, X_Idempotency_Key="k")
                assert (status, answer["error"]) == (403, "csrf_invalid"), template
            hall.robin.csrf = own
            status, answer, _ = await hall.robin.ask(method, path, body, Origin="http://evil.example")
            assert (status, answer["error"]) == (403, "csrf_invalid"), template
            if path == logout:
                continue  # without a mark it asks first
            async with hall.robin.browser.session.request(method, hall.service.url + path, json=body) as bare:
                assert (bare.status, (await bare.json())["error"]) == (403, "csrf_required"), template
        assert await robins.all() == before

    tell(story)


def test_a_session_and_its_cookie_last_a_week_from_the_last_look(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        for _ in range(3):
            await hall.later(5 * 86_400)
            _, session, headers = await hall.robin.ask("GET", "/api/admin/session")
            assert session["authenticated"]
            assert "osm_admin_session=" in headers["Set-Cookie"]
            assert "Max-Age=604800" in headers["Set-Cookie"]
        await hall.later(8 * 86_400)
        assert (await hall.robin.ask("GET", "/api/admin/session"))[1] == {"authenticated": False}

    tell(story)


def test_a_leader_renames_moves_and_shuts_out_their_own_displays(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        token = await hall.service.device_token()
        _, answer, _ = await hall.robin.ask("GET", "/api/admin/scoreboards")
        (line,) = answer["scoreboards"]
        path = f"/api/admin/scoreboards/{line['id']}"
        assert (await hall.robin.ask("PUT", f"{path}/name", {"name": "Den"}))[1]["name"] == "Den"
        assert (await hall.robin.ask("PUT", f"{path}/section", {"sectionId": 40103}))[1]["sectionId"] == 40103
        assert (await hall.robin.ask("PUT", f"{path}/section", {"sectionId": "40202"}))[0] == 404
        assert (await hall.robin.ask("DELETE", path))[0] == 204
        while (await hall.service.get("/api/v1/patrols", Authorization=f"Bearer {token}"))[0] != 401:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    tell(story)
