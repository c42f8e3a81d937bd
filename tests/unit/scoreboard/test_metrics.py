"""The scoreboard's metrics: the names that alerts and dashboards rely on, and what is counted under them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from carrick import wiring
from tests.hall import Hall, in_hall
from tests.osm import ROBIN, SCOUTS

ALERTS = Path(__file__).resolve().parents[3] / "ops" / "prometheus" / "alerts.yml"
FUNCTIONS = {"sum", "rate", "increase", "max", "min", "count", "by", "time", "and", "or", "unless"}
SEVERITIES = {"critical", "warning", "info"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics_in(expression: str) -> set[str]:
    """The names that are neither functions, labels nor texts."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)", "", expression)
    return set(re.findall(r"[a-z_]{2,}", bare)) - FUNCTIONS


@in_hall
async def test_every_metric_that_an_alert_names_exists(hall: Hall) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await one.standing.note_user_block(ROBIN, 60)
        text = one.metrics.text().decode()
    with wiring.opened_store(f"sqlite:///{hall.database}") as store:
        text += wiring.metrics(store).text().decode()
    told = set(re.findall(r"^(?:# TYPE )?([a-z_]+)", text, re.MULTILINE))
    named = {name for rule in rules() for name in metrics_in(rule["expr"])}
    assert "osm_service_blocked" in named
    assert named <= told, named - told


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in SEVERITIES, rule["alert"]
        assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")"), rule["alert"]
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_the_alerts_have_the_thresholds_that_were_asked_for() -> None:
    by_name = {rule["alert"]: (rule["labels"]["severity"], rule["expr"], rule.get("for")) for rule in rules()}
    assert by_name["OsmServiceBlocked"][:2] == ("critical", "max(osm_service_blocked) == 1")
    assert by_name["OsmBudgetAlmostSpent"][0] == "critical"
    assert by_name["OsmBudgetAlmostSpent"][1].endswith("(osm_rate_limit_remaining) < 10")
    assert by_name["OsmSeveralUsersLimited"][1].endswith("> 1")
    assert by_name["OsmBudgetLow"][1].endswith("(osm_rate_limit_remaining) < 100")
    assert by_name["PatrolCacheMisses"][1].endswith("> 0.5")
    assert by_name["OsmErrors"][1].endswith("> 0.05")
    assert by_name["PatrolScoresStale"][2] == "1h"
    assert by_name["OutboxBehind"][1] == "outbox_pending_total > 1000 or oldest_pending_age_seconds > 3600"
    assert by_name["OutboxFarBehind"][1] == "outbox_pending_total > 10000 or oldest_pending_age_seconds > 86400"


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
