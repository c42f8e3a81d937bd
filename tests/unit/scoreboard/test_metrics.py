"""The scoreboard's metrics: what is counted under them."""

from __future__ import annotations

import re
from datetime import timedelta

from carrick_scoreboard.metrics import MOST_LABELLED
from carrick_scoreboard.osm.standing import KnownBudget
from tests.hall import Hall, in_hall
from tests.osm import ROBIN, SCOUTS

HOUR = timedelta(hours=1)


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
async def test_only_the_users_and_sections_that_were_heard_of_last_have_figures_of_their_own(hall: Hall) -> None:
    async with hall.replica() as one:
        for number in range(1, MOST_LABELLED + 3):
            budget = KnownBudget(limit=1000, remaining=number, reset_at=hall.now() + HOUR, last_updated=hall.now())
            one.metrics.budget(number, budget)
            one.metrics.user_block(number, hall.now() + HOUR)
            one.metrics.term(number, hall.now().date())
        one.metrics.budget(3, budget)
        text = one.metrics.text().decode()
    labels = {"osm_rate_limit_remaining": "user_id", "osm_user_limited": "user_id"}
    for name, label in {**labels, "osm_term_end_timestamp_seconds": "section_id"}.items():
        shown = re.findall(rf'^{name}{{{label}="(\d+)"}}', text, re.MULTILINE)
        assert len(shown) == MOST_LABELLED
        assert {"1", "2"}.isdisjoint(shown)
        assert {"3", "202"} <= set(shown)


@in_hall
async def test_a_database_that_does_not_answer_leaves_the_other_metrics(hall: Hall) -> None:
    async with hall.replica() as one:
        one.tables.close()
        text = one.metrics.text().decode()
    assert "devices_connected 0.0" in text
