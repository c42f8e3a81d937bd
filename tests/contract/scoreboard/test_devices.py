"""Devices that are signed in: whose they are, what they show, and when nobody misses them any more."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from carrick.errors import InvalidInput
from carrick.testing import Clock
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.devices import Device, Devices
from carrick_scoreboard.store.tables import Tables

ANN, BOB = 7, 8
LETTERS = "BCDFGHJKLM"
DAY = 86_400


def made(devices: Devices, number: int = 0, user: int = ANN, term_ends: date | None = None) -> Device:
    """A device with its token, `token N`."""
    code = devices.begin(
        digest(f"code {number}"), LETTERS[number] * 8, "matrix", address="", country="", poll_seconds=5, seconds=300
    )
    assert code is not None
    term_id = None if term_ends is None else 50402
    device = devices.approve(
        code, osm_user_id=user, section_id=40104, name=f"Hall {number}", term_id=term_id, term_end_date=term_ends
    )
    assert device is not None
    assert devices.poll(digest(f"code {number}"), "matrix", digest(f"token {number}")).answer == "approved"
    return device


def in_days(days: int) -> date:
    return (datetime.now(UTC) + timedelta(days=days)).date()


def now_of(devices: Devices, device: Device) -> Device:
    return next(one for one in devices.all() if one.id == device.id)


def test_a_device_is_known_by_its_token_alone(devices: Devices) -> None:
    device = made(devices)
    assert devices.of_token(digest("token 0")) == device
    assert devices.of_token("token 0") is None
    assert devices.of_token(digest("another")) is None


def test_many_devices_are_known_by_their_tokens_at_once(devices: Devices) -> None:
    first, second, revoked = made(devices, 0), made(devices, 1), made(devices, 2)
    devices.revoke(revoked.id, ANN, actor="osm:7")
    tokens = [digest(f"token {number}") for number in (1, 0, 2, 0, 9)]
    found = devices.of_tokens(tokens)
    assert {token: device.id for token, device in found.items()} == {tokens[0]: second.id, tokens[1]: first.id}
    assert {token: device.code_hash for token, device in found.items()} == {token: token[:8] for token in tokens[:2]}
    assert devices.of_tokens([]) == {}


def test_a_use_is_written_down_once_in_ten_minutes(devices: Devices, clock: Clock) -> None:
    device = made(devices)
    devices.used(device.id)
    first = now_of(devices, device).last_used_at
    assert first is not None
    clock.shift(590)
    devices.used(device.id)
    assert now_of(devices, device).last_used_at == first
    clock.shift(20)
    devices.used(device.id)
    assert now_of(devices, device).last_used_at != first


def test_a_user_sees_their_own_devices_that_are_not_revoked(devices: Devices) -> None:
    first, second, others = made(devices, 0), made(devices, 1), made(devices, 2, BOB)
    devices.revoke(second.id, ANN, actor="osm:7")
    assert devices.of_user(ANN) == [first]
    assert devices.of_user(BOB) == [others]
    assert [device.id for device in devices.all()] == [others.id, second.id, first.id]
    assert [device.id for device in devices.all(limit=1)] == [others.id]


def test_a_device_gets_another_name_from_its_owner_only(devices: Devices) -> None:
    device = made(devices)
    assert devices.rename(device.id, BOB, "Mine") is None
    renamed = devices.rename(device.id, ANN, "Scout hut")
    assert renamed is not None
    assert renamed.name == now_of(devices, device).name == "Scout hut"
    with pytest.raises(InvalidInput, match="name"):
        devices.rename(device.id, ANN, "")


def test_a_device_shows_another_section_for_its_owner_only_and_forgets_the_term(devices: Devices) -> None:
    device = made(devices, term_ends=in_days(50))
    assert devices.move(device.id, BOB, 40103) is None
    moved = devices.move(device.id, ANN, 40103)
    assert moved is not None
    assert (moved.section_id, moved.term_id, moved.term_checked_at, moved.term_end_date) == (40103, None, None, None)


def test_a_revoked_device_is_shut_out_once_and_for_all(devices: Devices, tables: Tables) -> None:
    device = made(devices)
    assert devices.revoke(device.id, BOB, actor="osm:8") is None
    assert devices.of_token(digest("token 0")) is not None
    revoked = devices.revoke(device.id, ANN, actor="osm:7")
    assert revoked is not None
    assert revoked.revoked_at is not None
    assert devices.of_token(digest("token 0")) is None
    assert devices.revoke(device.id, ANN, actor="osm:7") is None
    assert devices.rename(device.id, ANN, "Back") is None
    assert devices.move(device.id, ANN, 40103) is None
    (act, *_) = Audit(tables).latest(f"device:{device.id}")
    assert (act.actor, act.action, act.detail) == ("osm:7", "device.revoke", {"name": "Hall 0"})


def test_an_operator_may_revoke_any_device(devices: Devices) -> None:
    device = made(devices)
    assert devices.revoke(device.id, None, actor="ann@desk") is not None
    assert devices.revoke(device.id + 1, None, actor="ann@desk") is None


def test_a_term_is_set_for_all_devices_of_a_user_in_a_section(devices: Devices) -> None:
    one, two, others = made(devices, 0), made(devices, 1), made(devices, 2, BOB)
    devices.move(two.id, ANN, 40103)
    devices.set_term(ANN, 40104, 50403, date(2026, 12, 18))
    assert (now_of(devices, one).term_id, now_of(devices, one).term_end_date) == (50403, date(2026, 12, 18))
    assert now_of(devices, one).term_checked_at is not None
    assert now_of(devices, two).term_id is None
    assert now_of(devices, others).term_id is None
    devices.set_term(ANN, 40104, None, None)
    assert (now_of(devices, one).term_id, now_of(devices, one).term_end_date) == (None, None)


def test_a_device_is_shut_out_after_30_days_outside_a_term_but_not_in_a_summer_break(
    devices: Devices, clock: Clock
) -> None:
    ended_days_ago = [None, 300, 122, 119, 0, -20]
    ids = []
    for number, ago in enumerate(ended_days_ago):
        device = made(devices, number, term_ends=None if ago is None else in_days(31 - ago))
        devices.used(device.id)
        ids.append(device.id)
    clock.shift(29 * DAY)
    assert devices.tidy() == []
    clock.shift(2 * DAY)
    assert sorted(one.id for one in devices.tidy()) == ids[:3]
    assert [devices.of_token(digest(f"token {number}")) is None for number in range(6)] == [True] * 3 + [False] * 3


def test_a_device_that_was_never_used_counts_from_the_day_it_was_let_in(devices: Devices, clock: Clock) -> None:
    device = made(devices)
    clock.shift(29 * DAY)
    assert devices.tidy() == []
    clock.shift(2 * DAY)
    assert [one.id for one in devices.tidy()] == [device.id]


def test_a_device_that_is_used_stays_and_one_that_expired_is_told_once(
    devices: Devices, tables: Tables, clock: Clock
) -> None:
    used, unused = made(devices, 0), made(devices, 1)
    clock.shift(31 * DAY)
    devices.used(used.id)
    assert [one.id for one in devices.tidy()] == [unused.id]
    assert devices.tidy() == []
    (act, *_) = Audit(tables).latest(f"device:{unused.id}")
    assert (act.actor, act.action) == ("carrick", "device.expire")
    assert devices.of_token(digest("token 0")) is not None


def test_a_device_that_was_shut_out_is_forgotten_after_its_days(devices: Devices, clock: Clock) -> None:
    revoked, used = made(devices, 0), made(devices, 1)
    clock.shift(DAY)
    devices.revoke(revoked.id, None, actor="test")
    clock.shift(39 * DAY)
    assert devices.forget(days=40) == 0
    clock.shift(2 * DAY)
    assert devices.forget(days=40) == 1
    assert [one.id for one in devices.all(10)] == [used.id]


def test_acts_are_forgotten_after_their_days(devices: Devices, tables: Tables, clock: Clock) -> None:
    audit = Audit(tables)
    clock.shift(39 * DAY)
    assert audit.tidy(days=40) == 0
    devices.revoke(made(devices).id, None, actor="test")
    clock.shift(2 * DAY)
    assert audit.tidy(days=40) == 1
    assert [act.action for act in audit.latest()] == ["device.revoke", "device.approve"]
