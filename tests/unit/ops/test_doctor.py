"""The doctor's thresholds: what is well, what is a warning, what does not work."""

from __future__ import annotations

import pytest

from carrick.errors import StoreUnavailable
from carrick.ops import doctor
from carrick.ops.doctor import Check, CloudAnswer, Finding
from carrick.outbox.health import DeadRows, Health, Holder

HEALTHY = Health(version="PostgreSQL 18.1", number=18_00_01, indexes=frozenset())


def holding(seconds: float | None, transactions: int) -> Health:
    holder = Holder(who="session of ann", seconds=seconds, transactions=transactions)
    return Health(version="", number=18_00_00, indexes=frozenset(), holder=holder)


def dying(live: int, dead: int) -> Health:
    rows = DeadRows(table="work", live=live, dead=dead)
    return Health(version="", number=18_00_00, indexes=frozenset(), dead_rows=rows)


def logged(size: int) -> Health:
    return Health(version="", number=3_040, indexes=frozenset(), log_bytes=size)


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (doctor.database(HEALTHY, is_server=True), "OK"),
        (doctor.database(Health(version="", number=12_00_22, indexes=frozenset()), is_server=True), "FAIL"),
        (doctor.database(logged(0), is_server=False), "OK"),
        (doctor.transactions(HEALTHY), "OK"),
        (doctor.transactions(holding(300, 10**6)), "OK"),
        (doctor.transactions(holding(301, 0)), "WARN"),
        (doctor.transactions(holding(None, 100_000)), "OK"),
        (doctor.transactions(holding(None, 100_001)), "WARN"),
        (doctor.transactions(logged(64 * 1024 * 1024)), "OK"),
        (doctor.transactions(logged(64 * 1024 * 1024 + 1)), "WARN"),
        (doctor.dead_rows(HEALTHY), "OK"),
        (doctor.dead_rows(dying(live=10, dead=50_000)), "OK"),
        (doctor.dead_rows(dying(live=10, dead=50_001)), "WARN"),
        (doctor.dead_rows(dying(live=100_000, dead=100_000)), "OK"),
        (doctor.clock(5.0), "OK"),
        (doctor.clock(-5.1), "WARN"),
        *[
            (doctor.cloud("u", CloudAnswer(status, None, None)), wanted)
            for status, wanted in [
                (200, "OK"),
                (400, "OK"),
                (302, "FAIL"),
                (401, "FAIL"),
                (403, "FAIL"),
                (404, "FAIL"),
                (429, "WARN"),
                (503, "WARN"),
                (None, "FAIL"),
            ]
        ],
    ],
)
def test_each_fact_has_its_status(finding: Finding, status: str) -> None:
    assert finding.status == status
    assert bool(finding.remedy) == (status != "OK")


def test_a_refused_credential_tells_of_a_clock_that_is_off() -> None:
    assert "its clock is 400 s from ours" in doctor.cloud("u", CloudAnswer(401, None, 400.0)).detail


def test_a_check_that_fails_stops_no_other() -> None:
    def away() -> Finding:
        raise StoreUnavailable("nobody there")

    found = doctor.examine([Check("one", away, "start it"), Check("two", lambda: doctor.fine("two", "well"))])
    assert [(one.status, one.detail, one.remedy) for one in found] == [
        ("FAIL", "nobody there", "start it"),
        ("OK", "well", ""),
    ]
