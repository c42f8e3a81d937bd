"""The scoreboard's metrics: what is counted under them."""

from __future__ import annotations

from tests.hall import Hall, in_hall
from tests.osm import ROBIN, SCOUTS


@in_hall
async def test_what_devices_get_and_what_osm_is_asked_is_counted(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.advance(100)
        await one.get(token)
        assert (one.value("patrol_cache_hits_total"), one.value("patrol_cache_misses_total")) == (1, 1)
        assert one.value("patrol_fetch_total", result="ok") == 1
        assert one.value("patrol_cache_age_seconds_sum") == 100
        assert one.value("patrol_rate_limit_state_total", state="NONE") == 2
        count = "osm_api_request_duration_seconds_count"
        assert one.value(count, endpoint="patrols", status_code="200") == 1
        assert one.value("osm_term_end_timestamp_seconds", section_id=str(SCOUTS)) > hall.now().timestamp()
        await hall.osm.control("fault", kind="server_error", endpoint="patrols", times=None)
        await hall.advance(300)
        await one.get(token)
        other = await hall.device(one, ROBIN, 40103)
        await one.get(other)
        assert one.value("patrol_fetch_total", result="upstream_error") == 2
        assert one.value("patrol_stale_served_total") == 1
        assert one.value("patrol_errors_total", error="upstream_error") == 1


@in_hall
async def test_a_database_that_does_not_answer_leaves_the_other_metrics(hall: Hall) -> None:
    async with hall.replica() as one:
        one.tables.close()
        text = one.metrics.text().decode()
    assert "devices_connected 0.0" in text
