"""Leaders and their points, from the phone to OSM and back: the acceptance criteria of the score outbox, and more."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from carrick_osmsim.server import serving as simulating
from carrick_osmsim.simulator import Simulator
from tests.conftest import emptied
from tests.osm import EAGLES, HAZEL, LIONS, ROBIN, SCOUTS, WOLVES, Osm
from tests.phone import Phone
from tests.ports import free_port
from tests.postgres_server import versions
from tests.scenario.leading import KEYS, Hall, Tell
from tests.service import register, service, serving

NEWCOMERS = ["Fern Brook", "Moss Bank", "Reed Marsh", "Briar Lane", "Heath Common", "Rill Waters", "Sedge Fenland"]
"""Leaders of the scouts beside those that the simulator has."""


def test_ac01_a_submission_without_an_idempotency_key_is_refused(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        body = {"updates": [{"patrolId": str(EAGLES), "points": 5}]}
        status, answer, _ = await hall.robin.ask("POST", f"/api/admin/sections/{SCOUTS}/scores", body)
        assert (status, answer["message"]) == (400, "Idempotency key required")

    tell(story)


def test_ac02_the_same_key_again_has_one_effect_and_the_same_answer(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        first = await hall.robin.give({EAGLES: 5}, key="once")
        assert first[0] == 200
        assert first[1]["patrols"][0]["newScore"] == before + 5
        assert await hall.robin.give({EAGLES: 5}, key="once") == first
        copies = await asyncio.gather(*(hall.robin.give({EAGLES: 1}, key="%") for _ in range(20)))
        assert [copies[0][0], *copies] == [200, *[copies[0]] * 20]
        status, answer = await hall.robin.give({EAGLES: 6}, key="once")
        assert (status, answer["error"]) == (409, "key_reused")
        assert await hall.osm.points(EAGLES) == before + 6
        assert len(await hall.robin.history()) == 2

    tell(story)


def test_ac03_of_three_patrols_one_fails_and_retries_by_itself(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = {patrol: await hall.osm.points(patrol) for patrol in (EAGLES, LIONS, WOLVES)}
        await hall.osm.control("fault", kind="server_error", endpoint="points", patrol_id=WOLVES)
        status, answer = await hall.robin.give({EAGLES: 1, LIONS: 2, WOLVES: 3})
        assert status == 202
        assert [patrol["success"] for patrol in answer["patrols"]] == [True, True, False]
        assert answer["patrols"][2]["isTemporaryError"]
        assert await hall.osm.points(WOLVES) == before[WOLVES]
        await hall.later(1000)
        await hall.settled()
        assert {patrol: await hall.osm.points(patrol) - before[patrol] for patrol in before} == {
            EAGLES: 1,
            LIONS: 2,
            WOLVES: 3,
        }

    tell(story)


def test_ac04_a_rate_limit_is_waited_for_as_long_as_osm_says(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        await hall.osm.control("fault", kind="rate_limited", retry_after=1, endpoint="points")
        status, answer = await hall.robin.give({EAGLES: 5})
        assert status == 202
        assert "OSM asks us to wait" in answer["pending"]["message"]
        assert "retryAfter" in answer["patrols"][0]
        await hall.osm.control("budget", user_id=ROBIN, remaining=1000)
        await hall.settled()
        assert await hall.osm.points(EAGLES) == before + 5

    tell(story)


def test_ac05_points_that_waited_for_a_sign_in_go_on_after_it(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        await hall.robin.give({EAGLES: 3}, mode="background")
        await hall.osm.control("revoke", user_id=ROBIN)
        status, answer = await hall.robin.give({EAGLES: 5})
        assert status == 202
        assert "sign in again" in answer["pending"]["message"]
        reasons = {(line["state"], line["reason"]) for line in await hall.robin.pending()}
        assert reasons == {("pending", "auth_revoked")}
        assert (await hall.robin.give({EAGLES: 1}))[0] == 202, "points are taken all the same"
        status, answer, _ = await hall.robin.ask("GET", f"/api/admin/sections/{SCOUTS}/history")
        assert (status, answer["error"]) == (403, "sign_in_again"), "and nothing is shown to who OSM does not know"
        assert await hall.robin.waiting() == 3
        await hall.robin.sign_in()
        await hall.settled()
        assert await hall.osm.points(EAGLES) == before + 9

    tell(story)


def test_ac06_the_session_counts_what_is_on_its_way(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        assert await hall.robin.waiting() == 0
        await hall.robin.give({EAGLES: 5, LIONS: 1}, mode="background")
        assert await hall.robin.waiting() == 2
        await hall.later(60)
        await hall.settled()

    tell(story)


def test_ac07_displays_show_what_is_on_its_way(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        token = await hall.service.device_token()
        headers = {"Authorization": f"Bearer {token}"}
        async with hall.service.session.ws_connect(f"{hall.service.url}/ws/device", headers=headers) as news:

            async def when_told() -> dict[str, Any]:
                assert await news.receive_json(timeout=20) == {"type": "refresh-scores"}
                return await _shown(hall, token, EAGLES)

            await _shown(hall, token, EAGLES)
            at_first = await when_told()
            await hall.robin.give({EAGLES: 5}, mode="background")
            assert await when_told() == at_first | {"pendingDelta": 5, "hasPending": True}
            await hall.later(60)
            assert await when_told() == at_first | {"score": at_first["score"] + 5}

    tell(story)


async def _shown(hall: Hall, token: str, patrol: int) -> dict[str, Any]:
    status, scores, _ = await hall.service.get("/api/v1/patrols", Authorization=f"Bearer {token}")
    assert status == 200, scores
    found: dict[str, Any] = next(one for one in scores["patrols"] if one["id"] == str(patrol))
    return found


def test_ac08_the_history_has_one_line_per_entry_and_only_of_what_osm_has_taken(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        await hall.osm.control("fault", kind="server_error", endpoint="points", times=1)
        await hall.robin.give([(EAGLES, 5), (EAGLES, 3)])
        assert await hall.robin.history() == []
        await hall.later(1000)
        await hall.settled()
        lines = await hall.robin.history()
        assert [(line["points"], line["previousScore"], line["newScore"]) for line in lines] == [
            (3, before + 5, before + 8),
            (5, before, before + 5),
        ]
        assert {line["userName"] for line in lines} == {"Robin Merriweather"}

    tell(story)


async def leaders(hall: Hall, stack: AsyncExitStack) -> dict[str, Phone]:
    """Ten leaders of the scouts, signed in, by name; Robin is the first."""
    for number, name in enumerate(NEWCOMERS, 100_011):
        await hall.osm.control("user", user_id=number, full_name=name, write=[SCOUTS])
    people = (await hall.osm.state())["users"]
    names = {user["user_id"]: user["full_name"] for user in people if user["rights"].get(str(SCOUTS)) == "write"}
    found = {names.pop(ROBIN): hall.robin}
    for user_id, name in names.items():
        found[name] = await stack.enter_async_context(Phone(hall.service.url, user_id))
        await found[name].sign_in()
    return found


@pytest.mark.parametrize(("merged", "writes"), [("false", 10 + 5), ("true", 1 + 1)])
def test_ac09_ten_leaders_at_once_share_a_read_and_keep_their_own_entries(tell: Tell, merged: str, writes: int) -> None:
    async def story(hall: Hall) -> None:
        async with AsyncExitStack() as stack:
            people = await leaders(hall, stack)
            before = {patrol: await hall.osm.points(patrol) for patrol in (EAGLES, LIONS)}
            gave = {
                name: [(EAGLES, number), (EAGLES, 2)] if number % 2 else [(EAGLES, number), (LIONS, -number)]
                for number, name in enumerate(people, 1)
            }
            answers = [phone.give(gave[name], mode="background") for name, phone in people.items()]
            assert {status for status, _ in await asyncio.gather(*answers)} == {202}
            assert await hall.osm_calls() == []
            await hall.later(1300)
            for phone in people.values():
                await hall.settled(phone)
            assert await hall.osm.points(EAGLES) == before[EAGLES] + sum(range(1, 11)) + 5 * 2
            assert await hall.osm.points(LIONS) == before[LIONS] - (2 + 4 + 6 + 8 + 10)
            calls = await hall.osm_calls()
            assert (calls.count("read"), calls.count("write")) == (1, writes)
            for name, phone in people.items():
                assert await phone.pending() == []
                lines = [line for line in await phone.history() if line["userName"] == name]
                assert sorted((int(line["patrolId"]), line["points"]) for line in lines) == sorted(gave[name])
            for patrol, score in before.items():
                check_chain([line for line in await hall.robin.history() if line["patrolId"] == str(patrol)], score)

    assert len(NEWCOMERS) == 10 - 3
    tell(story, SCORE_MERGE_LEADERS=merged, SCORE_DEBOUNCE_SECONDS="600")


def check_chain(lines: list[dict[str, Any]], score: int) -> None:
    """Each line begins where one other ended, and the first one at that score."""
    following = {line["previousScore"]: line for line in lines}
    for _ in lines:
        line = following.pop(score)
        assert line["newScore"] == score + line["points"]
        score = line["newScore"]
    assert not following


def test_ac10_interactive_points_do_not_wait_for_a_debounce(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        status, answer = await hall.robin.give({EAGLES: 5})
        assert (status, answer["status"]) == (200, "applied")

    tell(story, SCORE_DEBOUNCE_SECONDS="3600")


def test_ac11_background_points_wait_for_each_other(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        for _ in range(10):
            status, answer = await hall.robin.give({EAGLES: 1}, mode="background")
            assert (status, answer["status"]) == (202, "accepted")
        assert await hall.osm_calls() == []
        await hall.later(60)
        await hall.settled()
        assert await hall.osm.points(EAGLES) == before + 10
        assert await hall.osm_calls() == ["read", "write"]

    tell(story)


def test_ac12_many_submissions_for_one_patrol_at_once_add_up() -> None:
    """With two replicas, step by step: tests/contract/scores/test_concurrency.py."""

    async def main() -> None:
        url = emptied(versions()[0])
        async with service(url, state=None, **KEYS) as one, Phone(one.url) as robin:
            await robin.sign_in()
            before = await one.osm.points(EAGLES)
            gave = await asyncio.gather(*(robin.give({EAGLES: 1}) for _ in range(20)))
            assert {status for status, _ in gave} <= {200, 202}
            while await robin.waiting():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert await one.osm.points(EAGLES) == before + 20

    asyncio.run(main())


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
def test_accepting_points_needs_no_osm_and_they_go_out_by_themselves_when_it_is_back(
    on: str, sqlite_path: Path
) -> None:
    url = f"sqlite:///{sqlite_path}" if on == "sqlite" else emptied(versions()[0])

    async def main() -> None:
        simulator, osm, port = Simulator(), Osm(free_port()), free_port()
        async with AsyncExitStack() as stack:
            async with simulating(simulator, port=osm.port):
                await register(osm, port)
                running = await stack.enter_async_context(serving(osm, url, port, **KEYS))
                robin = await stack.enter_async_context(Phone(running.url))
                await robin.sign_in()
                before = await osm.points(EAGLES)
            status, answer = await robin.give({EAGLES: 5})
            assert (status, answer["success"], await robin.waiting()) == (202, True, 1)
            (line,) = await robin.pending()
            assert (line["state"], line["reason"]) == ("pending", "osm_unavailable")
            async with simulating(simulator, port=osm.port):
                while await robin.waiting():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                assert await osm.points(EAGLES) == before + 5
                assert await robin.pending() == []

    asyncio.run(main())


def test_points_are_taken_back_by_their_own_leader_once(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        await hall.robin.give({EAGLES: 5})
        (line,) = await hall.robin.history()
        async with Phone(hall.service.url, HAZEL) as hazel:
            await hazel.sign_in()
            undo = f"/api/admin/history/{line['id']}/undo"
            assert (await hazel.ask("POST", undo, X_Idempotency_Key="h"))[0] == 404
        assert (await hall.robin.ask("POST", undo, X_Idempotency_Key="u"))[0] == 200
        assert (await hall.robin.ask("POST", undo, X_Idempotency_Key="u"))[0] == 200
        assert (await hall.robin.ask("POST", undo, X_Idempotency_Key="v"))[0] == 409
        assert await hall.osm.points(EAGLES) == before
        newest, oldest = await hall.robin.history()
        assert oldest["undoneBy"] == newest["id"]

    tell(story)


def test_points_that_need_a_person_are_applied_anyway_or_discarded(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        for choice, difference in (("retry", 12), ("discard", 7)):
            before = await hall.osm.points(EAGLES)
            await hall.osm.control("fault", kind="apply_then_drop", endpoint="points", times=1)
            await hall.robin.give({EAGLES: 5})
            await hall.osm.control("points", section_id=SCOUTS, patrol_id=EAGLES, points=before + 7)
            await hall.later(1000)
            while (await hall.robin.pending())[0]["reason"] != "needs_review":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            (line,) = await hall.robin.pending()
            assert (line["state"], line["expected"], line["found"]) == ("dead", before + 5, before + 7)
            status, _, _ = await hall.robin.ask("POST", f"/api/admin/pending/{line['id']}/{choice}")
            assert status in (202, 204)
            await hall.settled()
            assert await hall.osm.points(EAGLES) == before + difference
            assert await hall.robin.pending() == []

    tell(story)


def test_a_sign_out_loses_nothing_that_waits(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        before = await hall.osm.points(EAGLES)
        await hall.robin.give({EAGLES: 5}, mode="background")
        assert (await hall.robin.ask("POST", "/admin/logout"))[0] == 204
        assert (await hall.robin.ask("GET", "/api/admin/session"))[1] == {"authenticated": False}
        await hall.later(60)
        while await hall.osm.points(EAGLES) != before + 5:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    tell(story)


def test_a_page_without_the_mark_is_asked_before_it_signs_anybody_out(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        browser = hall.robin.browser
        for _ in range(2):
            asked = await browser.post("/admin/logout", {})
            assert (asked.status, urlsplit(asked.url).path) == (200, "/admin/logout")
            assert "You are signed in as Robin" in asked.text
        forged = await browser.post("/admin/logout", {"csrf": "x" * 64})
        assert "Sign out?" in forged.text
        assert (await hall.robin.ask("GET", "/api/admin/session"))[1]["authenticated"]
        done = await browser.send(asked)
        assert (done.status, urlsplit(done.url).path) == (200, "/admin/logout")
        assert "You are signed out" in done.text
        assert (await hall.robin.ask("GET", "/api/admin/session"))[1] == {"authenticated": False}

    tell(story)


@pytest.mark.parametrize(
    "body",
    [
        {"updates": []},
        {"updates": [{"patrolId": str(EAGLES), "points": 0}]},
        {"updates": [{"patrolId": str(EAGLES), "points": 1001}]},
        {"updates": [{"patrolId": "x", "points": 1}]},
        {"updates": [{"patrolId": str(EAGLES), "points": 1}] * 51},
        {"updates": [{"points": 1}]},
        {},
        [],
    ],
    ids=str,
)
def test_points_that_make_no_sense_are_refused_in_words(sqlite_path: Path, body: Any) -> None:
    async def main() -> None:
        async with service(f"sqlite:///{sqlite_path}") as running, Phone(running.url) as robin:
            await robin.sign_in()
            path = f"/api/admin/sections/{SCOUTS}/scores"
            status, answer, _ = await robin.ask("POST", path, body, X_Idempotency_Key="k")
            assert status == 400
            assert len(answer["message"]) > 10
            assert await robin.pending() == []

    asyncio.run(main())


def test_the_settings_of_a_section_name_it_and_its_patrols(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        path = f"/api/admin/sections/{SCOUTS}/settings"
        patrols = [("72699", "Eagles"), ("72700", "Lions"), ("132322", "Wolves")]
        named = {"sectionId": SCOUTS, "patrols": [{"id": number, "name": name} for number, name in patrols]}
        assert (await hall.robin.ask("GET", path))[:2] == (200, named | {"patrolColors": {}})
        colours = {"patrolColors": {str(EAGLES): "red"}}
        assert (await hall.robin.ask("PUT", path, colours))[:2] == (200, named | colours)

    tell(story)


def test_the_colours_of_a_section_are_told_when_osm_cannot_name_its_patrols(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        await hall.osm.control("fault", kind="server_error", times=None)
        status, settings, _ = await hall.robin.ask("GET", f"/api/admin/sections/{SCOUTS}/settings")
        assert (status, settings) == (200, {"sectionId": SCOUTS, "patrolColors": {}, "patrols": []})

    tell(story)


def test_colours_and_scores_of_a_section(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        path = f"/api/admin/sections/{SCOUTS}"
        assert (await hall.robin.ask("PUT", f"{path}/settings", {"patrolColors": {str(EAGLES): "red"}}))[0] == 200
        assert (await hall.robin.ask("PUT", f"{path}/settings", {"patrolColors": {str(EAGLES): "mud"}}))[0] == 400
        status, scores, _ = await hall.robin.ask("GET", f"{path}/scores")
        assert status == 200
        assert scores["settings"] == {"patrolColors": {str(EAGLES): "red"}}
        assert [patrol["name"] for patrol in scores["patrols"]] == ["Eagles", "Lions", "Wolves"]
        assert scores["section"]["name"] == "Wold Scouts"
        status, refreshed, _ = await hall.robin.ask("POST", f"{path}/refresh")
        assert status == 200
        assert refreshed["patrols"] == scores["patrols"]

    tell(story)


def test_a_read_that_began_before_points_arrived_does_not_hide_them(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        path = f"/api/admin/sections/{SCOUTS}"
        before = (await hall.robin.ask("GET", f"{path}/scores"))[1]["patrols"][0]["score"]
        await hall.osm.control("hold", name="read", point="before_answer", endpoint="patrols")
        reading = asyncio.create_task(hall.robin.ask("POST", f"{path}/refresh"))
        await hall.osm.reached("read")
        assert (await hall.robin.give({EAGLES: 5}))[0] == 200
        await hall.osm.control("release", name="read")
        status, scores, _ = await reading
        assert status == 200
        assert scores["patrols"][0]["score"] == before + 5
        assert (await hall.robin.ask("GET", f"{path}/scores"))[1]["patrols"][0]["score"] == before + 5

    tell(story)


def test_a_link_to_the_board_has_a_qr_code_and_ends_when_the_leader_ends_it(tell: Tell) -> None:
    async def story(hall: Hall) -> None:
        path = f"/api/admin/sections/{SCOUTS}/boards"
        _, link, _ = await hall.robin.ask("POST", path)
        status, picture, headers = await hall.service.get(f"/board/{link['token']}/qr.svg")
        assert (status, headers["Content-Type"]) == (200, "image/svg+xml")
        assert "<svg" in picture
        status, scores, _ = await hall.service.get(f"/api/board/{link['token']}")
        assert (status, scores["section"]["name"]) == (200, "Wold Scouts")
        assert (await hall.robin.ask("DELETE", f"{path}/{link['token']}"))[0] == 204
        for gone in (f"/board/{link['token']}/qr.svg", f"/api/board/{link['token']}"):
            assert (await hall.service.get(gone))[0] == 404

    tell(story)
