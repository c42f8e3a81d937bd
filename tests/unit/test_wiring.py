from __future__ import annotations

import sys

import pytest

from carrick import wiring
from carrick.errors import CarrickError, MissingExtra

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
