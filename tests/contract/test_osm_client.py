"""The client against the simulator: what each way to go wrong becomes, and whether the points changed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carrick.steady import steady_seconds
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.client import Application, Credential, OsmClient
from tests.osm import EAGLES, EVENING, JASPER, PERRY, ROBIN, SCOUTS, TERM, Osm, story
from tests.unit.scoreboard.osm.test_client import Calls, Notes


@asynccontextmanager
async def client_of(osm: Osm, notes: Notes | None = None) -> AsyncIterator[OsmClient]:
    application = Application(osm.url, "carrick-demo", "not-a-secret")
    client = OsmClient(application, notes or Notes(), Calls(), timeout_seconds=1.0, now=lambda: EVENING)
    try:
        yield client
    finally:
        await client.close()


async def robin(osm: Osm) -> Credential:
    return Credential(ROBIN, await osm.token(ROBIN))


@story
async def test_a_profile_leads_to_the_term_and_its_patrols(osm: Osm) -> None:
    async with client_of(osm) as client:
        who = await robin(osm)
        profile = await client.profile(who.access_token)
        section = profile.section(SCOUTS)
        assert profile.user_id == ROBIN
        assert section is not None
        term = section.term_on(EVENING.date())
        assert term is not None
        assert term.id == TERM
        patrols = await client.patrols(who, SCOUTS, TERM)
    assert str(EAGLES) in [patrol.id for patrol in patrols]
    assert [patrol.name for patrol in patrols] == sorted(patrol.name for patrol in patrols)
    assert all(int(patrol.id) > 0 for patrol in patrols)


@story
async def test_points_are_what_they_were_set_to(osm: Osm) -> None:
    async with client_of(osm) as client:
        await client.set_points(await robin(osm), SCOUTS, str(EAGLES), 77)
        assert await osm.points() == 77


@story
async def test_a_user_without_sections_sees_none(osm: Osm) -> None:
    async with client_of(osm) as client:
        assert (await client.profile(await osm.token(PERRY))).sections == ()


@story
async def test_who_may_only_read_is_refused_by_osm_itself(osm: Osm) -> None:
    async with client_of(osm) as client:
        token = await osm.token(JASPER, scopes=["section:member:read"])
        with pytest.raises(errors.Denied):
            await client.set_points(Credential(JASPER, token), SCOUTS, str(EAGLES), 77)


@story
async def test_a_refresh_gives_new_tokens_and_uses_up_the_old_one(osm: Osm) -> None:
    async with client_of(osm) as client:
        pair = await osm.control("tokens", user_id=ROBIN)
        fresh = await client.refresh(pair["refresh_token"])
        assert (await client.profile(fresh.access_token)).user_id == ROBIN
        for _ in range(2):  # refused as invalid_request and as invalid_grant, in turn
            with pytest.raises(errors.AuthRevoked):
                await client.refresh(pair["refresh_token"])


@story
async def test_a_wrong_secret_is_the_operators_fault(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    client = OsmClient(Application(osm.url, "carrick-demo", "guess"), Notes(), Calls())
    with pytest.raises(errors.Misconfigured):
        await client.refresh(pair["refresh_token"])
    await client.close()


@pytest.mark.parametrize(
    ("fault", "error", "applied"),
    [
        ({"kind": "rate_limited", "retry_after": 600}, errors.RateLimited, False),
        ({"kind": "server_error"}, errors.Unavailable, False),
        ({"kind": "unauthorized"}, errors.AuthRevoked, False),
        ({"kind": "block_page"}, errors.ServiceBlocked, False),
        ({"kind": "blocked_header"}, errors.ServiceBlocked, False),
        ({"kind": "deprecated"}, None, True),
        ({"kind": "never_answer"}, errors.TimedOut, False),
        ({"kind": "apply_then_drop"}, errors.TimedOut, True),
        ({"kind": "drop_before_apply"}, errors.TimedOut, False),
        ({"kind": "truncated"}, errors.TimedOut, True),
        ({"kind": "error_200"}, errors.Denied, False),
        ({"kind": "err_200"}, errors.Denied, False),
        ({"kind": "false_body"}, errors.Denied, False),
        ({"kind": "empty_body"}, errors.Unavailable, False),
        ({"kind": "json_as_html"}, None, True),
        ({"kind": "invalid_json"}, errors.BadData, True),
        ({"kind": "wrong_structure"}, errors.BadData, True),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
@story
async def test_each_fault_of_a_write_is_told_for_what_it_is(
    osm: Osm, fault: dict[str, Any], error: type[errors.OsmError] | None, applied: bool
) -> None:
    before = await osm.points()
    await osm.control("fault", endpoint="points", **fault)
    async with client_of(osm) as client:
        writing = client.set_points(await robin(osm), SCOUTS, str(EAGLES), before + 5)
        if error is None:
            await writing
        else:
            with pytest.raises(error) as failed:
                await writing
            assert not isinstance(failed.value, errors.TimedOut) or failed.value.sent
            assert isinstance(failed.value, errors.TimedOut) == (failed.value.http_status is None)
    assert await osm.points() == before + (5 if applied else 0)


@pytest.mark.parametrize("style", ["header", "page"])
@story
async def test_a_blocked_application_calls_once_and_sins_never(osm: Osm, style: str) -> None:
    await osm.control("block", reason="abuse", style=style)
    async with client_of(osm) as client:
        who = await robin(osm)
        for _ in range(3):
            with pytest.raises(errors.ServiceBlocked):
                await client.patrols(who, SCOUTS, TERM)
            with pytest.raises(errors.ServiceBlocked):
                await client.refresh("whatever")
    assert len(await osm.calls()) == 1
    assert (await osm.state())["block"]["sins"] == 0


@story
async def test_twenty_who_ask_at_once_are_one_call(osm: Osm) -> None:
    async with client_of(osm) as client:
        who = await robin(osm)
        await osm.control("hold", name="read", point="before_answer", endpoint="patrols")
        asking = [asyncio.create_task(client.patrols(who, SCOUTS, TERM)) for _ in range(20)]
        await osm.reached("read")
        await osm.control("release", name="read")
        assert len(set(await asyncio.gather(*asking))) == 1
    assert len(await osm.calls()) == 1


@story
async def test_a_write_that_would_leave_too_late_does_not_leave(osm: Osm) -> None:
    """As when the process was stopped between its last look at the clock and the call."""
    async with client_of(osm) as client:
        who, before = await robin(osm), await osm.points()
        with pytest.raises(errors.TimedOut) as stopped:
            await client.set_points(who, SCOUTS, str(EAGLES), before + 5, not_after=steady_seconds() - 0.001)
        assert not stopped.value.in_doubt
        assert await osm.points() == before
        assert [call for call in await osm.calls() if call["method"] == "POST" and "updatePatrol" in str(call)] == []


@story
async def test_a_block_on_the_answer_to_a_write_leaves_it_in_doubt_and_later_ones_are_not_sent(osm: Osm) -> None:
    async with client_of(osm) as client:
        who = await robin(osm)
        await osm.control("block")
        with pytest.raises(errors.ServiceBlocked) as first:
            await client.set_points(who, SCOUTS, str(EAGLES), 5)
        with pytest.raises(errors.ServiceBlocked) as second:
            await client.set_points(who, SCOUTS, str(EAGLES), 5)
        assert (first.value.in_doubt, second.value.in_doubt) == (True, False)


@story
async def test_a_read_that_was_cut_off_is_not_sent_again_by_itself(osm: Osm) -> None:
    """OSM counts calls: whether there is a second one is decided by who asked."""
    async with client_of(osm) as client:
        who = await robin(osm)
        await client.patrols(who, SCOUTS, TERM)  # the next one uses the same connection
        await osm.control("fault", kind="drop_before_apply", endpoint="patrols", times=None)
        with pytest.raises(errors.TimedOut):
            await client.patrols(who, SCOUTS, TERM)
        assert len([call for call in await osm.calls() if call["endpoint"] == "patrols"]) == 2
