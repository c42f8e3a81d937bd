from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from carrick import wiring
from carrick.errors import CarrickError, MissingExtra, SchemaMissing, SettingsError
from carrick.relay.threads import Threads
from carrick.settings import KafkaSettings, Settings, read_settings

POSTGRES = "postgresql://localhost/nowhere"


@pytest.fixture
def without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where only `carrick` is installed, without its extra."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("psycopg", "psycopg_pool") or name.startswith(
            ("carrick.outbox.postgres.", "carrick.state.postgres.")
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("carrick.outbox.postgres.migrate", raising=False)
    monkeypatch.delattr("carrick.outbox.postgres.store", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)


@pytest.mark.usefixtures("without_psycopg")
@pytest.mark.parametrize("use", [wiring.migrate, wiring.pending_migrations, wiring.migration_script])
def test_postgresql_without_its_driver_says_what_to_install(use: object) -> None:
    assert callable(use)
    with pytest.raises(MissingExtra, match=r"pip install 'carrick\[postgres\]'"):
        use(POSTGRES)


@pytest.mark.usefixtures("without_psycopg")
def test_opening_a_postgresql_store_without_its_driver_says_what_to_install() -> None:
    with pytest.raises(CarrickError, match=r"pip install 'carrick\[postgres\]'"):
        wiring.open_store(POSTGRES)


def test_the_sql_of_both_databases_is_there_without_connecting() -> None:
    assert "carrick.entry" in wiring.migration_script(POSTGRES)
    assert "carrick_entry" in wiring.migration_script("sqlite:///nowhere/outbox.db")


def test_compat_adds_the_views_of_other_outboxes_to_the_sql() -> None:
    assert "public.sync_outbox" in wiring.migration_script(POSTGRES, compat=True)
    assert "public.sync_outbox" not in wiring.migration_script(POSTGRES)


def test_a_drain_to_kafka_goes_in_as_the_settings_say() -> None:
    assert wiring.kafka_config(KafkaSettings()) == {
        "security.protocol": "PLAINTEXT",
        "message.max.bytes": 2_097_152,
    }
    safe = KafkaSettings(
        security_protocol="SASL_SSL", sasl_username="outbox", sasl_password="hush", ca_file="/etc/kafka/ca.pem"
    )
    assert wiring.kafka_config(safe) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "outbox",
        "sasl.password": "hush",
        "ssl.ca.location": "/etc/kafka/ca.pem",
        "message.max.bytes": 2_097_152,
    }


def test_the_client_of_kafka_takes_these_settings() -> None:
    safe = KafkaSettings(
        bootstrap_servers="127.0.0.1:1", security_protocol="SASL_SSL", sasl_username="outbox", sasl_password="hush"
    )
    settings = Settings(instance_id="i", kafka=safe)
    drainer = wiring.drainer(
        settings,
        "sqlite:///x.db",
        channels=["c"],
        to="kafka",
        app=None,
        topic="t",
        cloud_events=False,
        source=None,
        url=None,
    )

    async def made() -> None:
        await drainer.sink("c").close()

    asyncio.run(made())


def state_settings(path: Path, **environ: str) -> Settings:
    return read_settings({"DATABASE_URL": f"sqlite:///{path}", **environ}, path.parent / "no .env file")


@pytest.mark.parametrize(
    ("variable", "value", "accepted"),
    [
        ("CONTACTS_DEFAULT_REGION", "ZZ", "as in GB"),
        ("CONTACTS_CHANNEL", "c" * 101, "1 to 100 letters"),
        ("CONTACTS_CHANNEL", "a b", "1 to 100 letters"),
    ],
)
def test_a_wrong_setting_of_the_contacts_stops_the_start_with_its_variable(
    tmp_path: Path, variable: str, value: str, accepted: str
) -> None:
    settings = state_settings(tmp_path / "outbox.db", **{variable: value})
    with pytest.raises(SettingsError, match=rf"^{variable}='{value}' is not acceptable; accepted: .*{accepted}"):
        wiring.ingest(settings)


@pytest.mark.parametrize("redis", ["", "unix:///no/such/socket"])
def test_shared_state_works_with_a_redis_that_is_not_there_as_without_one(tmp_path: Path, redis: str) -> None:
    settings = state_settings(tmp_path / "outbox.db", REDIS_URL=redis)
    wiring.migrate(settings.database_url)
    threads = Threads(1)

    async def story() -> None:
        state = wiring.shared_state(settings, threads)
        await state.set("k", b"1", ttl=60)
        assert await state.get("k") == b"1"
        assert (await state.look()).degraded == bool(redis)
        await state.close()

    asyncio.run(story())
    threads.close()


def test_shared_state_needs_its_schema(tmp_path: Path) -> None:
    with pytest.raises(SchemaMissing):
        wiring.shared_state(state_settings(tmp_path / "outbox.db"), Threads(1))


def test_redis_without_its_client_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "carrick.state.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtra, match=r"pip install 'carrick\[redis\]'"):
        wiring.shared_state(state_settings(tmp_path / "outbox.db", REDIS_URL="redis://h"), Threads(1))
