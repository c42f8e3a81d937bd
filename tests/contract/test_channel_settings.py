"""`OUTBOX_…` variables of any command are defaults of what a channel's declarations leave open, whoever made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from carrick import wiring
from carrick.errors import InvalidInput, SettingsError, UnknownChannel
from carrick.outbox.channel import Channel, declared, with_defaults
from carrick.outbox.outbox import Outbox
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.store import Store
from carrick.settings import Settings, read_settings

NOWHERE = Path("no .env file")


def settings(**variables: str) -> Settings:
    return read_settings(variables, NOWHERE)


def app(store: Store) -> Outbox:
    """An application with the outbox; it knows no settings."""
    return Outbox(store, dialect="postgresql" if isinstance(store, PostgresStore) else "sqlite")


def test_what_a_declaration_leaves_open_is_as_the_settings_say_and_the_rest_as_it_says(store: Store) -> None:
    app(store).channel("things", batch_rows=7)
    found = wiring.channel_of(store, "things", settings(OUTBOX_BATCH_SIZE="50", OUTBOX_MAX_ATTEMPTS="3"))
    assert (found.batch_rows, found.max_attempts) == (7, 3)
    assert store.channels()["things"] == found


def test_a_variable_that_is_not_set_changes_nothing(store: Store) -> None:
    app(store).channel("things")
    wiring.channel_of(store, "things", settings(OUTBOX_RETENTION_DAYS="1"))
    assert wiring.channel_of(store, "things", settings()).retention_days == 1
    assert wiring.channel_of(store, "things", settings(OUTBOX_RETENTION_DAYS="7")).retention_days == 7


def test_an_application_that_starts_again_leaves_what_it_leaves_open(store: Store) -> None:
    app(store).channel("things", lease_seconds=30)
    wiring.channel_of(store, "things", settings(OUTBOX_MAX_ATTEMPTS="3"))
    again = app(store).channel("things", lease_seconds=40)
    assert (again.max_attempts, again.lease_seconds) == (3, 40)
    assert store.channels()["things"] == again


def test_what_a_declaration_says_no_longer_is_open_again_and_as_at_first(store: Store) -> None:
    app(store).channel("things", batch_rows=7)
    assert app(store).channel("things").batch_rows == 100
    assert wiring.channel_of(store, "things", settings(OUTBOX_BATCH_SIZE="50")).batch_rows == 50


def test_a_channel_that_was_declared_whole_keeps_all_of_it(store: Store) -> None:
    whole = Channel(name="things", max_attempts=4)
    store.declare(whole)
    assert wiring.channel_of(store, "things", settings(OUTBOX_BATCH_SIZE="50", OUTBOX_MAX_ATTEMPTS="3")) == whole


def test_a_variable_that_does_not_fit_what_the_channel_says_is_named(store: Store) -> None:
    app(store).channel("things", backoff_base_seconds=60, backoff_cap_seconds=120)
    app(store).channel("others", backoff_base_seconds=60)
    with pytest.raises(SettingsError, match="OUTBOX_BACKOFF_CAP_SECONDS does not fit channel 'others'"):
        wiring.channel_of(store, "others", settings(OUTBOX_BACKOFF_CAP_SECONDS="5"))
    assert wiring.channel_of(store, "things", settings(OUTBOX_BACKOFF_CAP_SECONDS="5")).backoff_cap_seconds == 120


def test_a_channel_that_nobody_declared_is_refused_with_the_known_ones(store: Store) -> None:
    app(store).channel("things")
    with pytest.raises(UnknownChannel, match="things"):
        wiring.channel_of(store, "thnigs", settings())


def test_what_is_declared_in_sql_is_said_option_by_option(store: Store) -> None:
    if not isinstance(store, PostgresStore):
        return  # a SQLite file has no function for it
    for options in ('{"batch_rows": 7}', '{"max_attempts": 4}'):
        store._value("declare_channel", name="things", options=options, said=None)
    found = wiring.channel_of(
        store, "things", settings(OUTBOX_BATCH_SIZE="50", OUTBOX_MAX_ATTEMPTS="3", OUTBOX_LEASE_SECONDS="20")
    )
    assert (found.batch_rows, found.max_attempts, found.lease_seconds) == (7, 4, 20)


@pytest.mark.parametrize("options", [{"said": ["mode"]}, {"mode": "stream", "said": None}])
def test_who_said_what_is_no_option(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="said"):
        declared("things", options, known=None)
    assert with_defaults(declared("things", {}, known=None), {"batch_rows": 5}).batch_rows == 5


def test_an_application_and_a_drain_that_start_at_once_do_not_undo_each_other(
    store: Store, others: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(store).channel("things")
    channels = store.channels

    def then_the_drain() -> Any:
        known = channels()
        wiring.channel_of(others, "things", settings(OUTBOX_MAX_ATTEMPTS="3"))
        return known

    monkeypatch.setattr(store, "channels", then_the_drain)
    app(store).channel("things", lease_seconds=40)
    found = others.channels()["things"]
    assert (found.max_attempts, found.lease_seconds) == (3, 40)
