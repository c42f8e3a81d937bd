"""About a thousand calls an hour for each user, told on every answer."""

from __future__ import annotations

import pytest

from tests.osm import HAZEL, ROBIN, Answer, Osm, story


def told(answer: Answer) -> tuple[str, str, str]:
    headers = answer.headers
    return headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"], headers["X-RateLimit-Reset"]


@story
async def test_every_call_with_a_token_counts_and_says_what_is_left(osm: Osm) -> None:
    token = await osm.token()
    assert told(await osm.profile(token)) == ("1000", "999", "3600")
    assert told(await osm.read(token)) == ("1000", "998", "3600")
    assert told(await osm.write(token, 1)) == ("1000", "997", "3600")


@story
async def test_users_do_not_share_their_budget(osm: Osm) -> None:
    await osm.profile(await osm.token(ROBIN))
    assert told(await osm.profile(await osm.token(HAZEL)))[1] == "999"


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/oauth/authorize"), ("POST", "/oauth/token"), ("GET", "/oauth/resource"), ("GET", "/nowhere")],
)
@story
async def test_answers_to_nobody_in_particular_have_the_headers_too(osm: Osm, method: str, target: str) -> None:
    assert told(await osm.call(method, target, form={})) == ("1000", "1000", "3600")


@story
async def test_reset_counts_down_and_then_the_hour_begins_anew(osm: Osm) -> None:
    token = await osm.token()
    await osm.profile(token)
    await osm.control("clock", advance_seconds=3599)
    assert told(await osm.profile(token)) == ("1000", "998", "1")
    await osm.control("clock", advance_seconds=1)
    assert told(await osm.profile(await osm.token())) == ("1000", "999", "3600")


@story
async def test_over_the_budget_the_answer_is_429_with_retry_after(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("budget", user_id=ROBIN, remaining=1, reset_seconds=90)
    assert (await osm.write(token, 50)).status == 200
    answer = await osm.write(token, 60)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "90")
    assert told(answer) == ("1000", "0", "90")
    assert await osm.points() == 50


@story
async def test_calls_over_the_budget_are_counted(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("budget", user_id=ROBIN, remaining=0)
    for _ in range(3):
        await osm.profile(token)
    robin = next(user for user in (await osm.state())["users"] if user["user_id"] == ROBIN)
    assert (robin["remaining"], robin["over_limit"]) == (0, 3)


@story
async def test_after_the_time_in_retry_after_calls_are_answered_again(osm: Osm) -> None:
    token = await osm.token()
    await osm.control("budget", remaining=0, reset_seconds=30)
    assert (await osm.profile(token)).status == 429
    await osm.control("clock", advance_seconds=30)
    assert (await osm.profile(token)).status == 200


@story
async def test_a_limit_can_be_set_and_keeps_what_is_left(osm: Osm) -> None:
    await osm.control("budget", user_id=ROBIN, limit=2000, remaining=150)
    assert told(await osm.profile(await osm.token()))[:2] == ("2000", "149")


@story
async def test_a_refused_refresh_tells_the_budget_of_its_user_and_costs_nothing(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    await osm.control("budget", user_id=ROBIN, remaining=7)
    form = {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"], "client_id": "x"}
    assert told(await osm.call("POST", "/oauth/token", form=form))[1] == "7"
