"""GET /api/v1/patrols against the simulator: what devices get when all is well, and when it is not."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from carrick.web.openapi import document
from carrick_device import client
from carrick_scoreboard.osm.classify import Budget
from carrick_scoreboard.patrols import patrols
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.routes import device_socket
from carrick_scoreboard.routes.patrols import routes
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.credentials import SealedTokens
from tests.hall import Hall, in_hall
from tests.osm import ASH, EVENING, HAZEL, PERRY, ROBIN, SCOUTS
from tests.replicas import until

SCORES = {"Eagles": 32, "Lions": 30, "Wolves": 47}
LANTERNS = 40301


def noticed(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when somebody waits for another replica's lock."""
    waits, is_locked = asyncio.Event(), shelf.is_locked

    async def seen(section_id: int) -> bool:
        locked = await is_locked(section_id)
        waits.set()
        return locked

    monkeypatch.setattr(shelf, "is_locked", seen)
    return waits


@in_hall
async def test_a_device_gets_the_scores_of_its_section_by_name(hall: Hall) -> None:
    async with hall.replica() as one:
        one.sections.set_colors(SCOUTS, {"72699": "red"}, osm_user_id=ROBIN)
        one.pending["72699"] = 5
        answer = await one.get(await hall.device(one))
    assert (answer.status, answer.headers["X-Cache"]) == (200, "MISS")
    assert answer.json == {
        "patrols": [
            {"id": "72699", "name": "Eagles", "score": 32, "pendingDelta": 5, "hasPending": True},
            {"id": "72700", "name": "Lions", "score": 30, "pendingDelta": 0, "hasPending": False},
            {"id": "132322", "name": "Wolves", "score": 47, "pendingDelta": 0, "hasPending": False},
        ],
        "from_cache": False,
        "cached_at": "2026-03-02T18:30:00Z",
        "cache_expires_at": "2026-03-02T18:35:00Z",
        "rate_limit_state": "NONE",
        "stale": False,
        "settings": {"patrolColors": {"72699": "red"}},
        "websocket": {"requested": True},
    }


@in_hall
async def test_what_was_seen_a_moment_ago_is_shown_to_the_next_display_too(hall: Hall) -> None:
    hall.look_seconds = 600
    async with hall.replica() as one:
        tokens = [await hall.device(one), await hall.device(one)]
        first = [(await one.get(token)).headers["X-Cache"] for token in tokens]
        one.pending["72699"] = 5
        second = [(await one.get(token)).json["patrols"][0]["pendingDelta"] for token in tokens]
    assert (first, second) == (["MISS", "HIT"], [0, 0])


@in_hall
async def test_fresh_scores_are_served_without_asking_osm_until_they_expire(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.advance(299)
        again = await one.get(token)
        assert len(await hall.calls("patrols")) == 1
        await hall.advance(1)
        later = await one.get(token)
        assert len(await hall.calls("patrols")) == 2
    assert (again.headers["X-Cache"], again.json["from_cache"], again.json["stale"]) == ("HIT", True, False)
    assert again.json["cached_at"] == "2026-03-02T18:30:00Z"
    assert (later.headers["X-Cache"], later.json["cached_at"]) == ("MISS", "2026-03-02T18:35:00Z")


@in_hall
async def test_many_devices_of_a_section_cost_as_much_as_one(hall: Hall) -> None:
    async with hall.replica() as one:
        tokens = [await hall.device(one) for _ in range(20)] + [await hall.device(one, HAZEL)]
        answers = await asyncio.gather(*map(one.get, tokens))
        assert {answer.status for answer in answers} == {200}
        assert all(answer.points == SCORES for answer in answers)
        assert len(await hall.calls("patrols")) == 1
        assert len(await hall.calls("resource")) == 2  # one for each user


@in_hall
async def test_the_term_is_kept_with_the_device_and_looked_up_again_after_a_day(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        device = one.devices.of_token(digest(token))
        assert device is not None
        assert (device.term_id, device.term_end_date) == (50402, (EVENING + timedelta(days=50)).date())
        await hall.advance(3600)
        await one.get(token)
        assert len(await hall.calls("resource")) == 1
        await hall.advance(24 * 3600)
        await hall.sign_in(one)
        await one.get(token)
        assert len(await hall.calls("resource")) == 2


@pytest.mark.parametrize("header", [None, "Bearer nobody", "Bearer ", "Basic eA==", "Bearer " + "x" * 600])
@in_hall
async def test_who_is_no_device_is_sent_away(hall: Hall, header: str | None) -> None:
    async with hall.replica() as one:
        headers = {} if header is None else {"Authorization": header}
        async with one.session.get(f"http://127.0.0.1:{one.port}/api/v1/patrols", headers=headers) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == 'Bearer realm="API"'
            assert (await response.json())["error"] == "invalid_token"
        assert await hall.calls() == []


@in_hall
async def test_a_revoked_device_is_sent_away_within_the_time_that_is_promised(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.admission.DEVICE_SECONDS", 0.0)
    async with hall.replica() as one:
        token = await hall.device(one)
        assert (await one.get(token)).status == 200
        device = one.devices.of_token(digest(token))
        assert device is not None
        assert device.last_used_at is not None
        one.devices.revoke(device.id, None, actor="test")
        assert (await one.get(token)).status == 401


@in_hall
async def test_a_section_that_the_owner_does_not_see_is_refused_before_its_patrols_are_read(hall: Hall) -> None:
    async with hall.replica() as one:
        await one.get(await hall.device(one, ROBIN, SCOUTS))  # its scores are in the cache now
        token = await hall.device(one, PERRY, SCOUTS)
        answer = await one.get(token)
        again = await one.get(token)
        assert len(await hall.calls("patrols")) == 1
        assert len(await hall.calls("resource")) == 2
    assert (answer.status, answer.json["error"]) == (400, "section_not_found")
    assert (again.status, again.headers["Retry-After"]) == (400, "900")


@in_hall
async def test_a_section_between_terms_is_told_so_and_found_when_its_term_begins(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one, ASH, LANTERNS)
        answer = await one.get(token)
        await hall.osm.control("start-term", section_id=LANTERNS)
        await hall.advance(899)
        still = await one.get(token)
        await hall.advance(1)
        found = await one.get(token)
    assert answer.json == {"error": "not_in_term", "message": "Section is not currently in an active term"}
    assert (answer.status, still.status, found.status) == (409, 409, 200)


@in_hall
async def test_a_user_that_osm_limits_sees_old_scores_until_the_limit_ends(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.advance(300)
        await hall.osm.control("fault", kind="rate_limited", endpoint="patrols", retry_after=120)
        limited = await one.get(token)
        calls = len(await hall.calls())
        await hall.advance(119)
        again = await one.get(token)
        assert len(await hall.calls()) == calls
        await hall.advance(1)
        over = await one.get(token)
    assert (limited.status, limited.headers["X-Cache"]) == (200, "MISS")
    assert (limited.points, limited.json["stale"], limited.json["from_cache"]) == (SCORES, True, True)
    assert (limited.json["rate_limit_state"], limited.json["cached_at"]) == ("BLOCKED", "2026-03-02T18:30:00Z")
    assert limited.json["cache_expires_at"] == "2026-03-02T18:37:00Z"
    assert (again.headers["X-Cache"], again.json["rate_limit_state"]) == ("HIT", "BLOCKED")
    assert (over.json["stale"], over.json["rate_limit_state"]) == (False, "NONE")


@in_hall
async def test_without_scores_a_limited_user_is_told_until_when(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await hall.osm.control("fault", kind="rate_limited", endpoint="patrols", retry_after=120)
        answer = await one.get(token)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "120")
    assert answer.json == {
        "error": "rate_limited",
        "message": "Too many requests, retry after 120 seconds",
        "retry_after": 120,
        "blocked_until": "2026-03-02T18:32:00Z",
    }


@pytest.mark.parametrize(
    ("remaining", "minutes", "state"),
    [(201, 5, "NONE"), (200, 10, "DEGRADED"), (100, 15, "DEGRADED"), (20, 30, "DEGRADED"), (12, 30, "DEGRADED")],
)
@in_hall
async def test_the_less_is_left_of_the_budget_the_longer_scores_are_fresh(
    hall: Hall, remaining: int, minutes: int, state: str
) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)  # the term is known now
        await hall.advance(300)
        await hall.osm.control("budget", user_id=ROBIN, remaining=remaining)
        answer = await one.get(token)
    assert (answer.expires_at - hall.now(), answer.json["rate_limit_state"]) == (timedelta(minutes=minutes), state)


@in_hall
async def test_reads_go_on_at_their_pace_until_what_is_left_is_for_points(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await hall.osm.control("budget", user_id=ROBIN, remaining=13)
        shown = []
        for _ in range(4):  # the term and the scores, then the scores alone
            answer = await one.get(token)
            shown.append((answer.json["stale"], answer.json["rate_limit_state"]))
            await hall.advance(30 * 60)
            await hall.osm.control("budget", user_id=ROBIN, remaining=11 if len(shown) == 1 else 10)
            await one.standing.note_budget(ROBIN, Budget(1000, 11 if len(shown) == 1 else 10, 3600))
    assert shown == [(False, "DEGRADED"), (False, "DEGRADED"), (True, "DEGRADED"), (True, "DEGRADED")]


@in_hall
async def test_a_service_block_stops_every_call_and_shows_old_scores(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token, other = await hall.device(one), await hall.device(one, ROBIN, 40103)
        await one.get(token)
        await hall.advance(300)
        await hall.osm.control("block", style="page")
        blocked = await one.get(token)
        calls = len(await hall.calls())
        for _ in range(3):
            await hall.advance(600)
            assert (await two.get(token)).json["service_blocked"]
            without = await two.get(other)
        assert len(await hall.calls()) == calls
        assert one.value("osm_service_blocked") == two.value("osm_service_blocked") == 1
        assert (one.value("osm_block_events_total"), two.value("osm_block_events_total")) == (1, 0)
    assert (blocked.status, blocked.points, blocked.json["stale"]) == (200, SCORES, True)
    assert (blocked.json["service_blocked"], blocked.json["rate_limit_state"]) == (True, "BLOCKED")
    assert blocked.expires_at > EVENING + timedelta(seconds=300)
    assert (without.status, without.json["error"], without.headers["Retry-After"]) == (503, "service_blocked", "300")


@in_hall
async def test_a_revoked_sign_in_is_refused_at_once_and_on_every_device(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.patrols.patrols.REVOKED_SECONDS", 0.0)
    async with hall.replica() as one, hall.replica("two") as two:
        token, other = await hall.device(one), await hall.device(one, ROBIN, 40103)
        assert [(await one.get(each)).status for each in (token, other)] == [200, 200]
        await hall.osm.control("revoke", user_id=ROBIN)
        await hall.advance(300)
        answer = await one.get(token)
        calls = len(await hall.calls())
        elsewhere = await two.get(other)
        assert len(await hall.calls()) == calls
        await hall.sign_in(one)
        assert (await two.get(other)).status == 200
    assert (answer.status, answer.json["error"]) == (403, "blocked")
    assert (elsewhere.status, elsewhere.json["error"]) == (403, "blocked")


@in_hall
async def test_the_request_that_finds_the_sign_in_revoked_shows_no_old_scores_either(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.osm.control("revoke", user_id=ROBIN)
        await hall.advance(300)
        assert (await one.get(token)).status == 403


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ({"kind": "server_error"}, 502, "upstream_error"),
        ({"kind": "drop_before_apply"}, 502, "upstream_error"),
        ({"kind": "error_200"}, 502, "upstream_error"),
        ({"kind": "empty_body"}, 502, "upstream_error"),
        ({"kind": "wrong_structure"}, 500, "internal_error"),
        ({"kind": "invalid_json"}, 500, "internal_error"),
    ],
)
@in_hall
async def test_failures_of_osm_are_told_and_remembered_and_old_scores_are_shown(
    hall: Hall, fault: dict[str, Any], status: int, error: str
) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await hall.osm.control("fault", endpoint="patrols", times=None, **fault)
        answer = await one.get(token)
        calls = len(await hall.calls())
        again = await one.get(token)
        assert len(await hall.calls()) == calls
        await hall.osm.control("clear-faults")
        await hall.advance(60)
        assert (await one.get(token)).points == SCORES
        await hall.osm.control("fault", endpoint="patrols", times=None, **fault)
        await hall.advance(300)
        stale = await one.get(token)
    assert (answer.status, answer.json["error"], answer.headers["Retry-After"]) == (status, error, "60")
    assert (again.status, again.json["error"]) == (status, error)
    assert (stale.status, stale.points, stale.json["stale"]) == (200, SCORES, True)
    assert stale.expires_at - hall.now() == timedelta(seconds=60)


@in_hall
async def test_a_refusal_for_one_user_does_not_keep_others_from_the_section(hall: Hall) -> None:
    async with hall.replica() as one:
        token, hazels = await hall.device(one), await hall.device(one, HAZEL)
        no = '{"error":"You do not have permission"}'
        await hall.osm.control("fault", kind="custom", status=403, text=no, endpoint="patrols", user_id=ROBIN)
        refused = await one.get(token)
        answer = await one.get(hazels)
        shared = await one.get(token)
    assert (refused.status, answer.status) == (502, 200)
    assert (shared.points, shared.json["stale"]) == (SCORES, False)


@in_hall
async def test_scores_and_colours_changed_on_one_replica_show_on_the_other(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        assert [(await each.get(token)).points for each in (one, two)] == [SCORES, SCORES]
        await hall.osm.control("points", section_id=SCOUTS, patrol_id=72699, points=99)
        await hall.advance(300)
        await one.get(token)
        two.sections.set_colors(SCOUTS, {"72700": "blue"}, osm_user_id=ROBIN)
        answer = await two.get(token)
        assert (answer.headers["X-Cache"], answer.points["Eagles"]) == ("HIT", 99)
        assert (await one.get(token)).json["settings"] == {"patrolColors": {"72700": "blue"}}
        assert len(await hall.calls("patrols")) == 2


@in_hall
async def test_values_that_another_release_wrote_are_read_anew(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        for key in (f"patrol_scores:{SCOUTS}", f"osm_term:{SCOUTS}:{ROBIN}", f"osm_ratelimit:{ROBIN}"):
            await one.kv.set(key, b'{"v": 2}', ttl=3600)
        assert (await one.get(token)).points == SCORES


@in_hall
async def test_a_device_that_goes_away_leaves_the_answer_to_the_others(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        device = one.devices.of_token(digest(token))
        assert device is not None
        await hall.osm.control("hold", name="read", endpoint="patrols")
        gone, waiting = [asyncio.create_task(one.patrols.scores(device)) for _ in range(2)]
        await hall.osm.reached("read")
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        await hall.osm.control("release", name="read")
        assert not (await waiting).scores.stale
        assert len(await hall.calls("patrols")) == 1


@in_hall
async def test_of_two_replicas_one_asks_osm_and_the_other_waits_for_its_answer(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        await hall.osm.control("hold", name="read", endpoint="patrols")
        first = asyncio.create_task(one.get(token))
        await hall.osm.reached("read")
        waits = noticed(two.shelf, monkeypatch)
        second = asyncio.create_task(two.get(token))
        await waits.wait()  # it has seen the lock, and asked nobody
        await hall.osm.control("release", name="read")
        answers = await asyncio.gather(first, second)
        assert len(await hall.calls("patrols")) == 1
    assert [(answer.points, answer.headers["X-Cache"]) for answer in answers] == [(SCORES, "MISS")] * 2


@in_hall
async def test_a_replica_does_with_old_scores_when_the_one_that_asks_osm_has_died(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.patrols.fetching.WAIT_SECONDS", 0.1)
    async with hall.replica() as one:
        token, other = await hall.device(one), await hall.device(one, ROBIN, 40103)
        await one.get(token)
        await hall.advance(300)
        for section_id in (SCOUTS, 40103):
            assert await one.shelf.take_lock(section_id, b"dead", 60)
        answer, without = await one.get(token), await one.get(other)
        assert len(await hall.calls("patrols")) == 1
        await hall.advance(60)  # the lock has ended
        assert not (await one.get(token)).json["stale"]
    assert (answer.points, answer.json["stale"], answer.headers["X-Cache"]) == (SCORES, True, "MISS")
    assert (without.status, without.headers["Retry-After"]) == (502, "30")


@in_hall
async def test_a_limit_at_the_token_endpoint_is_the_users(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=0)
        token = await hall.device(one)
        await hall.osm.control("fault", kind="rate_limited", endpoint="token", retry_after=90, times=None)
        answers = [await one.get(token) for _ in range(3)]
        assert len(await hall.calls()) == 1
    assert [(answer.status, answer.json["retry_after"]) for answer in answers] == [(429, 90)] * 3


@in_hall
async def test_a_credential_that_cannot_be_opened_is_an_internal_error_for_its_user_alone(hall: Hall) -> None:
    async with hall.replica() as one:
        token, hazels = await hall.device(one), await hall.device(one, HAZEL)
        one.stored.save(ROBIN, "", "", SealedTokens(b"x", b"x", 3600))
        answer, other = await one.get(token), await one.get(hazels)
    assert (answer.status, answer.json["error"], other.status) == (500, "internal_error", 200)


@in_hall
async def test_sections_take_turns_so_that_a_block_meets_no_call_on_its_way(hall: Hall) -> None:
    async with hall.replica() as one:
        tokens = [await hall.device(one, ROBIN, section_id) for section_id in (SCOUTS, 40103)]
        await asyncio.gather(*map(one.get, tokens))
        await hall.advance(300)
        await hall.osm.control("fault", kind="blocked_header", endpoint="patrols")
        await hall.osm.control("hold", name="read", endpoint="patrols", point="before_answer", times=None)
        asking = [asyncio.create_task(one.get(token)) for token in tokens]
        await hall.osm.reached("read")
        await until(lambda: len(one.patrols._fetching._under_way) == 2)
        await hall.osm.control("release", name="read")
        await asyncio.gather(*asking)
        block = (await hall.osm.state())["block"]
    assert [answer.result().json["service_blocked"] for answer in asking] == [True, True]
    assert (block["sins"], block["permanent"]) == (0, False)


@in_hall
async def test_a_section_that_gets_no_turn_does_with_what_it_has(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hall.replica() as one:
        first, second = [await hall.device(one, ROBIN, section_id) for section_id in (SCOUTS, 40103)]
        await one.get(second)
        await hall.advance(300)
        await hall.osm.control("hold", name="read", endpoint="patrols")
        asking = asyncio.create_task(one.get(first))
        await hall.osm.reached("read")
        monkeypatch.setattr("carrick_scoreboard.patrols.fetching.WAIT_SECONDS", 0.05)
        stale = await one.get(second)
        await hall.osm.control("release", name="read")
        await asking
    assert (stale.status, stale.json["stale"], stale.headers["X-Cache"]) == (200, True, "MISS")
    assert stale.expires_at - hall.now() == timedelta(seconds=30)


@in_hall
async def test_the_routes_of_devices_can_be_described(hall: Hall) -> None:
    async with hall.replica() as one:
        text = document("t", "d", [*routes(one.patrols, one.admission), *device_socket.routes(one.sockets)])
    answers = text["paths"]["/api/v1/patrols"]["get"]["responses"]
    assert set(answers) == {"200", "400", "401", "403", "409", "429", "500", "502", "503"}
    assert "pendingDelta" in text["components"]["schemas"]["PatrolScore"]["properties"]


@in_hall
async def test_a_display_is_shown_older_scores_while_osm_hangs_and_the_fetch_goes_on_behind(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.patrols.patrols.LONGEST_WAIT_FOR_NEWER_SECONDS", 0.05, raising=False)
    async with hall.replica() as one:
        one.client.timeout_seconds = 30.0
        token = await hall.device(one)
        await one.get(token)
        await hall.osm.control("points", section_id=SCOUTS, patrol_id=72699, points=99)
        await hall.advance(300)
        await hall.osm.control("hold", name="read", endpoint="patrols")
        async with asyncio.timeout(10):
            meanwhile = [await one.get(token) for _ in range(2)]
        await hall.osm.control("release", name="read")
        await asyncio.gather(*one.patrols._fetching._under_way.values())
        after = await one.get(token)
        assert len(await hall.calls("patrols")) == 2
    assert [(answer.status, answer.points, answer.json["stale"]) for answer in meanwhile] == [(200, SCORES, True)] * 2
    assert {answer.expires_at - hall.now() for answer in meanwhile} == {timedelta(seconds=30)}
    assert (after.points["Eagles"], after.json["stale"], after.headers["X-Cache"]) == (99, False, "HIT")


@in_hall
async def test_without_scores_nobody_waits_longer_than_clients_do(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrick_scoreboard.patrols.patrols.LONGEST_WAIT_SECONDS", 0.05, raising=False)
    async with hall.replica() as one:
        one.client.timeout_seconds = 30.0
        token = await hall.device(one)
        await hall.osm.control("hold", name="read", endpoint="patrols")
        async with asyncio.timeout(10):
            answer = await one.get(token)
        await hall.osm.control("release", name="read")
        await asyncio.gather(*one.patrols._fetching._under_way.values())
        assert (await one.get(token)).points == SCORES
        assert len(await hall.calls("patrols")) == 1
    assert (answer.status, answer.json["error"], answer.headers["Retry-After"]) == (502, "upstream_error", "30")


def test_a_display_of_ours_waits_longer_than_any_answer_takes() -> None:
    assert client.TIMEOUT_SECONDS >= 2 * patrols.LONGEST_WAIT_SECONDS
    assert patrols.LONGEST_WAIT_FOR_NEWER_SECONDS <= 5 < patrols.LONGEST_WAIT_SECONDS < 10


@in_hall
async def test_a_display_whose_leader_must_sign_in_is_told_when_to_come_again_and_to_wait_if_it_does_not(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick_scoreboard.patrols.patrols.REVOKED_SECONDS", 0.0)
    async with hall.replica() as one:
        token, other = await hall.device(one), await hall.device(one, HAZEL)
        assert (await one.get(token)).status == 200
        await hall.osm.control("revoke", user_id=ROBIN)
        await hall.advance(300)
        refused = [await one.get(token) for _ in range(20)]
        assert {(await one.get(other)).status for _ in range(50)} == {200}  # whoever else is at that address
        assert one.value("patrol_errors_total", error="too_often") == 15
        await hall.advance(300)
        again = await one.get(token)
        for _ in range(5):
            await one.get(token)
        await hall.sign_in(one)
        assert (await one.get(token)).status == 200  # at once, however often it was refused
    assert [answer.status for answer in refused] == [403] * 5 + [429] * 15
    assert {(answer.json["error"], answer.headers["Retry-After"]) for answer in refused[:5]} == {("blocked", "60")}
    assert refused[5].json["retry_after"] == int(refused[5].headers["Retry-After"]) == 300
    assert again.status == 403


@in_hall
async def test_strangers_are_told_to_wait_by_their_address_and_devices_there_are_let_in(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        same = [(await one.get("nobody")).status for _ in range(7)]
        others = [(await one.get(f"nobody-{number}")).status for number in range(100)]
        assert (await one.get(token)).status == 200
    assert same == [401] * 5 + [429] * 2
    assert others == [401] * 93 + [429] * 7
