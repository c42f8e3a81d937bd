"""The token endpoint: codes once, refresh tokens once, and the words OSM refuses with."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from carrick_osmsim.seed import DEMO_APP, DEMO_SECRET
from tests.osm import ROBIN, Answer, Osm, story
from tests.unit.osmsim.signing_in import BACK, code_for

APP = {"client_id": DEMO_APP, "client_secret": DEMO_SECRET}


async def redeem(osm: Osm, code: str, /, **fields: Any) -> Answer:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, **APP, **fields}
    return await osm.call("POST", "/oauth/token", form=form)


async def refresh(osm: Osm, refresh_token: str, **fields: Any) -> Answer:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, **APP, **fields}
    return await osm.call("POST", "/oauth/token", form=form)


@story
async def test_a_code_becomes_a_pair_of_tokens(osm: Osm) -> None:
    answer = await redeem(osm, await code_for(osm))
    assert answer.status == 200
    assert list(answer.json) == ["token_type", "expires_in", "access_token", "refresh_token"]
    assert (answer.json["token_type"], answer.json["expires_in"]) == ("Bearer", 3600)
    assert (await osm.profile(answer.json["access_token"])).json["data"]["user_id"] == ROBIN


@story
async def test_a_code_is_good_once(osm: Osm) -> None:
    code = await code_for(osm)
    await redeem(osm, code)
    again = await redeem(osm, code)
    assert (again.status, again.json["error"]) == (400, "invalid_grant")


@story
async def test_a_code_runs_out(osm: Osm) -> None:
    code = await code_for(osm)
    await osm.control("clock", advance_seconds=600)
    assert (await redeem(osm, code)).json["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "fields",
    [
        {"redirect_uri": "http://localhost:8080/elsewhere"},
        {"client_id": "campsite-finder", "client_secret": "another-secret"},
        {"code": "nonsense"},
    ],
)
@story
async def test_a_code_is_good_only_for_the_application_and_address_it_was_made_for(
    osm: Osm, fields: dict[str, str]
) -> None:
    answer = await redeem(osm, await code_for(osm), **fields)
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("method", ["S256", "plain"])
@story
async def test_a_code_with_a_challenge_needs_its_verifier(osm: Osm, method: str) -> None:
    verifier = "v" * 43
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    challenge = {"code_challenge": digest if method == "S256" else verifier, "code_challenge_method": method}
    code = await code_for(osm, **challenge)
    assert (await redeem(osm, code)).json["error"] == "invalid_grant"
    assert (await redeem(osm, code, code_verifier="w" * 43)).json["error"] == "invalid_grant"
    assert (await redeem(osm, code, code_verifier=verifier)).status == 200


@pytest.mark.parametrize("fields", [{"client_id": "nobody"}, {"client_secret": "wrong"}, {"client_secret": ""}])
@story
async def test_an_unknown_application_is_an_invalid_client(osm: Osm, fields: dict[str, str]) -> None:
    answer = await redeem(osm, await code_for(osm), **fields)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


@story
async def test_credentials_in_a_header_do_not_count(osm: Osm) -> None:
    basic = base64.b64encode(f"{DEMO_APP}:{DEMO_SECRET}".encode()).decode()
    body = b"grant_type=refresh_token&refresh_token=x"
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
    assert (await osm.call("POST", "/oauth/token", body=body, headers=headers)).json["error"] == "invalid_client"


@pytest.mark.parametrize("kind", ["password", "client_credentials", ""])
@story
async def test_other_grants_are_not_supported(osm: Osm, kind: str) -> None:
    answer = await osm.call("POST", "/oauth/token", form={"grant_type": kind, **APP})
    assert (answer.status, answer.json["error"]) == (400, "unsupported_grant_type")


@story
async def test_the_token_endpoint_takes_forms_only(osm: Osm) -> None:
    body = b'{"grant_type":"refresh_token"}'
    answer = await osm.call("POST", "/oauth/token", body=body, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json["error"]) == (400, "unsupported_grant_type")


@story
async def test_a_refresh_gives_a_new_pair_and_ends_the_old_one(osm: Osm) -> None:
    old = await osm.control("tokens", user_id=ROBIN)
    new = (await refresh(osm, old["refresh_token"])).json
    assert new["access_token"] != old["access_token"]
    assert new["refresh_token"] != old["refresh_token"]
    assert (await osm.profile(old["access_token"])).status == 401
    assert (await osm.profile(new["access_token"])).status == 200


@story
async def test_a_refresh_works_after_the_access_token_has_expired(osm: Osm) -> None:
    old = await osm.control("tokens", user_id=ROBIN)
    await osm.control("clock", advance_seconds=7200)
    assert (await refresh(osm, old["refresh_token"])).status == 200


@story
async def test_a_used_refresh_token_is_refused_in_the_one_way_and_then_in_the_other(osm: Osm) -> None:
    old = await osm.control("tokens", user_id=ROBIN)
    await refresh(osm, old["refresh_token"])
    refusals = [await refresh(osm, old["refresh_token"]) for _ in range(3)]
    assert [(refusal.status, refusal.json["error"]) for refusal in refusals] == [
        (401, "invalid_request"),
        (400, "invalid_grant"),
        (401, "invalid_request"),
    ]


@pytest.mark.parametrize(("way", "status"), [("invalid_request", 401), ("invalid_grant", 400)])
@story
async def test_the_way_of_refusing_can_be_chosen(osm: Osm, way: str, status: int) -> None:
    await osm.control("settings", refresh_refusal=way)
    refusals = [await refresh(osm, "nonsense") for _ in range(2)]
    assert [(refusal.status, refusal.json["error"]) for refusal in refusals] == [(status, way)] * 2


@story
async def test_a_refresh_token_of_another_application_is_refused_and_stays_good(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    stolen = await refresh(osm, pair["refresh_token"], client_id="campsite-finder", client_secret="another-secret")
    assert stolen.status in (400, 401)
    assert (await refresh(osm, pair["refresh_token"])).status == 200


@story
async def test_revoking_a_user_ends_all_tokens(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    assert await osm.control("revoke", user_id=ROBIN) == {"ended": 1}
    assert (await osm.profile(pair["access_token"])).status == 401
    assert (await refresh(osm, pair["refresh_token"])).status == 401


@story
async def test_who_was_revoked_can_sign_in_again(osm: Osm) -> None:
    await osm.control("revoke", user_id=ROBIN)
    assert (await redeem(osm, await code_for(osm))).status == 200


@story
async def test_expiring_leaves_the_refresh_token(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    await osm.control("expire", user_id=ROBIN)
    assert (await osm.profile(pair["access_token"])).status == 401
    assert (await refresh(osm, pair["refresh_token"])).status == 200


@story
async def test_rotating_uses_the_tokens_up_as_another_copy_would(osm: Osm) -> None:
    pair = await osm.control("tokens", user_id=ROBIN)
    new = (await osm.control("rotate", user_id=ROBIN))["grants"][0]
    assert (await refresh(osm, pair["refresh_token"])).status == 401
    assert (await osm.profile(new["access_token"])).status == 200


@story
async def test_no_token_code_or_secret_stands_in_the_log_or_the_state(osm: Osm) -> None:
    code = await code_for(osm)
    pair = (await redeem(osm, code)).json
    await osm.profile(pair["access_token"])
    await refresh(osm, pair["refresh_token"])
    shown = [(await osm.call("GET", f"/control/{page}")).body.decode() for page in ("calls", "state", "", "log")]
    for secret in (code, pair["access_token"], pair["refresh_token"], DEMO_SECRET):
        assert all(secret not in page for page in shown)
