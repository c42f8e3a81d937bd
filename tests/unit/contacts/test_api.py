"""POST /api/v1/contacts/resolve over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from carrick import wiring
from carrick.contacts.api import routes
from carrick.contacts.contacts import Contacts
from carrick.relay.threads import Threads
from carrick.web.openapi import document
from carrick.web.problems import Problem
from carrick.web.routes import application
from carrick.web.server import serving

ANN = {"type": "email", "value": "Ann@Example.org"}


def admit(request: web.Request) -> None:
    if request.headers.get("x-api-key") != "k":
        raise Problem(401, "unauthorized", "no")


@pytest.fixture
def contacts(sqlite_path: Path) -> Iterator[Contacts]:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    with Contacts.connect(f"sqlite:///{sqlite_path}") as contacts:
        yield contacts


JSON = {"Content-Type": "application/json"}


def ask(contacts: Contacts, *bodies: Any, key: str = "k") -> list[tuple[int, Any]]:
    """Post the bodies one after the other; bytes as they are."""

    async def main() -> list[tuple[int, Any]]:
        threads = Threads(2)
        app = application(routes(contacts, threads, guards=[admit]), max_body_bytes=100_000)
        answers = []
        async with serving(app, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
            for body in bodies:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                path = f"http://127.0.0.1:{port}/api/v1/contacts/resolve"
                async with session.post(path, data=data, headers={"x-api-key": key, **JSON}) as response:
                    answers.append((response.status, await response.json()))
        threads.close()
        return answers

    return asyncio.run(main())


def test_a_contact_is_made_found_and_merged(contacts: Contacts) -> None:
    phone = {"type": "phone", "value": "+44 20 7946 0958"}
    made, other, merged = ask(
        contacts,
        {"tenant_id": "acme", "identities": [ANN], "traits": {"n": 1}},
        {"tenant_id": "acme", "identities": [phone]},
        {"tenant_id": "acme", "identities": [ANN, phone], "traits": {}},
    )
    contact_id = made[1]["contact_id"]
    assert made == (200, {"contact_id": contact_id, "created": True, "merged": []})
    assert merged == (200, {"contact_id": contact_id, "created": False, "merged": [other[1]["contact_id"]]})
    assert contacts.get("acme", contact_id).traits == {"n": 1}


def test_the_guards_come_first(contacts: Contacts) -> None:
    assert ask(contacts, b"nonsense", key="other")[0][0] == 401


BAD = [
    (b"", "body: not JSON"),
    (b"[]", "body: Expected `object`, got `array`"),
    ({"tenant_id": "acme"}, "missing required field `identities`"),
    ({"tenant_id": "", "identities": [ANN]}, "$.tenant_id"),
    ({"tenant_id": 5, "identities": [ANN]}, "$.tenant_id"),
    ({"tenant_id": "a\x00", "identities": [ANN]}, "tenant: contains a NUL character"),
    ({"tenant_id": "acme", "identities": []}, "$.identities"),
    ({"tenant_id": "acme", "identities": [ANN] * 21}, "$.identities"),
    ({"tenant_id": "acme", "identities": [ANN] * 2000}, "$.identities"),
    (
        {"tenant_id": "acme", "identities": [ANN, {"type": "email"}]},
        "missing required field `value` at $.identities[1]",
    ),
    ({"tenant_id": "acme", "identities": [{"type": "email", "value": 5}]}, "$.identities[0].value"),
    ({"tenant_id": "acme", "identities": [{"type": "x", "value": "5"}]}, "identities[0].type: unknown type 'x'"),
    (
        {"tenant_id": "acme", "identities": [ANN, {"type": "email", "value": "b"}]},
        "identities[1].value: 'b' is no e-mail",
    ),
    ({"tenant_id": "acme", "identities": [{"type": "phone", "value": "020"}]}, "CONTACTS_DEFAULT_REGION"),
    ({"tenant_id": "acme", "identities": [{"type": "external_id", "value": "\x00"}]}, "NUL"),
    (b'{"tenant_id":"acme","identities":[{"type":"external_id","value":"\\ud800"}]}', ""),
    ({"tenant_id": "acme", "identities": [ANN], "traits": []}, "traits: "),
    ({"tenant_id": "acme", "identities": [ANN], "traits": {"a": "\x00"}}, "traits: contains a NUL"),
    ({"tenant_id": "acme", "identities": [ANN], "traits": {"a": "x" * 20_000}}, "traits: has 20008 bytes"),
    (b'{"tenant_id":"acme","identities":[{"type":"email","value":"a@x"}],"traits":{"a":1e400}}', ""),
    (
        b'{"tenant_id":"acme","identities":[{"type":"email","value":"a@x"}],"traits":'
        + b'{"a":' * 3000
        + b"1"
        + b"}" * 3001,
        "",
    ),
    ({"tenant_id": "acme", "identities": [ANN], "more": 1}, "unknown field `more`"),
]


def test_what_cannot_be_resolved_is_refused_with_what_is_wrong(contacts: Contacts) -> None:
    answers = ask(contacts, *(body for body, _ in BAD))
    for (body, said), (status, answer) in zip(BAD, answers, strict=True):
        assert status == 400, (body, answer)
        assert said in answer["message"], body
    assert contacts.find("acme", "email", ANN["value"]) is None


def test_the_field_is_named_by_itself(contacts: Contacts) -> None:
    body = {"tenant_id": "acme", "identities": [ANN, {"type": "email", "value": "b"}]}
    assert ask(contacts, body)[0][1]["field"] == "identities[1].value"


def test_the_route_is_in_the_document(contacts: Contacts) -> None:
    threads = Threads(1)
    described = document("x", "y", routes(contacts, threads))
    threads.close()
    assert "post" in described["paths"]["/api/v1/contacts/resolve"]
    assert {"ResolveBody", "ResolveAnswer"} <= set(described["components"]["schemas"])
