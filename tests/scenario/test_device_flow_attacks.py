"""What an attacker may try on the way of a display's sign-in, one test each."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from multidict import MultiDict

from carrick_scoreboard.settings import Rate
from carrick_scoreboard.sign_in import ADMIN, DEVICE, NotSignedIn
from carrick_scoreboard.web_security import new_secret
from tests.osm import HAZEL, ROBIN, SCOUTS, Osm, story
from tests.scoreboard import CLIENT, Board, Browser, Device, Page, board

EVIL = '"><script>alert(1)</script>'


async def callback_of(browser: Browser, user_code: str) -> str:
    """The address that OSM sends the browser back to, not yet visited."""
    answer = await browser.send(await browser.consent(user_code), decision="allow", follow=False)
    return answer.headers["Location"]


@story
async def test_the_same_callback_works_once(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        callback = await callback_of(browser, await Device(here.url).begin())
        assert (await browser.get(callback)).title == "What should it show?"
        calls = len(await osm.calls())
        again = await browser.get(callback)
        assert (again.status, again.title) == (400, "This sign-in cannot be used")
        assert len(await osm.calls()) == calls


@story
async def test_of_many_callbacks_at_once_one_works(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        callback = await callback_of(browser, await Device(here.url).begin())
        pages = await asyncio.gather(*(browser.get(callback, follow=False) for _ in range(6)))
        assert sorted(page.status for page in pages) == [303] + [400] * 5
        assert len(here.kept.signed_in) == 1


@story
async def test_the_callback_of_another_browser_is_refused_and_left_to_its_owner(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as attacker, Browser(here.url) as victim:
        callback = await callback_of(attacker, await Device(here.url).begin())
        assert (await victim.get(callback)).status == 400
        await victim.get(f"/device?user_code={await Device(here.url).begin()}")
        assert (await victim.get(callback)).status == 400
        assert here.kept.signed_in == []
        assert (await attacker.get(callback)).title == "What should it show?"


@story
async def test_a_callback_that_comes_too_late_is_refused(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, device_code_seconds=3600) as here, Browser(here.url) as browser:
        callback = await callback_of(browser, await Device(here.url).begin())
        here.clock.shift(601)
        assert (await browser.get(callback)).title == "This sign-in cannot be used"
        assert here.kept.signed_in == []


ALTERED: list[Callable[[dict[str, str]], dict[str, str]]] = [
    lambda query: {},
    lambda query: {"code": query["code"]},
    lambda query: {**query, "state": new_secret()},
    lambda query: {**query, "state": "x"},
    lambda query: {**query, "state": query["state"] + query["state"]},
    lambda query: {**query, "state": query["state"].swapcase()},
    lambda query: {"error": "access_denied", "error_description": EVIL},
]


@story
async def test_a_state_that_is_missing_or_wrong_is_refused_without_asking_osm(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        place = urlsplit(await callback_of(browser, await Device(here.url).begin()))
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        calls = len(await osm.calls())
        for change in ALTERED:
            page = await browser.get(f"/oauth/callback?{urlencode(change(query))}")
            assert (page.status, page.title) == (400, "This sign-in cannot be used")
            assert "script" not in page.text
        assert len(await osm.calls()) == calls


@story
async def test_a_doubled_parameter_of_the_callback_is_refused(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        callback = await callback_of(browser, await Device(here.url).begin())
        assert (await browser.get(f"{callback}&state=x")).status == 400
        assert (await browser.get(f"{callback}&code=x")).status == 502
        assert here.kept.signed_in == []


@story
async def test_a_code_without_its_verifier_is_worth_nothing(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as thief, Browser(here.url) as victim:
        stolen = parse_qs(urlsplit(await callback_of(victim, await Device(here.url).begin())).query)["code"][0]
        own = urlsplit(await callback_of(thief, await Device(here.url).begin()))
        state = parse_qs(own.query)["state"][0]
        page = await thief.get(f"/oauth/callback?code={stolen}&state={state}")
        assert (page.status, page.title) == (400, "Not signed in")
        assert here.kept.signed_in == []


@story
async def test_a_sign_in_of_one_purpose_is_not_good_for_the_other(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        await browser.get(f"/device?user_code={await Device(here.url).begin()}")
        holder = browser.cookies()["carrick_browser"]
        address = await here.sign_in.begin(ADMIN, holder, "scores")
        query = parse_qs(urlsplit(address).query)
        assert query["scope"] == ["section:member:read section:member:write"]
        assert query["redirect_uri"] == [f"{here.url}/admin/callback"]
        page = await browser.get(f"/oauth/callback?code=x&state={query['state'][0]}")
        assert page.title == "This sign-in cannot be used"


@story
async def test_a_leaders_sign_in_comes_back_with_the_place_it_was_begun_for(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        holder = new_secret()
        consent = await browser.send(
            await browser.get(await here.sign_in.begin(ADMIN, holder, "scores")), pick=str(ROBIN)
        )
        back = await browser.send(consent, decision="allow", follow=False)
        query = MultiDict(
            {name: values[0] for name, values in parse_qs(urlsplit(back.headers["Location"]).query).items()}
        )
        with pytest.raises(NotSignedIn):
            await here.sign_in.finish(DEVICE, holder, query)
        with pytest.raises(NotSignedIn):
            await here.sign_in.finish(ADMIN, None, query)
        signed_in = await here.sign_in.finish(ADMIN, holder, query)
        assert (signed_in.path, signed_in.profile.user_id) == ("/admin/", ROBIN)


@story
async def test_there_is_no_way_to_name_another_place_to_return_to(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        for place in ("https://evil.example/", "//evil.example", "/admin/", ""):
            with pytest.raises(KeyError):
                await here.sign_in.begin(ADMIN, new_secret(), place)


ELSEWHERE = [
    "/device?user_code={code}&next=https://evil.example",
    "/d/https:%2F%2Fevil.example",
    "/d/%2F%2Fevil.example",
    "/d/..%2F..%2Fevil",
    "/d/x%0d%0aLocation:%20https:%2F%2Fevil.example",
    "/device/cancel?return=https://evil.example",
    "/device/done?flow=https://evil.example",
    "/device/select-section?flow=%2F%2Fevil.example",
    "/oauth/callback?redirect_uri=https://evil.example&state=x",
    "//evil.example/%2e%2e",
]


@story
async def test_no_request_leads_to_another_site(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        code = await Device(here.url).begin()
        for path in ELSEWHERE:
            answer = await browser.get(path.format(code=code), follow=False)
            place = answer.headers.get("Location", "/device")
            assert place.startswith("/device")
            assert not place.startswith("//")


@story
async def test_the_host_that_a_request_names_is_never_repeated(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here:
        spoofed = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "gopher"}
        device = Device(here.url)
        code = await device.begin(**spoofed)
        assert "evil" not in str(device.granted)
        async with Browser(here.url, spoofed) as browser:
            assert "evil" not in (await browser.get(f"/device?user_code={code}")).text


async def confirm_page(here: Board, browser: Browser) -> Page:
    return await browser.get(f"/device?user_code={await Device(here.url).begin()}")


@story
async def test_a_form_without_its_mark_does_nothing(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser, Browser(here.url) as other:
        page, others = await confirm_page(here, browser), await confirm_page(here, other)
        fields = page.form.fields
        for path in ("/device/confirm", "/device/cancel"):
            for mark in ("", "x", others.form.fields["csrf"], fields["csrf"][::-1]):
                refused = await browser.post(path, {**fields, "csrf": mark}, follow=False)
                assert (refused.status, refused.title) == (403, "That did not come from our page")
            assert (await browser.post(path, {}, follow=False)).status == 403
        assert (await browser.post("/device/cancel", fields, follow=False)).status == 403  # the other form's
        assert here.devices.code(fields["user_code"].replace("-", "")).status == "pending"  # type: ignore[union-attr]
        assert (await browser.post("/device/confirm", fields, follow=False)).status == 303


@story
async def test_a_form_of_another_browser_does_nothing(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as attacker, Browser(here.url) as victim:
        attackers = await confirm_page(here, attacker)
        assert (await victim.post("/device/confirm", attackers.form.fields, follow=False)).status == 403
        await confirm_page(here, victim)
        assert (await victim.post("/device/confirm", attackers.form.fields, follow=False)).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
    ],
)
@story
async def test_a_form_on_another_site_does_nothing(osm: Osm, sqlite_path: Path, headers: Mapping[str, str]) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        fields = (await confirm_page(here, browser)).form.fields
        assert (await browser.post("/device/confirm", fields, follow=False, headers=headers)).status == 403


@story
async def test_who_planted_a_cookie_before_the_sign_in_gains_nothing_by_it(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as attacker, Browser(here.url) as victim:
        code = await Device(here.url).begin()
        await attacker.get(f"/device?user_code={code}")
        planted = attacker.cookies()
        victim.session.cookie_jar.update_cookies(planted)
        choosing = await victim.signed_in(code)
        fresh = victim.cookies().items() - planted.items()
        ((name, secret),) = fresh
        assert name.startswith("carrick_flow_")
        assert secret not in planted.values()
        attacker.session.cookie_jar.update_cookies({name: planted["carrick_browser"]})
        assert (await attacker.get(choosing.url)).title == "This page is too old"
        stolen = {**choosing.form.fields, "section_id": str(SCOUTS), "name": "Mine"}
        assert (await attacker.post("/device/select-section", stolen)).status == 403
        assert here.devices.all() == []


@story
async def test_a_section_that_is_not_in_the_profile_is_refused_before_any_call(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        choosing = await browser.signed_in(await Device(here.url).begin(), HAZEL)
        calls = len(await osm.calls())
        for section in ("40301", "0", "-1", "", "x", f"{SCOUTS} ", f"0{SCOUTS}", "9" * 100, "٤"):
            page = await browser.send(choosing, section_id=section, name="Hall")
            assert (page.status, page.title) == (403, "That is not one of your sections")
        assert len(await osm.calls()) == calls
        assert here.devices.all() == []


@story
async def test_guesses_of_codes_are_few_from_one_address_and_even_the_right_one_waits(
    osm: Osm, sqlite_path: Path
) -> None:
    async with board(osm, sqlite_path, entry_rate=Rate(1, 5)) as here:
        code = await Device(here.url).begin()
        async with Browser(here.url, {"X-Forwarded-For": "203.0.113.9"}) as browser:
            assert (await browser.get("/device?user_code=BBBBBBBB")).status == 404
            for guess in ("CCCCCCCC", code):
                page = await browser.get(f"/device?user_code={guess}")
                assert (page.status, page.title) == (429, "One moment, please")
                assert 1 <= int(page.headers["Retry-After"]) <= 5
                assert f"in {page.headers['Retry-After']} second" in page.text
            assert (await browser.get(f"/device/cancel?user_code={code}")).status == 429
            here.clock.shift(5)
            assert (await browser.get(f"/device?user_code={code}")).status == 200
        async with Browser(here.url, {"X-Forwarded-For": "203.0.113.10"}) as elsewhere:
            assert (await elsewhere.get(f"/device?user_code={code}")).status == 200


@story
async def test_who_had_the_right_code_may_go_on_at_once(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, entry_rate=Rate(1, 5)) as here, Browser(here.url) as browser:
        code = await Device(here.url).begin()
        for _ in range(3):
            assert (await browser.get(f"/device?user_code={code}")).status == 200
        assert (await browser.get(f"/device/cancel?user_code={code}")).status == 200
        assert (await browser.get("/device?user_code=BBBBBBBB")).status == 429
        assert (await browser.get(f"/device?user_code={code}")).status == 200
        assert (await browser.signed_in(code)).title == "What should it show?"


@story
async def test_guesses_at_the_same_time_are_as_few(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, entry_rate=Rate(2, 60)) as here, Browser(here.url) as browser:
        guesses = [f"/device?user_code=BBBBBBB{letter}" for letter in "BCDFGHJKLM"]
        pages = await asyncio.gather(*(browser.get(guess) for guess in guesses))
        assert sorted(page.status for page in pages) == [404] * 2 + [429] * 8


@story
async def test_a_header_of_a_stranger_gives_no_new_guesses(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, entry_rate=Rate(1, 5), trusted_proxies=()) as here:
        statuses = []
        for number in range(3):
            spoofed = {"X-Forwarded-For": f"203.0.113.{number}", "CF-IPCountry": "GB", "X-Real-IP": "9.9.9.9"}
            async with Browser(here.url, spoofed) as browser:
                statuses.append((await browser.get("/device?user_code=BBBBBBBB")).status)
        assert statuses == [404, 429, 429]
        code = await Device(here.url).begin(**{"X-Forwarded-For": "203.0.113.7", "CF-IPCountry": "GB"})
        known = here.devices.code(code.replace("-", ""))
        assert known is not None
        assert (known.address, known.country) == ("127.0.0.1", "")


@story
async def test_sign_ins_are_not_begun_without_end(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        fields = (await confirm_page(here, browser)).form.fields
        statuses = [(await browser.post("/device/confirm", fields, follow=False)).status for _ in range(21)]
        assert statuses == [303] * 20 + [429]


@story
async def test_what_others_wrote_is_shown_as_text(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        here.clients.add("evil", EVIL, "", actor="test")
        code = await Device(here.url, "evil").begin(**{"X-Forwarded-For": EVIL, "CF-IPCountry": EVIL})
        choosing = await browser.signed_in(code)
        for page in (
            await browser.get(f"/device?user_code={code}"),
            await browser.get(f"/device?user_code={quote(EVIL)}"),
            await browser.get(f"/d/{quote(EVIL, safe='')}"),
            await browser.get(f"/device/cancel?user_code={quote(EVIL)}"),
            await browser.get(
                f"/oauth/callback?error={quote(EVIL)}&error_description={quote(EVIL)}&state={quote(EVIL)}"
            ),
            await browser.send(choosing, section_id=EVIL, name="x"),
            await browser.send(choosing, section_id=str(SCOUTS), name=EVIL * 5),
            await browser.send(choosing, section_id=str(SCOUTS), name=EVIL),
        ):
            assert "<script" not in page.text
            assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert here.devices.all()[0].name == EVIL
        assert "&lt;script&gt;" in (await browser.get(page.url)).text


@story
async def test_no_get_changes_anything(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        code = await device.begin()
        fields = (await browser.get(f"/device/cancel?user_code={code}")).form.fields
        query = "&".join(f"{name}={value}" for name, value in fields.items())
        for path in ("/device", "/device/cancel", "/device/confirm", "/device/select-section", "/device/done"):
            await browser.get(f"{path}?{query}&section_id={SCOUTS}&name=x", follow=False)
        assert (await device.poll())[1]["error"] == "authorization_pending"


@pytest.mark.parametrize("exposed", ["https://scores.example", None])
@story
async def test_every_answer_has_the_headers(osm: Osm, sqlite_path: Path, exposed: str | None) -> None:
    changed: dict[str, Any] = {"exposed_domain": exposed} if exposed else {}
    async with board(osm, sqlite_path, **changed) as here, Browser(here.url) as browser:
        code = await Device(here.url).begin()
        for answer in (
            await browser.get(f"/device?user_code={code}"),
            await browser.get("/nowhere"),
            await browser.get("/device/token"),
            await browser.get("/d/x", follow=False),
            await browser.post("/device/confirm", {}),
            await browser.post("/device/authorize", {}),
        ):
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert answer.headers["Server"] == "carrick"
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert ("Strict-Transport-Security" in answer.headers) is (exposed is not None)


@story
async def test_only_the_form_that_leads_to_osm_may_lead_there(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        code = await Device(here.url).begin()
        confirm = await browser.get(f"/device?user_code={code}")
        assert f"form-action 'self' {osm.url};" in confirm.headers["Content-Security-Policy"]
        for page in (await browser.get("/device"), await browser.get(f"/device/cancel?user_code={code}")):
            assert "form-action 'self';" in page.headers["Content-Security-Policy"]


@story
async def test_cookies_on_https_are_the_hosts_own(osm: Osm, sqlite_path: Path) -> None:
    async with board(osm, sqlite_path, exposed_domain="https://scores.example") as here, Browser(here.url) as browser:
        page = await browser.get(f"/device?user_code={await Device(here.url).begin()}")
        cookie = page.headers["Set-Cookie"]
        assert cookie.startswith("__Host-carrick_browser=")
        assert {"HttpOnly", "Secure", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
        assert "Domain" not in cookie


@story
async def test_no_secret_of_a_sign_in_is_in_the_database_or_in_the_log(
    osm: Osm, sqlite_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="carrick")
    async with board(osm, sqlite_path) as here, Browser(here.url) as browser:
        device = Device(here.url)
        code = await device.begin()
        at_osm = await browser.at_osm(code)
        state = parse_qs(urlsplit(at_osm.url).query)["state"][0]
        holder = browser.cookies()["carrick_browser"]
        under_way = b"".join(file.read_bytes() for file in sqlite_path.parent.iterdir())
        consent = await browser.send(at_osm, pick=str(ROBIN))
        await browser.send(await browser.send(consent, decision="allow"), section_id=str(SCOUTS), name="Hall")
        token = (await device.poll())[1]["access_token"]
        ((tokens, _),) = here.kept.signed_in
        secrets = [device.granted["device_code"], state, token, tokens.access_token, tokens.refresh_token]
        secrets += [holder, *browser.cookies().values()]
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    kept = under_way + b"".join(file.read_bytes() for file in sqlite_path.parent.iterdir())
    logged = "\n".join(str(record.__dict__) for record in caplog.records)
    assert "device.approve" in logged
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret not in logged
    assert CLIENT.encode() in kept
