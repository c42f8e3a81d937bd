"""What the log tells of scores for displays: hits, misses, fetches, failures, and terms that end soon."""

from __future__ import annotations

import logging
from datetime import date
from typing import Any

import pytest

from carrick_scoreboard.sealing import short
from tests.hall import Hall, in_hall
from tests.osm import ROBIN, SCOUTS, TERM


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """Every line of that event."""
    return [{**record.__dict__, "level": record.levelname} for record in caplog.records if record.message == event]


@in_hall
async def test_a_miss_the_fetch_behind_it_and_a_hit_are_told(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        await hall.advance(60)
        await one.get(token)
    [fetched], [miss], [hit] = (told(caplog, f"patrols.{event}") for event in ("fetched", "cache_miss", "cache_hit"))
    assert {(line["user_id"], line["section_id"], line["level"]) for line in (fetched, miss, hit)} == {
        (ROBIN, SCOUTS, "INFO")
    }
    assert (fetched["term_id"], fetched["patrols"], fetched["seconds"]) == (TERM, 3, 300)
    assert fetched["rate_limit_remaining"] > 900


@in_hall
async def test_a_failed_fetch_is_told_with_what_is_needed_to_find_out_why(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await hall.osm.control("fault", kind="custom", status=403, text="<html>", endpoint="patrols")
        await one.get(token)
        await hall.osm.control("fault", kind="drop_before_apply", endpoint="patrols")
        await hall.advance(300)
        await one.get(token)
    answered, unanswered = told(caplog, "patrols.fetch_failed")
    assert (answered["user_id"], answered["section_id"], answered["term_id"]) == (ROBIN, SCOUTS, TERM)
    assert (answered["http_status"], answered["level"]) == (403, "ERROR")
    assert answered["rate_limit_remaining"] > 900
    assert answered["device_code_hash"] == short(token)
    assert unanswered["http_status"] is None


@in_hall
async def test_a_term_that_ends_within_a_week_is_told_when_it_is_looked_up(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall.replica() as one:
        token = await hall.device(one)
        await one.get(token)
        assert told(caplog, "patrols.term_ends_soon") == []
        [scouts] = [one for one in (await hall.osm.state())["sections"] if one["section_id"] == SCOUTS]
        [ends] = [term["enddate"] for term in scouts["terms"] if term["term_id"] == TERM]
        days = (date.fromisoformat(ends) - hall.now().date()).days
        await hall.advance((days - 6) * 86_400)
        await one.get(token)
    [line] = told(caplog, "patrols.term_ends_soon")
    assert (line["section_id"], line["term_id"], line["end_date"], line["days"]) == (SCOUTS, TERM, ends, 6)
    assert line["level"] == "WARNING"
