"""What is written about metrics (the page, the alerts, the dashboards) is what the services export, both ways."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from carrick import wiring
from carrick.ingest.metrics import IngestMetrics
from carrick.outbox.store import Store
from carrick.testing.samples import declare, put
from carrick.web import figures
from tests.service import service

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/metrics.md"
ALERTS = ROOT / "ops/prometheus/alerts.yml"
ALERTS_TEST = ROOT / "ops/prometheus/alerts_test.yml"
DASHBOARDS = sorted((ROOT / "ops/grafana").glob("*.json"))

ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<kind>\w+) \|(?P<labels>[\w, ]*)\|(?P<of>[FDIS ]+)\|", re.MULTILINE)
TYPE = re.compile(r"^# TYPE (?P<name>\w+) (?P<kind>\w+)$", re.MULTILINE)
LABELS = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)|\{([^}]*)\}")
PROMETHEUS_OWN = {"up": {"job", "instance"}}
"""What Prometheus itself knows of whatever it scrapes."""
KEYWORDS = {"and", "or", "unless", "by", "on", "bool", "offset", "without", "ignoring"}


@cache
def exported_texts() -> dict[str, str]:
    """What each service exports, by the letter of its column; a relay has been at work."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/figures.db"
        wiring.migrate(url)
        with wiring.opened_store(url) as store:
            relay, ingest = of_a_relay(store), IngestMetrics(store).text().decode()

        async def of_a_scoreboard() -> str:
            async with service(f"sqlite:///{folder}/board.db") as running:
                return await running.metrics()

        web = figures.text().decode()
        return {"F": relay + web, "D": relay + web, "I": ingest + web, "S": asyncio.run(of_a_scoreboard())}


def of_a_relay(store: Store) -> str:
    declare(store)
    put(store)
    store.close_gate("things", "*", 600, "so that there is one")
    metrics = wiring.metrics(store)
    metrics.claimed("things", 1, 0.1)
    metrics.sent("things", 0.1, delivered=True, failed=True)
    return metrics.text().decode()


def exported() -> dict[str, dict[str, str]]:
    """The metrics of each service by the letter of its column: name and kind."""
    return {letter: kinds(text) for letter, text in exported_texts().items()}


def kinds(text: str) -> dict[str, str]:
    return {one["name"]: one["kind"] for one in TYPE.finditer(text) if not one["name"].endswith("_created")}


def documented() -> dict[str, dict[str, str]]:
    rows = [row.groupdict() for row in ROW.finditer(PAGE.read_text())]
    assert len(rows) == len({row["name"] for row in rows})
    return {letter: {row["name"]: row["kind"] for row in rows if letter in row["of"]} for letter in "FDIS"}


def names_in(expression: str) -> set[str]:
    """The metrics that a PromQL expression names."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on|without|ignoring)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"[A-Za-z_]\w*(?!\w*\s*\()", bare)
    return {word for word in words if word not in KEYWORDS}


def metric_of(sample: str) -> str:
    """The metric of a sample: the parts of a histogram are one."""
    every = set().union(*exported().values())
    base = re.sub(r"_(bucket|count|sum)$", "", sample)
    return base if base in every and sample not in every else sample


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def labels_of(name: str) -> set[str]:
    """The labels that the page promises for a metric."""
    if name in PROMETHEUS_OWN:
        return PROMETHEUS_OWN[name]
    (found,) = [row["labels"] for row in ROW.finditer(PAGE.read_text()) if row["name"] == metric_of(name)]
    return {label.strip() for label in found.split(",")} - {""}


def labels_in(expression: str) -> set[str]:
    """The labels that a PromQL expression names, but for those of a histogram's buckets."""
    named = [part for groups in LABELS.findall(expression) for part in groups if part]
    return {label for part in named for label in re.findall(r"(\w+)\s*(?:[=!]|,|$)", part)} - {"le"}


def headings(page: Path) -> set[str]:
    """The names that a page's headings can be linked by."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def queries(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        assert panel["targets"], panel["title"]
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("letter", ["F", "D", "I", "S"])
def test_the_page_names_exactly_what_a_service_exports(letter: str) -> None:
    assert documented()[letter] == exported()[letter]


@pytest.mark.parametrize("letter", ["F", "D", "I", "S"])
def test_every_sample_has_the_labels_that_the_page_promises(letter: str) -> None:
    for family in text_string_to_metric_families(exported_texts()[letter]):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                assert sample.labels.keys() - {"le"} == labels_of(sample.name), sample.name


def test_the_alerts_fire_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:  # the end of the run says so
        return
    told = subprocess.run([promtool, "test", "rules", str(ALERTS_TEST)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_names_are_found_in_expressions() -> None:
    told = 'sum by (le, a) (rate(one_bucket{b="two"}[5m])) / max(three) > 0.5 and count(min by (c) (four) == 0) > 1'
    assert names_in(told) == {"one_bucket", "three", "four"}
    assert labels_in(told) == {"a", "b", "c"}


def test_every_alert_names_metrics_that_are_exported_and_a_page_that_is_there() -> None:
    every = set().union(*exported().values())
    for rule in alerts():
        found = names_in(rule["expr"])
        assert found, rule["alert"]
        assert {metric_of(name) for name in found} <= every | PROMETHEUS_OWN.keys(), rule["alert"]
        assert labels_in(rule["expr"]) <= set().union(*(labels_of(name) for name in found)), rule["alert"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        page, _, heading = rule["annotations"]["runbook"].partition("#")
        assert heading in headings(ROOT / page), rule["alert"]


@pytest.mark.parametrize(
    ("alert", "severity", "limits"),
    [
        ("OutboxBacklogWarning", "warning", ["1000", "3600"]),
        ("OutboxBacklogCritical", "critical", ["10000", "86400"]),
        ("OutboxDeadEntries", "critical", ["0"]),
        ("OsmServiceBlocked", "critical", ["1"]),
        ("OsmBudgetCritical", "critical", ["10"]),
        ("OsmBudgetWarning", "warning", ["100"]),
        ("PatrolCacheMisses", "warning", ["0.5"]),
        ("OsmErrors", "warning", ["0.05"]),
    ],
)
def test_the_promised_thresholds_are_those_of_the_alerts(alert: str, severity: str, limits: list[str]) -> None:
    (rule,) = [rule for rule in alerts() if rule["alert"] == alert]
    assert rule["labels"]["severity"] == severity
    assert re.findall(r"[<>=]=? ([0-9.]+)", rule["expr"]) == limits


@pytest.mark.parametrize("path", DASHBOARDS, ids=[path.stem for path in DASHBOARDS])
def test_every_dashboard_names_metrics_that_are_exported(path: Path) -> None:
    board = json.loads(path.read_text())
    every = set().union(*exported().values())
    for query in queries(board):
        found = names_in(query)
        assert found, query
        assert {metric_of(name) for name in found} <= every, query
        assert labels_in(query) <= set().union(*(labels_of(name) for name in found)), query
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_the_dashboards_show_depth_latency_retries_and_the_budget_of_osm() -> None:
    every = [query for path in DASHBOARDS for query in queries(json.loads(path.read_text()))]
    shown = {metric_of(name) for query in every for name in names_in(query)}
    assert shown >= {
        "outbox_pending_total",
        "sync_batch_latency_ms",
        "carrick_entries_total",
        "score_outbox_retry_total",
        "osm_rate_limit_remaining",
    }
