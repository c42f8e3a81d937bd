"""`carrick doctor` on real databases, Redis, Kafka and a real ingest: well, and ill in each way."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from carrick import wiring
from carrick.cli import run
from carrick.ops import doctor
from carrick.outbox.migration import indexes_of
from carrick.settings import read_settings
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick_scoreboard import wiring as scoreboard
from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials
from tests.conftest import emptied
from tests.kafka_cluster import MockCluster
from tests.ports import free_port
from tests.postgres_server import drop_database, fresh_database, versions
from tests.redis_server import redis_url
from tests.sqlite_file import whole_file

pytestmark = pytest.mark.slow

Shown = pytest.CaptureFixture[str]
NOWHERE = Path("no .env file")
SECRET = "the-only-secret-here"
GIVEN = f"k:{base64.b64encode(bytes(32)).decode()}"
OTHER = f"k:{base64.b64encode(b'o' * 32).decode()}"
ROOT = Path(__file__).parents[3]


class Place(NamedTuple):
    """A database with the schema, named by DATABASE_URL."""

    url: str
    clock: Clock


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which nothing is configured."""
    monkeypatch.chdir(tmp_path)
    configured = ("CLOUD_", "KAFKA_", "REDIS_", "OSM_", "CARRICK_", "DATABASE_URL")
    for name in [name for name in os.environ if name.startswith(configured)]:
        monkeypatch.delenv(name)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "sqlite":
        found = Place(f"sqlite:///{sqlite_path}", SqliteClock(sqlite_path))
        whole_file(sqlite_path)
    else:
        dsn = emptied(versions()[0])
        found = Place(dsn, PostgresClock(dsn))
    monkeypatch.setenv("DATABASE_URL", found.url)
    return found


def examined(capsys: Shown, code: int, *arguments: str) -> dict[str, dict[str, Any]]:
    """The checks by name; the command must end with that code."""
    assert run(["doctor", "--json", *arguments]) == code
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert all(set(check) == {"name", "status", "detail", "remedy"} for check in checks)
    assert all(bool(check["remedy"]) == (check["status"] != "OK") for check in checks)
    return {check["name"]: check for check in checks}


def statuses(checks: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Those that are not OK."""
    return {name: check["status"] for name, check in checks.items() if check["status"] != "OK"}


def test_where_nothing_is_configured_everything_is_well_and_said_to_be_so(place: Place, capsys: Shown) -> None:
    del place
    checks = examined(capsys, 0)
    assert statuses(checks) == {}
    assert list(checks) == [
        "configuration",
        "database",
        "schema",
        "indexes",
        "files",
        "transactions",
        "dead_rows",
        "clock",
        "listening",
        "redis",
        "kafka",
        "cloud",
        "scoreboard",
        "osm_block",
        "osm_endings",
        "keys",
    ]
    for name in ("redis", "kafka", "cloud", "scoreboard"):
        assert checks[name]["detail"].startswith("not configured: ")


def test_for_people_every_line_begins_with_its_status(place: Place, capsys: Shown) -> None:
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("OK   configuration: DATABASE_URL=")
    scoreboard_tables = scoreboard.open_tables(place.url)
    with closing(scoreboard_tables):
        Blocks(scoreboard_tables).note("abuse")
    assert run(["doctor"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "FAIL osm_block: OSM has blocked the application since " in said
    assert "-> find out why with OSM" in said


@asynccontextmanager
async def ingesting(tmp_path: Path, **variables: str) -> AsyncIterator[str]:
    """An ingest with these variables; where batches are posted to."""
    given = {"DATABASE_URL": f"sqlite:///{tmp_path}/cloud.db", "PORT": "0", "METRICS_PORT": "0", **variables}
    service = wiring.ingest(read_settings(given, NOWHERE, service="ingest"))
    stopping, port = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(service.run(stopping, lambda at, _: port.set_result(at)))
    try:
        yield f"http://127.0.0.1:{await port}/api/v1/edge/batch"
    finally:
        stopping.set()
        await running


def at_an_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, code: int, **variables: str
) -> dict[str, dict[str, Any]]:
    """What is found with an ingest as the cloud."""

    async def asked() -> dict[str, dict[str, Any]]:
        async with ingesting(tmp_path, **variables) as url:
            monkeypatch.setenv("CLOUD_INGESTION_URL", url)
            return await asyncio.to_thread(examined, capsys, code)

    return asyncio.run(asked())


def test_where_everything_is_configured_and_there_everything_is_well(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    del place
    monkeypatch.setenv("REDIS_URL", redis_url())
    monkeypatch.setenv("CLOUD_AUTH_MODE", "hmac")
    monkeypatch.setenv("CLOUD_HMAC_SECRET", SECRET)
    monkeypatch.setenv("OSM_CLIENT_ID", "an-application")
    monkeypatch.setenv("OSM_CLIENT_SECRET", SECRET)
    monkeypatch.setenv("CARRICK_SECRET_KEYS", GIVEN)
    with MockCluster() as cluster:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
        accepted = {"CLOUD_AUTH_MODE": "hmac", "CLOUD_HMAC_SECRET": SECRET}
        checks = at_an_ingest(tmp_path, monkeypatch, capsys, 0, **accepted)
    assert statuses(checks) == {}
    assert checks["redis"]["detail"] == "answers and can be written to"
    assert "answers 200" in checks["cloud"]["detail"]
    assert "OSM_CLIENT_ID=an-application" in checks["scoreboard"]["detail"]
    assert SECRET not in json.dumps(checks)
    assert GIVEN.partition(":")[2] not in json.dumps(checks)


def test_the_configuration_shows_every_variable_and_no_secret(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    del place
    secrets = {
        "CLOUD_API_KEY": SECRET,
        "ADMIN_TOKEN": SECRET,
        "REDIS_URL": f"redis://u:{SECRET}@127.0.0.1:{free_port()}",
        "CLOUD_INGESTION_URL": f"http://u:{SECRET}@127.0.0.1:{free_port()}/batch?key={SECRET}",
        "CLOUD_PROXY": f"http://u:{SECRET}@127.0.0.1:{free_port()}",
        "OSM_CLIENT_ID": "an-application",
        "OSM_CLIENT_SECRET": SECRET,
        "CARRICK_SECRET_KEYS": GIVEN,
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    checks = examined(capsys, 1)
    assert SECRET not in json.dumps(checks)
    assert GIVEN.partition(":")[2] not in json.dumps(checks)
    lines = [*checks["configuration"]["detail"].splitlines(), *checks["scoreboard"]["detail"].splitlines()]
    shown = {line.partition("=")[0] for line in lines}
    page = (ROOT / "docs/reference/configuration.md").read_text()
    assert shown == set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    assert "CLOUD_API_KEY=***" in lines


def test_a_wrong_setting_is_a_finding(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("OUTBOX_BATCH_SIZE", "many")
    checks = examined(capsys, 1)
    assert statuses(checks) == {"configuration": "FAIL"}
    assert "OUTBOX_BATCH_SIZE='many'" in checks["configuration"]["detail"]


@pytest.fixture
def empty(request: pytest.FixtureRequest) -> Iterator[str]:
    """A PostgreSQL database without a schema."""
    del request
    dsn = fresh_database(versions()[0], migrated=False)
    yield dsn
    drop_database(versions()[0], dsn)


def test_no_schema_is_a_fail(empty: str, tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "empty.db").touch()
    for url in (empty, "sqlite:///empty.db", "sqlite:///none.db"):
        checks = examined(capsys, 1, "--database", url)
        assert statuses(checks) == {"schema": "FAIL"}
        assert checks["schema"]["detail"].startswith("there is no schema")
        assert checks["schema"]["remedy"] == "run: carrick migrate"
    assert not (tmp_path / "none.db").exists()


def forget_newest_migration(url: str) -> None:
    """As if the last migration of the engine had not been applied."""
    last = " where part = 'engine' and number = (select max(number) from {0} where part = 'engine')"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute("delete from carrick_migration" + last.format("carrick_migration"))
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(("delete from carrick.migration" + last.format("carrick.migration")).encode())


def test_an_old_schema_is_a_fail_that_names_what_is_missing(
    newest_postgres_dsn: str, sqlite_path: Path, capsys: Shown
) -> None:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    for url in (newest_postgres_dsn, f"sqlite:///{sqlite_path}"):
        forget_newest_migration(url)
        checks = examined(capsys, 1, "--database", url)
        assert statuses(checks) == {"schema": "FAIL"}
        assert checks["schema"]["detail"].startswith("migrations are missing: engine/")


def test_a_schema_of_a_newer_release_is_a_fail(newest_postgres_dsn: str, capsys: Shown) -> None:
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute("insert into carrick.migration (part, number, name) values ('engine', 999, 'future')")
    checks = examined(capsys, 1, "--database", newest_postgres_dsn)
    assert "newer release" in checks["schema"]["remedy"]


def test_a_database_that_does_not_answer_is_one_fail(capsys: Shown) -> None:
    url = f"postgresql://ann:{SECRET}@127.0.0.1:{free_port()}/shop"
    checks = examined(capsys, 1, "--database", url)
    assert statuses(checks) == {"database": "FAIL"}
    assert SECRET not in json.dumps(checks)


def test_a_missing_index_is_named_with_the_statement_that_makes_it(place: Place, capsys: Shown) -> None:
    wanted = indexes_of(wiring.parts_of(place.url))
    (name,) = [name for name in wanted if name.endswith("receipt_made_at")]
    drop = f"drop index {name if name.startswith('carrick_') else 'carrick.' + name}"
    again = wanted[name]
    if place.url.startswith("sqlite"):
        with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as file:
            file.execute(drop)
        checks = examined(capsys, 0)
    else:
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute(drop.encode())
            try:
                checks = examined(capsys, 0)
            finally:
                connection.execute(again.encode())
    assert statuses(checks) == {"indexes": "WARN"}
    assert name in checks["indexes"]["detail"]
    assert again in checks["indexes"]["remedy"]


def test_an_index_whose_building_broke_off_is_missing(newest_postgres_dsn: str, capsys: Shown) -> None:
    with psycopg.connect(newest_postgres_dsn, autocommit=True) as connection:
        connection.execute("update pg_index set indisvalid = false where indexrelid = 'carrick.work_rank'::regclass")
    checks = examined(capsys, 0, "--database", newest_postgres_dsn)
    assert statuses(checks) == {"indexes": "WARN"}
    assert "work_rank" in checks["indexes"]["detail"]


def test_the_transaction_that_holds_back_vacuum_is_named_with_its_owner(
    newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.setattr(doctor, "LONG_SECONDS", 0.0)
    with psycopg.connect(newest_postgres_dsn, application_name="nightly-report") as holding:
        holding.execute("set transaction isolation level repeatable read")
        holding.execute("select 'a secret in the query'")
        checks = examined(capsys, 0, "--database", newest_postgres_dsn)
        pid = holding.info.backend_pid
    assert statuses(checks) == {"transactions": "WARN"}
    said = checks["transactions"]["detail"]
    assert "application nightly-report" in said
    assert f"pid {pid}" in said
    assert "secret" not in said


def test_a_clock_that_is_off_is_a_warning(place: Place, capsys: Shown) -> None:
    place.clock.shift(-600)
    checks = examined(capsys, 0)
    assert statuses(checks) == {"clock": "WARN"}
    assert "behind" in checks["clock"]["detail"]


def test_a_redis_that_is_away_is_a_warning_because_the_database_does_its_work(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    del place
    monkeypatch.setenv("REDIS_URL", f"redis://127.0.0.1:{free_port()}")
    assert statuses(examined(capsys, 0)) == {"redis": "WARN"}


def test_a_kafka_that_is_away_is_a_fail(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    del place
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    assert statuses(examined(capsys, 1)) == {"kafka": "FAIL"}


@pytest.mark.parametrize(("mode", "variable"), [("api_key", "CLOUD_API_KEY"), ("hmac", "CLOUD_HMAC_SECRET")])
def test_a_cloud_that_refuses_the_credential_is_a_fail_that_says_so(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, mode: str, variable: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{sqlite_path}")
    wiring.migrate(f"sqlite:///{sqlite_path}")
    monkeypatch.setenv("CLOUD_AUTH_MODE", mode)
    monkeypatch.setenv(variable, SECRET)
    checks = at_an_ingest(tmp_path, monkeypatch, capsys, 1, **{"CLOUD_AUTH_MODE": mode, variable: "another"})
    assert statuses(checks) == {"cloud": "FAIL"}
    assert "refuses our credential" in checks["cloud"]["detail"]
    assert variable in checks["cloud"]["remedy"]
    assert SECRET not in json.dumps(checks)


def test_a_cloud_that_takes_the_key_is_well(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{sqlite_path}")
    wiring.migrate(f"sqlite:///{sqlite_path}")
    given = {"CLOUD_AUTH_MODE": "api_key", "CLOUD_API_KEY": SECRET}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert statuses(at_an_ingest(tmp_path, monkeypatch, capsys, 0, **given)) == {}


def test_a_cloud_that_is_away_is_a_fail(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    del place
    monkeypatch.setenv("CLOUD_INGESTION_URL", f"http://127.0.0.1:{free_port()}/batch")
    checks = examined(capsys, 1)
    assert statuses(checks) == {"cloud": "FAIL"}
    assert "does not answer" in checks["cloud"]["detail"]


def test_a_block_by_osm_is_a_fail_while_it_stands(place: Place, capsys: Shown) -> None:
    with scoreboard.opened_tables(place.url) as tables:
        Blocks(tables).note("abuse")
        assert statuses(examined(capsys, 1)) == {"osm_block": "FAIL"}
        Blocks(tables).clear("ann", "settled")
        assert statuses(examined(capsys, 0)) == {}


def test_a_call_that_osm_will_end_is_a_warning(place: Place, capsys: Shown) -> None:
    with scoreboard.opened_tables(place.url) as tables:
        Blocks(tables).note_ending("patrols", "2027-01-31", datetime(2027, 1, 31, tzinfo=UTC))
        Blocks(tables).note_ending("profile", "soon", None)
    checks = examined(capsys, 0)
    assert statuses(checks) == {"osm_endings": "WARN"}
    assert checks["osm_endings"]["detail"] == "OSM will end: patrols, 2027-01-31; profile, said 'soon'"


@pytest.mark.parametrize(("mode", "is_told"), [(0o600, False), (0o660, False), (0o604, True), (0o666, True)])
def test_files_that_everybody_may_open_are_a_warning(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, mode: int, is_told: bool
) -> None:
    whole_file(sqlite_path)
    sqlite_path.chmod(mode)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{sqlite_path}")
    checks = examined(capsys, 0)
    assert statuses(checks) == ({"files": "WARN"} if is_told else {})
    assert (f"{sqlite_path} ({mode:04o})" in checks["files"]["detail"]) is is_told


def signed_in(url: str, user: int = 7) -> None:
    """A user whose tokens are sealed with the key of GIVEN."""
    keys = KeyRing({"k": bytes(32)})
    sealed = SealedTokens(
        keys.seal("access", place_of(user, "access")), keys.seal("refresh", place_of(user, "refresh")), 9
    )
    with scoreboard.opened_tables(url) as tables:
        StoredCredentials(tables).save(user, "Ann", "", sealed)


def test_keys_that_open_everything_are_well(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    signed_in(place.url)
    monkeypatch.setenv("CARRICK_SECRET_KEYS", GIVEN)
    assert "all of 1 users' credentials open" in examined(capsys, 0)["keys"]["detail"]


@pytest.mark.parametrize("given", [OTHER, "nonsense", None])
def test_keys_that_do_not_open_what_is_sealed_are_a_fail(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, given: str | None
) -> None:
    signed_in(place.url)
    if given is not None:
        monkeypatch.setenv("CARRICK_SECRET_KEYS", given)
    checks = examined(capsys, 1)
    assert statuses(checks) == {"keys": "FAIL"}
    assert given is None or given.rpartition(":")[2] not in json.dumps(checks)
    assert list(tmp_path.glob("*.key")) == []


def test_a_scoreboard_that_could_not_start_is_a_fail(
    newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.setenv("OSM_CLIENT_ID", "an-application")
    checks = examined(capsys, 1, "--database", newest_postgres_dsn)
    assert "OSM_CLIENT_SECRET is not set" in checks["scoreboard"]["detail"]
    monkeypatch.setenv("OSM_CLIENT_SECRET", SECRET)
    checks = examined(capsys, 1, "--database", newest_postgres_dsn)
    assert "CARRICK_SECRET_KEYS is not set" in checks["scoreboard"]["detail"]
