"""When a device asks again."""

from __future__ import annotations

import msgspec
import pytest

from carrick_device.answers import BetweenTerms, Failed, Got, NoSection, Scores, SignInAgain, TooMany, Verdict
from carrick_device.plan import Wait, backoff, hurry, wait_after
from tests.unit.device.scripted import scores

SCORES = msgspec.convert(scores(1), Scores)


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_scores_are_not_asked_for_before_they_expire_nor_by_all_devices_at_once(chance: float) -> None:
    assert wait_after(Got(SCORES, 300.0), 7, chance) == Wait(301.0 + 4 * chance, hurried=True, failures=0)


@pytest.mark.parametrize(
    ("fresh", "seconds"), [(None, 301.0), (-86_400.0, 11.0), (0.0, 11.0), (10.0**9, 6 * 3600 + 1.0)]
)
def test_a_server_whose_times_make_no_sense_is_asked_neither_always_nor_never(
    fresh: float | None, seconds: float
) -> None:
    assert wait_after(Got(SCORES, fresh), 0, 0.0).seconds == seconds


@pytest.mark.parametrize(
    ("verdict", "wait"),
    {
        "between terms": (BetweenTerms(), Wait(3601.0)),
        "no section": (NoSection("choose"), Wait(10.0, failures=3)),
        "failed": (Failed("502"), Wait(10.0, failures=3)),
        "failed and says when": (Failed("503", 600), Wait(601.0, hurried=False, failures=3)),
        "failed and says sooner": (Failed("503", 1), Wait(10.0, hurried=False, failures=3)),
        "too many": (TooMany(120), Wait(121.0, hurried=False, failures=3)),
        "too many, no time": (TooMany(None), Wait(10.0, hurried=False, failures=3)),
        "signed out": (SignInAgain("gone"), Wait(0.0)),
    }.values(),
)
def test_each_answer_has_its_wait_after_two_failures(verdict: Verdict, wait: Wait) -> None:
    assert wait_after(verdict, 2, 0.0) == wait


def test_backing_off_doubles_up_to_a_quarter_of_an_hour_and_is_spread() -> None:
    assert [backoff(failures, 1.0) for failures in range(10)] == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]
    assert [backoff(failures, 0.0) for failures in (0, 9, 10**6)] == [2.5, 450, 450]


def test_news_waits_for_the_rest_of_a_second_after_the_last_request() -> None:
    assert [hurry(ago) for ago in (0.0, 0.75, 1.0, 300.0)] == [1.0, 0.25, 0.0, 0.0]
