"""The pages of the code flow: what an application may ask, signing in, consent."""

from __future__ import annotations

from typing import Any

import pytest

from carrick_osmsim.seed import PASSWORD
from tests.osm import Osm, story
from tests.unit.osmsim.signing_in import ASKED, ask, code_for, decide, sent_back, sign_in

ROBINS = {"email": "robin.merriweather@ashmere.example", "password": PASSWORD}


@story
async def test_the_sign_in_page_names_the_application_and_needs_no_script(osm: Osm) -> None:
    page = await ask(osm)
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    text = page.body.decode()
    assert "Carrick scoreboard (demo)" in text
    assert "Robin Merriweather" in text
    assert "<script" not in text
    assert 'name="viewport"' in text


@pytest.mark.parametrize(
    "person", [{"pick": 100001}, ROBINS, {**ROBINS, "email": " Robin.Merriweather@Ashmere.example "}]
)
@story
async def test_a_person_is_picked_or_typed_and_then_asked_for_consent(osm: Osm, person: dict[str, Any]) -> None:
    page = await sign_in(osm, person)
    assert page.status == 200
    assert "Robin Merriweather" in page.body.decode()
    assert "look at and change members" in page.body.decode()


@story
async def test_consent_sends_a_code_and_the_state_back(osm: Osm) -> None:
    told = sent_back(await decide(osm, await sign_in(osm, ROBINS), "allow"))
    assert sorted(told) == ["code", "state"]
    assert told["state"] == ASKED["state"]


@story
async def test_no_consent_sends_an_error_and_the_state_back(osm: Osm) -> None:
    told = sent_back(await decide(osm, await sign_in(osm, ROBINS), "deny"))
    assert (told["error"], told["state"]) == ("access_denied", ASKED["state"])
    assert "code" not in told


@story
async def test_a_consent_page_is_good_once(osm: Osm) -> None:
    page = await sign_in(osm, ROBINS)
    await decide(osm, page, "allow")
    assert (await decide(osm, page, "allow")).status == 400


@story
async def test_a_consent_page_runs_out(osm: Osm) -> None:
    page = await sign_in(osm, ROBINS)
    await osm.control("clock", advance_seconds=600)
    assert (await decide(osm, page, "allow")).status == 400


@pytest.mark.parametrize("person", [{**ROBINS, "password": "wrong"}, {"email": "x@y.z", "password": PASSWORD}, {}])
@story
async def test_a_wrong_password_shows_the_page_again(osm: Osm, person: dict[str, str]) -> None:
    page = await sign_in(osm, person)
    assert page.status == 401
    assert "do not go together" in page.body.decode()
    assert 'name="ticket"' not in page.body.decode()


@pytest.mark.parametrize(
    "fields",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"redirect_uri": "http://localhost:8080/admin/callback/"},
        {"redirect_uri": "http://evil.example/"},
        {"redirect_uri": None},
    ],
)
@story
async def test_nobody_is_sent_to_an_address_that_is_not_registered(osm: Osm, fields: dict[str, str | None]) -> None:
    page = await ask(osm, **fields)
    assert page.status == 400
    assert "Location" not in page.headers


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "section:member:read section:secrets:read"}, "invalid_scope"),
        ({"code_challenge": "x", "code_challenge_method": "MD5"}, "invalid_request"),
    ],
)
@story
async def test_other_mistakes_are_told_to_the_application(osm: Osm, fields: dict[str, str], error: str) -> None:
    told = sent_back(await ask(osm, **fields))
    assert (told["error"], told["state"]) == (error, ASKED["state"])


@story
async def test_what_an_application_sends_is_escaped_on_the_page(osm: Osm) -> None:
    page = await ask(osm, state='"><script>alert(1)</script>')
    assert b"<script>" not in page.body


@story
async def test_other_applications_and_addresses_can_be_registered(osm: Osm) -> None:
    back = "http://127.0.0.1:9999/oauth/callback?from=osm"
    await osm.control("app", client_id="mine", client_secret="s", redirect_uris=[back])
    page = await sign_in(osm, {"pick": 100001}, client_id="mine", redirect_uri=back)
    answer = await decide(osm, page, "allow")
    assert answer.headers["Location"].startswith(f"{back}&code=")


@story
async def test_each_code_is_another(osm: Osm) -> None:
    assert await code_for(osm) != await code_for(osm)
