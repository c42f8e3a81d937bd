"""A display is let in: the whole story over real sockets, with a device that knows only RFC 8628, a browser and OSM."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from carrick_scoreboard.sealing import digest
from carrick_scoreboard.settings import Rate
from tests.osm import ASH, EVENING, PERRY, ROBIN, SCOUTS, TERM, Osm, story
from tests.scoreboard import CLIENT, Browser, Device, board

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


async def whole_story(osm: Osm, database: Path | str) -> None:
    async with board(osm, database) as here, Browser(here.url) as browser:
        device = Device(here.url)
        user_code = await device.begin()
        status, waiting = await device.poll()
        assert (status, waiting["error"]) == (400, "authorization_pending")
        choosing = await browser.signed_in(user_code)
        assert choosing.title == "What should it show?"
        done = await browser.send(choosing, section_id=str(SCOUTS), name="  Hall,  above the door ")
        assert done.title == "The display is connected"
        assert "Hall, above the door" in done.text
        here.clock.shift(6)
        status, given = await device.poll()
        assert status == 200
        assert given["token_type"] == "Bearer"
        assert given["expires_in"] > 86_400
        known = here.devices.of_token(digest(given["access_token"]))
        assert known is not None
        assert (known.name, known.section_id, known.term_id) == ("Hall, above the door", SCOUTS, TERM)
        assert (known.osm_user_id, known.client_id) == (ROBIN, CLIENT)
        ((_, profile),) = here.kept.signed_in
        assert profile.user_id == ROBIN


@story
async def test_from_the_first_request_to_the_token_on_sqlite(osm: Osm, sqlite_path: Path) -> None:
    await whole_story(osm, sqlite_path)


@story
async def test_from_the_first_request_to_the_token_on_postgres(osm: Osm, postgres_url: str) -> None:
    await whole_story(osm, postgres_url)


@story
async def test_the_answer_has_exactly_the_fields_of_the_design(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        device = Device(here.url)
        user_code = await device.begin()
        assert re.fullmatch(f"[{LETTERS}]{{4}}-[{LETTERS}]{{4}}", user_code)
        assert len(device.granted.pop("device_code")) == 43
        assert device.granted == {
            "user_code": user_code,
            "verification_uri": f"{here.url}/device",
            "verification_uri_complete": f"{here.url}/device?user_code={user_code}",
            "verification_uri_short": f"{here.url}/d/{user_code.replace('-', '')}",
            "expires_in": 300,
            "interval": 5,
        }


@story
async def test_json_and_forms_are_taken_with_fields_that_nobody_knows(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, aiohttp.ClientSession() as session:
        for sent in (
            {"json": {"client_id": CLIENT, "scope": "x", "more": {"a": [1]}}},
            {"data": {"client_id": CLIENT, "scope": "x"}},
            {
                "data": f"client_id={CLIENT}&",
                "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"},
            },
        ):
            async with session.post(f"{here.url}/device/authorize", **sent) as answer:
                assert answer.status == 200


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
JSON = {"Content-Type": "application/json"}


WRONG: list[tuple[str, str | bytes, dict[str, str], str]] = [
    ("authorize", "client_id=nobody", FORM, "invalid_client"),
    ("authorize", "client_id=%F0%9F%92%A9", FORM, "invalid_client"),
    ("authorize", "client_id=%00", FORM, "invalid_client"),
    ("authorize", "client_id=" + "x" * 5000, FORM, "invalid_client"),
    ("authorize", '{"client_id":"\\ud800"}', JSON, "invalid_client"),
    ("authorize", "", FORM, "invalid_request"),
    ("authorize", "client_id=", FORM, "invalid_request"),
    ("authorize", "client_id=a&client_id=a", FORM, "invalid_request"),
    ("authorize", "client_id=a&x=1&x=2", FORM, "invalid_request"),
    ("authorize", '{"client_id":"a","client_id":"b"}', JSON, "invalid_request"),
    ("authorize", '{"client_id":5}', JSON, "invalid_request"),
    ("authorize", '{"client_id":null}', JSON, "invalid_request"),
    ("authorize", "[]", JSON, "invalid_request"),
    ("authorize", "{", JSON, "invalid_request"),
    ("authorize", "[" * 10_000, JSON, "invalid_request"),
    ("authorize", '{"client_id":' + "9" * 9_000 + "}", JSON, "invalid_request"),
    ("authorize", b"client_id=\xff", FORM, "invalid_request"),
    ("authorize", f"client_id={CLIENT}&" + "&".join(f"a{n}=1" for n in range(100)), FORM, "invalid_request"),
    ("authorize", "client_id=a", {"Content-Type": "text/plain"}, "invalid_request"),
    ("authorize", "client_id=a", {"Content-Type": "multipart/form-data; boundary=x"}, "invalid_request"),
    ("authorize", "client_id=a", {**FORM, "Content-Encoding": "gzip"}, "invalid_request"),
    ("authorize", "x" * 20_000, FORM, "invalid_request"),
    ("token", "", FORM, "invalid_request"),
    ("token", f"grant_type={GRANT}&client_id=a", FORM, "invalid_request"),
    ("token", f"grant_type={GRANT}&device_code=a", FORM, "invalid_request"),
    ("token", "grant_type=password&device_code=a&client_id=a", FORM, "unsupported_grant_type"),
    ("token", f"grant_type={GRANT}&device_code=a&client_id=a", FORM, "invalid_grant"),
    ("token", f"grant_type={GRANT}&device_code={'a' * 43}&client_id=a", FORM, "invalid_grant"),
    ("token", f"grant_type={GRANT}&device_code=%00&client_id=a", FORM, "invalid_grant"),
    ("token", f'{{"grant_type":"{GRANT}","device_code":"\\ud800","client_id":"a"}}', JSON, "invalid_grant"),
]  # fmt: skip


@story
async def test_what_is_wrong_is_told_as_oauth_tells_it(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, aiohttp.ClientSession() as session:
        for path, body, headers, error in WRONG:
            async with session.post(f"{here.url}/device/{path}", data=body, headers=headers) as answer:
                said: dict[str, Any] = await answer.json()
                assert answer.status in (400, 413, 415), body[:80]
                assert said["error"] == error, body[:80]
                assert set(said) == {"error", "error_description"}
                assert answer.headers["Cache-Control"] == "no-store"


@story
async def test_a_disabled_application_gets_no_codes(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        here.clients.disable(CLIENT, actor="test")
        status, said = await Device(here.url).ask("/device/authorize", {"client_id": CLIENT})
        assert (status, said["error"]) == (400, "invalid_client")


@story
async def test_six_codes_a_minute_from_one_address(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, authorize_rate=Rate(6, 60)) as here, aiohttp.ClientSession() as session:

        async def ask(address: str) -> tuple[int, str | None, Any]:
            headers = {"X-Forwarded-For": address}
            async with session.post(
                f"{here.url}/device/authorize", data={"client_id": CLIENT}, headers=headers
            ) as answer:
                return answer.status, answer.headers.get("Retry-After"), await answer.json()

        assert [(await ask("81.2.69.142"))[0] for _ in range(6)] == [200] * 6
        status, retry_after, said = await ask("81.2.69.142")
        assert (status, said["error"], str(said["retry_after"])) == (429, "rate_limited", retry_after)
        assert 1 <= said["retry_after"] <= 60
        assert (await ask("81.2.69.143"))[0] == 200
        here.clock.shift(60)
        assert (await ask("81.2.69.142"))[0] == 200


@story
async def test_a_device_that_asks_too_often_is_told_to_slow_down(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        device = Device(here.url)
        await device.begin()
        assert (await device.poll())[1]["error"] == "authorization_pending"
        assert (await device.poll())[1]["error"] == "slow_down"
        here.clock.shift(9.5)
        assert (await device.poll())[1]["error"] == "authorization_pending"


@story
async def test_a_code_of_another_client_is_not_known(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        here.clients.add("other", "", "", actor="test")
        device, other = Device(here.url), Device(here.url, "other")
        await device.begin()
        other.granted = device.granted
        assert (await other.poll())[1]["error"] == "invalid_grant"


@story
async def test_a_code_that_ran_out_is_told_to_device_and_person(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        user_code = await device.begin()
        here.clock.shift(301)
        assert (await device.poll())[1]["error"] == "expired_token"
        page = await browser.get(f"/device?user_code={user_code}")
        assert page.status == 404
        assert "too old" in page.text


@story
async def test_a_code_that_runs_out_on_the_way_lets_nobody_in(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        user_code = await device.begin()
        choosing = await browser.signed_in(user_code)
        here.clock.shift(301)
        page = await browser.send(choosing, section_id=str(SCOUTS), name="Hall")
        assert (page.status, page.title) == (410, "This code is too old")
        assert here.devices.all() == []


@story
async def test_a_person_may_turn_the_display_away(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        user_code = await device.begin()
        asking = await browser.get(f"/device/cancel?user_code={user_code}")
        assert asking.title == "Turn this display away?"
        assert (await device.poll())[1]["error"] == "authorization_pending"
        assert (await browser.send(asking)).title == "The display was turned away"
        assert (await device.poll())[1]["error"] == "access_denied"
        assert (await browser.send(asking)).title == "This code has been used"
        assert (await browser.get(f"/device?user_code={user_code}")).status == 409


@story
async def test_the_short_address_and_sloppy_typing_lead_to_the_same_page(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        user_code = await device.begin()
        for address in (
            device.granted["verification_uri_short"],
            device.granted["verification_uri_complete"],
            f"/device?user_code=+{user_code.lower().replace('-', ' - ')}+",
            f"/d/{user_code.lower()}",
        ):
            page = await browser.get(address)
            assert page.title == "Is this your display?"
            assert user_code in page.text


@story
async def test_the_page_shows_where_device_and_person_are(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        user_code = await Device(here.url).begin(**{"X-Forwarded-For": "81.2.69.142", "CF-IPCountry": "GB"})
        own = {"X-Forwarded-For": "203.0.113.9", "CF-IPCountry": "FR"}
        async with Browser(here.url, own) as browser:
            page = await browser.get(f"/device?user_code={user_code}")
        for shown in ("81.2.69.142", "GB", "203.0.113.9", "FR", f"{EVENING:%H:%M}", "another country", "Wall display"):
            assert shown in page.text


@story
async def test_osm_is_asked_with_state_and_challenge_to_read_only(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        at_osm = await browser.at_osm(await Device(here.url).begin())
        query = parse_qs(urlsplit(at_osm.url).query)
        assert at_osm.url.startswith(f"{osm.url}/oauth/authorize?")
        assert query["scope"] == ["section:member:read"]
        assert query["redirect_uri"] == [f"{here.url}/oauth/callback"]
        assert query["code_challenge_method"] == ["S256"]
        assert len(query["code_challenge"][0]) == len(query["state"][0]) == 43


@story
async def test_who_says_no_at_osm_can_try_again(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        user_code = await Device(here.url).begin()
        back = await browser.send(await browser.consent(user_code), decision="deny")
        assert (back.status, back.title) == (403, "Not signed in")
        assert f"/device?user_code={user_code}" in back.text
        assert (await browser.signed_in(user_code)).title == "What should it show?"


@story
async def test_who_sees_no_section_is_told(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        page = await browser.signed_in(await Device(here.url).begin(), PERRY)
        assert (page.status, page.title) == (403, "No sections to show")


@story
async def test_a_section_between_terms_may_be_chosen_without_a_term(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin(), ASH)
        assert "no term today" in choosing.text
        await browser.send(choosing, section_id="40302", name="Hall")
        (device,) = here.devices.all()
        assert (device.section_id, device.term_id, device.term_end_date) == (40302, None, None)


@pytest.mark.parametrize(
    ("fault", "status", "title"),
    [
        ({"kind": "rate_limited", "retry_after": 600}, 429, "One moment, please"),
        ({"kind": "block_page"}, 503, "The scoreboard is locked out"),
        ({"kind": "server_error"}, 502, "Online Scout Manager does not answer"),
        ({"kind": "drop_before_apply", "times": 2}, 502, "Online Scout Manager does not answer"),
        ({"kind": "invalid_json"}, 502, "Online Scout Manager does not answer"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("endpoint", ["token", "resource"])
@story
async def test_trouble_at_osm_is_told_on_a_friendly_page(
    osm: Osm, sqlite_path: Path, endpoint: str, fault: dict[str, Any], status: int, title: str
) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        user_code = await Device(here.url).begin()
        consent = await browser.consent(user_code)
        await osm.control("fault", endpoint=endpoint, **fault)
        page = await browser.send(consent, decision="allow")
        assert (page.status, page.title) == (status, title)
        assert page.headers.get("Retry-After") == {429: "600", 502: "60"}.get(status)
        assert here.kept.signed_in == []
        assert f"/device?user_code={user_code}" in page.text


@story
async def test_an_application_that_osm_does_not_know_is_the_operators_business(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        consent = await browser.consent(await Device(here.url).begin())
        uris = [f"{here.url}/oauth/callback"]
        await osm.control("app", client_id="carrick-demo", client_secret="changed", redirect_uris=uris)
        page = await browser.send(consent, decision="allow")
        assert (page.status, page.title) == (502, "The scoreboard is not set up")


@story
async def test_a_name_that_cannot_be_is_asked_for_again(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin())
        for name in ("", "   ", "x" * 101, "a\x00b", "a\u202eb"):
            page = await browser.send(choosing, section_id=str(SCOUTS), name=name)
            assert (page.status, page.title) == (400, "What should it show?")
            assert f'value="{SCOUTS}" required checked' in page.text
        assert here.devices.all() == []
        assert (await browser.send(page, section_id=str(SCOUTS), name="Zelt ⛺ " + "é" * 80)).status == 200


@story
async def test_a_second_tap_ends_on_the_same_page(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin())
        for _ in range(2):
            done = await browser.send(choosing, section_id=str(SCOUTS), name="Hall")
            assert done.title == "The display is connected"
        assert (await browser.get(choosing.url)).title == "The display is connected"
        assert len(here.devices.all()) == 1


@story
async def test_two_tabs_of_one_browser_let_two_displays_in(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        first, second = await Device(here.url).begin(), await Device(here.url).begin()
        one, two = await browser.consent(first), await browser.consent(second)
        one, two = await browser.send(one, decision="allow"), await browser.send(two, decision="allow")
        await browser.send(two, section_id=str(SCOUTS), name="Second")
        await browser.send(one, section_id=str(SCOUTS), name="First")
        assert {device.name for device in here.devices.all()} == {"First", "Second"}


@story
async def test_two_tabs_with_one_code_let_one_display_in(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        user_code = await Device(here.url).begin()
        one, two = await browser.signed_in(user_code), await browser.signed_in(user_code)
        assert (await browser.send(one, section_id=str(SCOUTS), name="First")).title == "The display is connected"
        late = await browser.send(two, section_id=str(SCOUTS), name="Second")
        assert (late.status, late.title) == (409, "This code has been used")
        assert [device.name for device in here.devices.all()] == ["First"]


@story
async def test_the_style_may_be_kept_for_ever_and_pages_not_at_all(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        page = await browser.get("/device")
        found = re.search(r'href="(/static/[^"]+)"', page.text)
        assert found
        style = await browser.get(found[1])
        assert style.headers["Content-Type"] == "text/css; charset=utf-8"
        assert style.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert page.headers["Cache-Control"] == "no-store"
        assert json.loads((await browser.get("/static/pages-0.css")).text)["error"] == "not_found"
