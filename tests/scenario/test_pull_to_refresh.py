"""A leader pulls to refresh while OSM limits, fails or blocks: nobody loses the scores that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.osm import EAGLES, HAZEL, ROBIN, SCOUTS
from tests.phone import Phone
from tests.service import Service, service

SECTION = f"/api/admin/sections/{SCOUTS}"
Seen = tuple[int, int, bool]
"""Status, the eagles' score, and whether it is said to be stale."""


def seen(status: int, answer: Any) -> Seen:
    eagles = next(patrol for patrol in answer["patrols"] if patrol["id"] == str(EAGLES))
    return status, eagles["score"], answer["stale"]


def evening(path: Path, story: Callable[[Service, Phone], Awaitable[None]]) -> None:
    """A scoreboard with a leader."""

    async def main() -> None:
        async with service(f"sqlite:///{path}") as running, Phone(running.url) as robin:
            await robin.sign_in()
            await story(running, robin)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"kind": "rate_limited", "retry_after": 600}, "OSM asks us to wait before we read again."),
        ({"kind": "server_error"}, "OSM did not answer."),
        ({"kind": "blocked_header"}, "OSM has blocked this service."),
    ],
)
def test_a_pull_that_osm_refuses_leaves_the_scores_to_leader_board_and_display(
    sqlite_path: Path, fault: dict[str, Any], why: str
) -> None:
    async def story(running: Service, robin: Phone) -> None:
        display = {"Authorization": f"Bearer {await running.device_token()}"}
        _, link, _ = await robin.ask("POST", f"{SECTION}/boards")
        before = seen(*(await robin.ask("GET", f"{SECTION}/scores"))[:2])
        assert before[::2] == (200, False)
        await running.osm.control("fault", endpoint="resource", times=None, **fault)
        for _ in range(2):
            status, pulled, _ = await robin.ask("POST", f"{SECTION}/refresh")
            assert (seen(status, pulled), pulled["message"]) == ((200, before[1], True), why)
            assert pulled["fetchedAt"]
        status, again, _ = await robin.ask("GET", f"{SECTION}/scores")
        assert (seen(status, again)[:2], again["message"]) == (before[:2], why)
        for path, headers in ((f"/api/board/{link['token']}", {}), ("/api/v1/patrols", display)):
            status, shown, _ = await running.get(path, **headers)
            assert seen(status, shown)[:2] == before[:2]

    evening(sqlite_path, story)


def test_a_pull_reads_what_is_in_osm_now_and_costs_nothing_that_is_kept_for_displays_and_points(
    sqlite_path: Path,
) -> None:
    async def story(running: Service, robin: Phone) -> None:
        _, points, _ = seen(*(await robin.ask("GET", f"{SECTION}/scores"))[:2])
        await running.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, points=points + 7)
        pulled = seen(*(await robin.ask("POST", f"{SECTION}/refresh"))[:2])
        assert pulled == (200, points + 7, False)
        await running.osm.control("budget", user_id=ROBIN, remaining=22)
        assert seen(*(await robin.ask("POST", f"{SECTION}/refresh"))[:2]) == pulled  # two calls, and 20 are left
        calls = len(await running.osm.calls())
        assert seen(*(await robin.ask("POST", f"{SECTION}/refresh"))[:2]) == (200, points + 7, True)
        assert len(await running.osm.calls()) == calls

    evening(sqlite_path, story)


def test_a_leader_who_has_just_signed_in_sees_the_scores_although_osm_limits_them(sqlite_path: Path) -> None:
    async def story(running: Service, robin: Phone) -> None:
        points = seen(*(await robin.ask("GET", f"{SECTION}/scores"))[:2])[1]
        async with Phone(running.url, user_id=HAZEL) as hazel:
            await hazel.sign_in()
            await running.osm.control("fault", kind="rate_limited", retry_after=600, endpoint="resource", times=None)
            assert seen(*(await hazel.ask("GET", f"{SECTION}/scores"))[:2])[:2] == (200, points)

    evening(sqlite_path, story)
