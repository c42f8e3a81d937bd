"""Credentials against the simulator, whose refresh tokens can be used once: one refresh, and nobody is logged out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from carrick.errors import StoreUnavailable
from carrick_scoreboard.credentials import EARLY_SECONDS, Credentials, place_of
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.client import Credential
from carrick_scoreboard.sealing import KeyRing, Unreadable
from carrick_scoreboard.store.credentials import SealedTokens
from tests.hall import KEYS, Hall, Replica, in_hall, run_in_hall
from tests.osm import ROBIN


class Steps:
    """A sleep that tells when somebody waits, and lets them go on when told."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()

    async def sleep(self, _: float) -> None:
        self.waiting.set()
        await self.go.wait()


def away_for(times: int, operation: Callable[..., bool]) -> Callable[..., bool]:
    """The same, but the database does not answer the first so many times."""
    left = [times]

    def tried(*given: Any) -> bool:
        left[0] -= 1
        if left[0] >= 0:
            raise StoreUnavailable("the database does not answer")
        return operation(*given)

    return tried


async def works(replica: Replica, credential: Credential) -> bool:
    return (await replica.client.profile(credential.access_token)).user_id == ROBIN


async def refreshes(hall: Hall) -> int:
    return len(await hall.calls("token"))


@in_hall
async def test_a_token_that_is_good_for_long_is_used_as_it_is(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one)
        await hall.advance(3600 - EARLY_SECONDS - 5)
        assert await works(one, await one.credentials.usable(ROBIN))
        assert await refreshes(hall) == 0


@in_hall
async def test_a_token_is_refreshed_five_minutes_before_its_end(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one)
        before = await one.credentials.usable(ROBIN)
        await hall.advance(3600 - EARLY_SECONDS)
        after = await one.credentials.usable(ROBIN)
        assert before.access_token != after.access_token
        assert await works(one, after)
        assert (await one.credentials.usable(ROBIN)) == after
        assert await refreshes(hall) == 1
        stored = one.stored.get(ROBIN)
        assert stored is not None
        assert (stored.generation, stored.refreshing_by) == (2, None)
        assert stored.last_used_at is not None


async def two_replicas_one_refresh(hall: Hall) -> None:
    """Defect 7: the second comes while the first one's refresh is on its way."""
    steps = Steps()
    async with hall.replica("one") as one, hall.replica("two", sleep=steps.sleep) as two:
        await hall.sign_in(one, seconds=60)
        await hall.osm.control("hold", name="refresh", endpoint="token", times=None)
        first = asyncio.create_task(one.credentials.usable(ROBIN))
        await hall.osm.reached("refresh")
        second = asyncio.create_task(two.credentials.usable(ROBIN))
        await steps.waiting.wait()  # it has seen the lease, and sent nothing
        assert await refreshes(hall) == 1
        await hall.osm.control("release", name="refresh")
        fresh = await first
        steps.go.set()
        assert await second == fresh
        assert await works(two, fresh)
        assert await refreshes(hall) == 1
        assert not await one.credentials.is_revoked(ROBIN)


@in_hall
async def test_of_two_replicas_one_refreshes_and_the_other_uses_the_new_token(hall: Hall) -> None:
    await two_replicas_one_refresh(hall)


def test_the_same_holds_on_postgresql(postgres_dsn: str) -> None:
    run_in_hall(postgres_dsn, two_replicas_one_refresh)


@in_hall
async def test_many_who_ask_at_once_in_two_replicas_cost_one_refresh(hall: Hall) -> None:
    async with hall.replica("one") as one, hall.replica("two") as two:
        await hall.sign_in(one, seconds=60)
        found = await asyncio.gather(*(each.credentials.usable(ROBIN) for each in (one, two) * 10))
        assert len({credential.access_token for credential in found}) == 1
        assert await works(one, found[0])
        assert await refreshes(hall) == 1


@in_hall
async def test_a_replica_that_slept_past_its_lease_logs_nobody_out(hall: Hall) -> None:
    async with hall.replica("one") as one, hall.replica("two") as two:
        await hall.sign_in(one, seconds=60)
        await hall.osm.control("hold", name="late", endpoint="token")  # the first one's request arrives last
        first = asyncio.create_task(one.credentials.usable(ROBIN))
        await hall.osm.reached("late")
        hall.time.shift(61)
        second = await two.credentials.usable(ROBIN)
        await hall.osm.control("release", name="late")  # its refresh token is used up by now
        assert await first == second
        assert not await one.credentials.is_revoked(ROBIN)


@pytest.mark.parametrize("form", ["invalid_request", "invalid_grant"])
@in_hall
async def test_a_refused_refresh_token_revokes_until_the_next_sign_in(hall: Hall, form: str) -> None:
    async with hall.replica() as one:
        await hall.osm.control("settings", refresh_refusal=form)
        await hall.sign_in(one, seconds=60)
        await hall.osm.control("rotate", user_id=ROBIN)
        for _ in range(2):
            with pytest.raises(errors.AuthRevoked):
                await one.credentials.usable(ROBIN)
        assert await refreshes(hall) == 1
        assert await one.credentials.is_revoked(ROBIN)
        await hall.sign_in(one)
        assert await works(one, await one.credentials.usable(ROBIN))


@in_hall
async def test_a_wrong_client_secret_revokes_nobody(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=60)
        redirects = ["http://localhost:8080/oauth/callback"]
        await hall.osm.control("app", client_id="carrick-demo", client_secret="other", redirect_uris=redirects)
        good = await one.credentials.usable(ROBIN)
        assert await works(one, good)
        hall.time.shift(60)
        with pytest.raises(errors.Misconfigured):
            await one.credentials.usable(ROBIN)
        await hall.osm.control("app", client_id="carrick-demo", client_secret="not-a-secret", redirect_uris=redirects)
        assert await works(one, await one.credentials.usable(ROBIN))


@in_hall
async def test_a_refresh_that_nobody_answers_gives_the_lease_back_and_the_old_token_does(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=60)
        await hall.osm.control("fault", kind="drop_before_apply", endpoint="token", times=2)
        assert await works(one, await one.credentials.usable(ROBIN))
        stored = one.stored.get(ROBIN)
        assert stored is not None
        assert (stored.refreshing_by, stored.generation) == (None, 1)
        hall.time.shift(56)  # too near its end now
        with pytest.raises(errors.TimedOut):
            await one.credentials.usable(ROBIN)
        assert await works(one, await one.credentials.usable(ROBIN))  # and the third refresh works


@in_hall
async def test_who_goes_away_in_the_middle_of_a_refresh_does_not_lose_the_new_token(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=60)
        await hall.osm.control("hold", name="refresh", endpoint="token")
        gone = asyncio.create_task(one.credentials.usable(ROBIN))
        await hall.osm.reached("refresh")
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        await hall.osm.control("release", name="refresh")
        await one.credentials.close()
        assert await works(one, await one.credentials.usable(ROBIN))
        assert await refreshes(hall) == 1


@in_hall
async def test_new_tokens_are_kept_however_long_the_database_is_away(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with hall.replica(sleep=sleep) as one:
        await hall.sign_in(one, seconds=60)
        with monkeypatch.context() as outage:
            outage.setattr(one.stored, "end_refresh", away_for(20, one.stored.end_refresh))
            fresh = await one.credentials.usable(ROBIN)
        assert await works(one, fresh)
        assert await one.credentials.usable(ROBIN) == fresh
        assert (len(pauses), max(pauses)) == (20, 30.0)
        assert [record.message for record in caplog.records].count("credentials.not_kept") == 20


@in_hall
async def test_who_waits_for_tokens_that_cannot_be_written_down_gets_the_old_one(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    monkeypatch.setattr("carrick_scoreboard.credentials.LONGEST_WAIT_SECONDS", 0.01)
    async with hall.replica(sleep=steps.sleep) as one:
        await hall.sign_in(one, seconds=60)
        old = one.stored.get(ROBIN)
        assert old is not None
        monkeypatch.setattr(one.stored, "end_refresh", away_for(1, one.stored.end_refresh))
        before = await one.credentials.usable(ROBIN)
        await steps.waiting.wait()
        steps.go.set()
        await one.credentials.close()
        assert await one.credentials.usable(ROBIN) != before
        assert await refreshes(hall) == 1


@in_hall
async def test_tokens_that_others_took_for_revoked_are_not_and_points_go_on(hall: Hall) -> None:
    """The database was away for longer than a lease: another replica tried the used-up token before the new came in."""
    told: list[str] = []

    async def revoked(_: int) -> None:
        told.append("revoked")

    async def signed_in(_: int) -> None:
        told.append("signed in")

    steps = Steps()
    async with (
        hall.replica("one", sleep=steps.sleep, signed_in=signed_in) as one,
        hall.replica("two", revoked=revoked) as two,
    ):
        await hall.sign_in(two, seconds=60)
        one.stored.end_refresh = away_for(1, one.stored.end_refresh)  # type: ignore[method-assign]
        first = asyncio.create_task(one.credentials.usable(ROBIN))
        await steps.waiting.wait()
        hall.time.shift(61)
        with pytest.raises(errors.AuthRevoked):
            await two.credentials.usable(ROBIN)
        steps.go.set()
        assert await works(two, await first)
        assert told == ["revoked", "signed in"]
        assert await two.credentials.usable(ROBIN) == await first


@in_hall
async def test_a_stop_that_cuts_a_refresh_off_says_whose(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    async with hall.replica(sleep=Steps().sleep) as one:
        await hall.sign_in(one, seconds=60)
        one.stored.end_refresh = away_for(1, one.stored.end_refresh)  # type: ignore[method-assign]
        waiting = asyncio.create_task(one.credentials.usable(ROBIN))
        while not await refreshes(hall):  # noqa: ASYNC110  the refresh is on its way
            await asyncio.sleep(0)
        await one.credentials.close(0)
        [said] = [record for record in caplog.records if record.message == "credentials.refresh_cut_off"]
        assert (said.levelname, said.__dict__["user_id"]) == ("CRITICAL", ROBIN)
        with pytest.raises(asyncio.CancelledError):
            await waiting


@in_hall
async def test_a_401_revokes_the_tokens_it_was_said_of_and_no_newer_ones(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one)
        old = await one.credentials.usable(ROBIN)
        await hall.sign_in(one)
        await one.credentials.refused(old)
        newer = await one.credentials.usable(ROBIN)
        await one.credentials.refused(newer)
        with pytest.raises(errors.AuthRevoked):
            await one.credentials.usable(ROBIN)


@in_hall
async def test_tokens_that_last_shorter_than_the_margin_are_refreshed_once_per_use(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=60)
        given = {"access_token": "a", "refresh_token": "r", "expires_in": 30, "token_type": "Bearer"}
        text = msgspec.json.encode(given).decode()
        await hall.osm.control("fault", kind="custom", status=200, text=text, endpoint="token", times=None)
        assert (await one.credentials.usable(ROBIN)).access_token == "a"
        assert await refreshes(hall) == 1


@in_hall
async def test_nobody_without_a_sign_in_has_a_credential(hall: Hall) -> None:
    async with hall.replica() as one:
        with pytest.raises(errors.AuthRevoked):
            await one.credentials.usable(ROBIN)


@in_hall
async def test_tokens_of_another_user_or_kind_or_key_cannot_be_opened_and_the_error_says_so(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one)
        stored = one.stored.get(ROBIN)
        assert stored is not None
        swapped = SealedTokens(stored.osm_refresh_token, stored.osm_access_token, 3600)
        one.stored.save(ROBIN, "", "", swapped)
        with pytest.raises(Unreadable, match=f"credential:{ROBIN}:access"):
            await one.credentials.usable(ROBIN)
        others = SealedTokens(KEYS.seal("a", place_of(ROBIN + 1, "access")), stored.osm_refresh_token, 3600)
        one.stored.save(ROBIN, "", "", others)
        with pytest.raises(Unreadable):
            await one.credentials.usable(ROBIN)
        ring = KeyRing({"other": b"o" * 32})
        unknown = Credentials(one.stored, ring, one.client, one.credentials._threads, "x")
        with pytest.raises(Unreadable, match="'test', which is not in CARRICK_SECRET_KEYS"):
            await unknown.usable(ROBIN)


@in_hall
async def test_no_token_is_readable_in_the_database_or_in_a_log(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with hall.replica() as one:
        await hall.sign_in(one, seconds=60)
        credential = await one.credentials.usable(ROBIN)
        await one.credentials.refused(credential)
    kept = b"".join(path.read_bytes() for path in Path(hall.database).parent.iterdir())
    assert credential.access_token.encode() not in kept
    assert credential.access_token not in caplog.text + repr(credential)
