from __future__ import annotations

import asyncio
import sys

import pytest

from carrick import wiring
from carrick.errors import CarrickError, MissingExtra
from carrick.settings import KafkaSettings, Settings

POSTGRES = "postgresql://localhost/nowhere"


@pytest.fixture
def without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where only `carrick` is installed, without its extra."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("psycopg", "psycopg_pool") or name.startswith("carrick.outbox.postgres."):
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
    assert wiring.kafka_config(KafkaSettings()) == {"security.protocol": "PLAINTEXT"}
    safe = KafkaSettings(
        security_protocol="SASL_SSL", sasl_username="outbox", sasl_password="hush", ca_file="/etc/kafka/ca.pem"
    )
    assert wiring.kafka_config(safe) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "outbox",
        "sasl.password": "hush",
        "ssl.ca.location": "/etc/kafka/ca.pem",
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
