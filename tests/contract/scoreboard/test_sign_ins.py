"""Sign-ins of devices: codes that are good once and for a while, and polls that keep to the interval."""

from __future__ import annotations

from datetime import timedelta

import pytest

from carrick.errors import InvalidInput
from carrick.testing import Clock
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.devices import MAX_NAME, Device, DeviceCode, Devices
from carrick_scoreboard.store.tables import Tables

CODE, USER_CODE = digest("device code"), "BCDFGHJK"
INTERVAL, LASTS = 5, 300


def begin(devices: Devices, code: str = CODE, user_code: str = USER_CODE, client_id: str = "matrix") -> DeviceCode:
    made = devices.begin(
        code, user_code, client_id, address="192.0.2.7", country="GB", poll_seconds=INTERVAL, seconds=LASTS
    )
    assert made is not None
    return made


def let_in(devices: Devices, code: DeviceCode, name: str = "Hall") -> Device | None:
    return devices.approve(code, osm_user_id=7, section_id=40104, name=name, term_id=None, term_end_date=None)


def poll(devices: Devices, token: str = "token", code: str = CODE, client_id: str = "matrix") -> str:
    return devices.poll(code, client_id, digest(token)).answer


def test_a_sign_in_begins_with_where_it_was_asked_for(devices: Devices) -> None:
    code = begin(devices)
    assert (code.user_code, code.client_id, code.status) == (USER_CODE, "matrix", "pending")
    assert (code.address, code.country, code.poll_seconds) == ("192.0.2.7", "GB", INTERVAL)
    assert code.expires_at - code.created_at == timedelta(seconds=LASTS)
    assert devices.code(USER_CODE) == code


def test_a_code_that_is_taken_is_not_given_twice(devices: Devices) -> None:
    first = begin(devices)
    for code, user_code in ((CODE, "LMNPQRST"), (digest("another"), USER_CODE)):
        again = devices.begin(code, user_code, "matrix", address="", country="", poll_seconds=5, seconds=300)
        assert again is None
    assert devices.code(USER_CODE) == first


def test_an_application_that_is_not_let_in_gets_no_sign_in_and_hears_of_no_other(
    devices: Devices, tables: Tables
) -> None:
    with pytest.raises(InvalidInput, match="'stranger' is not let in") as refused:
        begin(devices, client_id="stranger")
    assert "matrix" not in str(refused.value)
    Clients(tables).disable("matrix", actor="op")
    with pytest.raises(InvalidInput, match="'matrix' is not let in"):
        begin(devices)


def test_a_sign_in_that_began_before_its_application_was_disabled_goes_on(devices: Devices, tables: Tables) -> None:
    code = begin(devices)
    Clients(tables).disable("matrix", actor="op")
    assert let_in(devices, code) is not None
    assert poll(devices) == "approved"


def test_an_address_that_no_database_can_hold_is_written_as_far_as_it_goes(devices: Devices) -> None:
    made = devices.begin(CODE, USER_CODE, "matrix", address="x\0" * 99, country="\udcff", poll_seconds=5, seconds=9)
    assert made is not None
    assert (made.address, made.country) == ("x?" * 50, "?")


def test_a_person_finds_the_sign_in_while_it_lasts(devices: Devices, clock: Clock) -> None:
    begin(devices)
    clock.shift(LASTS - 10)
    assert devices.code(USER_CODE) is not None
    clock.shift(11)
    assert devices.code(USER_CODE) is None
    assert devices.code("LMNPQRST") is None


def test_a_device_that_was_let_in_gets_its_token_once_it_asks(devices: Devices, tables: Tables) -> None:
    device = let_in(devices, begin(devices))
    assert device is not None
    assert (device.name, device.osm_user_id, device.section_id) == ("Hall", 7, 40104)
    assert devices.of_token(digest("token")) is None
    polled = devices.poll(CODE, "matrix", digest("token"))
    assert (polled.answer, polled.device) == ("approved", device)
    assert devices.of_token(digest("token")) == device
    (act, *_) = Audit(tables).latest(f"device:{device.id}")
    assert (act.actor, act.action, act.detail) == ("osm:7", "device.approve", {"section": 40104})


def test_a_sign_in_is_approved_once_and_leaves_one_device(devices: Devices) -> None:
    code = begin(devices)
    assert let_in(devices, code) is not None
    assert let_in(devices, code) is None
    assert len(devices.all()) == 1


def test_a_denied_sign_in_stays_denied(devices: Devices) -> None:
    code = begin(devices)
    assert devices.deny(code)
    assert not devices.deny(code)
    assert let_in(devices, code) is None
    assert devices.all() == []
    assert poll(devices) == "access_denied"


def test_an_approved_sign_in_cannot_be_denied(devices: Devices) -> None:
    code = begin(devices)
    let_in(devices, code)
    assert not devices.deny(code)
    assert poll(devices) == "approved"


def test_a_sign_in_that_has_expired_is_neither_approved_nor_denied(devices: Devices, clock: Clock) -> None:
    code = begin(devices)
    clock.shift(LASTS + 1)
    assert let_in(devices, code) is None
    assert not devices.deny(code)
    assert poll(devices) == "expired_token"


def test_a_device_that_asks_after_the_end_is_told_so_whatever_was_decided(devices: Devices, clock: Clock) -> None:
    let_in(devices, begin(devices))
    devices.deny(begin(devices, digest("denied"), "LMNPQRST"))
    clock.shift(LASTS + 1)
    assert poll(devices) == poll(devices, code=digest("denied")) == "expired_token"


def test_a_device_needs_a_name_that_can_be_shown(devices: Devices) -> None:
    code = begin(devices)
    for name in ("", " ", "x" * (MAX_NAME + 1), "a\nb", "a\0", "\udcff"):
        with pytest.raises(InvalidInput, match="name"):
            let_in(devices, code, name)
    assert devices.all() == []
    assert let_in(devices, code, "x" * MAX_NAME) is not None


def test_the_first_poll_may_come_at_any_time(devices: Devices) -> None:
    begin(devices)
    assert poll(devices) == "authorization_pending"


def test_a_poll_in_time_or_half_a_second_early_is_welcome(devices: Devices, clock: Clock) -> None:
    begin(devices)
    poll(devices)
    for early in (-10.0, 0.0, 0.5):
        clock.shift(INTERVAL - early)
        assert poll(devices) == "authorization_pending"
    code = devices.code(USER_CODE)
    assert code is not None
    assert code.poll_seconds == INTERVAL


def test_a_poll_three_seconds_early_is_told_to_slow_down_by_five_seconds(devices: Devices, clock: Clock) -> None:
    begin(devices)
    poll(devices)
    clock.shift(INTERVAL - 3)
    assert poll(devices) == "slow_down"
    code = devices.code(USER_CODE)
    assert code is not None
    assert code.poll_seconds == INTERVAL + 5
    clock.shift(INTERVAL)
    assert poll(devices) == "slow_down"
    clock.shift(INTERVAL + 10)
    assert poll(devices) == "authorization_pending"


def test_a_device_that_was_let_in_is_not_told_to_slow_down(devices: Devices) -> None:
    code = begin(devices)
    poll(devices)
    let_in(devices, code)
    assert poll(devices) == "approved"


def test_a_code_that_is_not_the_applications_own_is_no_grant(devices: Devices) -> None:
    let_in(devices, begin(devices))
    for code, client_id in ((digest("another"), "matrix"), (CODE, "stranger"), (CODE, "")):
        assert poll(devices, code=code, client_id=client_id) == "invalid_grant"
    assert devices.of_token(digest("token")) is None


def test_an_answer_that_was_lost_is_given_again_with_another_token(devices: Devices) -> None:
    let_in(devices, begin(devices))
    assert poll(devices, "lost") == "approved"
    assert poll(devices, "second") == "approved"
    assert devices.of_token(digest("lost")) is None
    assert devices.of_token(digest("second")) is not None


def test_a_token_that_was_used_is_not_given_again(devices: Devices) -> None:
    device = let_in(devices, begin(devices))
    assert device is not None
    poll(devices)
    devices.used(device.id)
    assert poll(devices, "second") == "invalid_grant"
    assert devices.of_token(digest("token")) is not None


def test_a_code_whose_token_was_fetched_is_worth_nothing_once_it_has_expired(devices: Devices, clock: Clock) -> None:
    let_in(devices, begin(devices))
    poll(devices)
    clock.shift(LASTS + 1)
    assert poll(devices, "second") == "invalid_grant"
    assert devices.of_token(digest("token")) is not None


def test_a_device_that_was_revoked_before_it_asked_gets_no_token(devices: Devices) -> None:
    device = let_in(devices, begin(devices))
    assert device is not None
    devices.revoke(device.id, 7, actor="osm:7")
    assert poll(devices) == "invalid_grant"


def test_old_sign_ins_are_forgotten_a_day_after_they_ended(devices: Devices, clock: Clock) -> None:
    begin(devices)
    clock.shift(LASTS + 86_400 - 10)
    devices.tidy()
    assert poll(devices) == "expired_token"
    clock.shift(20)
    devices.tidy()
    assert poll(devices) == "invalid_grant"
    begin(devices)
