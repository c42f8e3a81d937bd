"""How the application stands with OSM: what one replica was told, all know; a block ends when a person says so."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from carrick.state.redis import RedisServer
from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.classify import Budget
from tests.hall import Hall, in_hall
from tests.osm import HAZEL, ROBIN
from tests.redis_server import RedisProcess
from tests.replicas import until


@in_hall
async def test_a_block_is_seen_by_every_replica_at_its_next_call_and_by_one_that_starts_later(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        assert await two.standing.service_block() is None
        await one.standing.note_service_block("Your application has been blocked.")
        block = await two.standing.service_block()
        assert block is not None
        assert block.blocked_header_value == "Your application has been blocked."
        with pytest.raises(errors.ServiceBlocked):
            await two.client.profile("token")
    async with hall.replica("three") as three:
        with pytest.raises(errors.ServiceBlocked):
            await three.client.refresh("token")
    assert await hall.calls() == []


@pytest.fixture
def server() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.close()


@in_hall
async def test_redis_has_copies_under_the_names_and_in_the_form_of_the_seeds(hall: Hall, server: RedisProcess) -> None:
    async with hall.replica(redis=RedisServer(server.url)) as one:
        await one.standing.note_service_block("said")
        await one.standing.note_user_block(ROBIN, 90)
        await one.standing.note_budget(ROBIN, Budget(1000, 950, 600))
        with server.client() as client:
            await until(lambda: client.dbsize() == 3)
            found = {key: json.loads(client.get(key)) for key in client.scan_iter()}
            assert client.ttl("osm_ratelimit:100001") <= 601
            block = found[b"osm_service_blocked"]
            assert block.pop("blocked_at").endswith("Z")
            assert block == {
                "blocked_header_value": "said",
                "reason": "osm_blocked_header",
                "impact": "all_users",
                "requires_manual_resolution": True,
            }
            assert found[b"osm_blocked:100001"] == {
                "blocked_at": "2026-03-02T18:30:00Z",
                "retry_after": 90,
                "reason": "rate_limit_exceeded",
            }
            assert found[b"osm_ratelimit:100001"] == {
                "limit": 1000,
                "remaining": 950,
                "reset_at": "2026-03-02T18:40:00Z",
                "last_updated": "2026-03-02T18:30:00Z",
            }


@in_hall
async def test_copies_decide_nothing_and_come_back_when_redis_has_lost_them(hall: Hall, server: RedisProcess) -> None:
    async with hall.replica(redis=RedisServer(server.url)) as one:
        with server.client() as client:
            client.set("osm_service_blocked", "{}")
            assert await one.standing.service_block() is None
            await until(lambda: client.dbsize() == 0)
            await one.standing.note_service_block("said")
            await until(lambda: client.dbsize() == 1)
            client.flushall()
            assert await one.standing.service_block() is not None
            await hall.advance(60)
            await one.standing.service_block()
            await until(lambda: client.dbsize() == 1)
            one.blocks.clear("operator", "settled with OSM")
            assert await one.standing.service_block() is None
            await until(lambda: client.dbsize() == 0)


@in_hall
async def test_clearing_the_block_is_seen_without_a_restart(hall: Hall) -> None:
    async with hall.replica() as one:
        await hall.sign_in(one)
        await one.standing.note_service_block("said")
        one.blocks.clear("operator", "settled with OSM")
        assert await one.standing.service_block() is None
        assert await one.standing.service_block_lately() is None
        credential = await one.credentials.usable(ROBIN)
        assert (await one.client.profile(credential.access_token)).user_id == ROBIN


@in_hall
async def test_a_block_in_any_bytes_is_written_down_once(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    async with hall.replica() as one:
        for _ in range(2):
            await one.standing.note_service_block("bl\udcffck\x00" + "!" * 9000)
        [block] = one.blocks.latest()
        assert block.header.startswith("bl\\udcffck")
        assert len(block.header) == 500
        assert one.value("osm_block_events_total") == 1
    assert [record.levelname for record in caplog.records if record.message == "osm.block_stands"] == ["CRITICAL"]


@in_hall
async def test_a_limited_user_is_remembered_for_all_replicas_until_the_time_is_over(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        await one.standing.note_user_block(ROBIN, 90)
        block = await two.standing.user_block(ROBIN)
        assert block is not None
        assert await two.standing.user_block(HAZEL) is None
        with pytest.raises(errors.RateLimited):
            await two.client.profile("token", ROBIN)
        await hall.advance(89)
        assert await two.standing.user_block(ROBIN) is not None
        await hall.advance(1)
        assert await two.standing.user_block(ROBIN) is None


@in_hall
async def test_budgets_are_remembered_until_they_are_renewed_and_what_osm_does_not_say_is_unknown(hall: Hall) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        await one.standing.note_budget(ROBIN, Budget(1000, 950, 600))
        await one.standing.note_budget(ROBIN, Budget(None, None, None))
        user = str(ROBIN)
        assert one.value("osm_rate_limit_total", user_id=user) == 1000
        assert one.value("osm_rate_limit_remaining", user_id=user) == 950
        assert one.value("osm_rate_limit_reset_seconds", user_id=user) == 600
        await hall.advance(599)
        assert await two.standing.budget(ROBIN) is not None
        await hall.advance(1)
        assert await two.standing.budget(ROBIN) is None
        assert one.value("osm_rate_limit_remaining", user_id=user) == 0


@pytest.mark.parametrize(("remaining", "level"), [(100, None), (99, "WARNING"), (20, "WARNING"), (19, "ERROR")])
@in_hall
async def test_a_low_budget_is_told_in_the_log(
    hall: Hall, remaining: int, level: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hall.replica() as one:
        await one.standing.note_budget(ROBIN, Budget(1000, remaining, 600))
    told = [record.levelname for record in caplog.records if record.message == "osm.budget_low"]
    assert told == ([level] if level else [])


@in_hall
async def test_a_change_of_the_caches_age_is_told_once_with_its_reason(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hall.replica() as one:
        for remaining in (900, 199, 150, None, 19, 1000):
            await one.standing.note_budget(ROBIN, Budget(1000, remaining, 600))
    told = [record.__dict__ for record in caplog.records if record.message == "osm.cache_age_changed"]
    assert [(one["user_id"], one["remaining"], one["seconds"], one["reason"]) for one in told] == [
        (ROBIN, 199, 600, "fewer than 200 calls are left"),
        (ROBIN, 19, 1800, "fewer than 20 calls are left"),
        (ROBIN, 1000, 300, "enough calls are left"),
    ]


@in_hall
async def test_a_call_that_osm_will_end_is_told_once_and_known_to_every_replica_until_osm_says_no_more(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall.replica() as one, hall.replica("two") as two:
        token = await hall.device(one)
        await hall.osm.control("fault", kind="deprecated", text="2027-01-31", endpoint="patrols", times=2)
        for _ in range(2):
            await one.get(token)
            await hall.advance(300)
        ends_at = datetime(2027, 1, 31, tzinfo=UTC).timestamp()
        gauge = "osm_deprecated_endpoint_timestamp_seconds"
        assert [each.value(gauge, endpoint="patrols") for each in (one, two)] == [ends_at, ends_at]
        [told] = [record for record in caplog.records if record.message == "osm.deprecated"]
        assert (told.levelname, told.__dict__["endpoint"]) == ("WARNING", "patrols")
        await two.get(token)
        assert gauge + "{" not in one.metrics.text().decode()


@in_hall
async def test_a_call_that_osm_will_end_does_its_work_while_that_cannot_be_noted(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        with one.tables.writing() as ask:
            ask.connection.execute("alter table carrick_osm_endings rename to gone")
        assert (await one.get(token)).status == 200
        with one.tables.writing() as ask:
            ask.connection.execute("alter table gone rename to carrick_osm_endings")
        assert "osm.deprecation_not_noted" in caplog.text
