"""`carrick contacts`: what it does and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrick import wiring
from carrick.cli import run
from carrick.contacts.contacts import Contacts


@pytest.fixture
def contacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contacts]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///outbox.db")
    monkeypatch.setenv("CONTACTS_DEFAULT_REGION", "gb")
    wiring.migrate("sqlite:///outbox.db")
    with Contacts.connect("sqlite:///outbox.db") as contacts:
        yield contacts


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_a_tenant_is_turned_on_listed_and_turned_off(contacts: Contacts, capsys: pytest.CaptureFixture[str]) -> None:
    del contacts
    assert run(["contacts", "tenants"]) == 0
    assert printed(capsys) == "No tenant has turned it on.\n"
    assert run(["contacts", "on", "acme"]) == 0
    assert run(["contacts", "on", "acme"]) == 0
    assert printed(capsys) == "on: acme\non: acme (it was already)\n"
    assert run(["contacts", "tenants", "--json"]) == 0
    assert [one["tenant_id"] for one in json.loads(printed(capsys))["tenants"]] == ["acme"]
    assert run(["contacts", "tenants"]) == 0
    assert "acme" in printed(capsys)
    assert run(["contacts", "off", "acme"]) == 0
    assert printed(capsys) == "off: acme\n"


def test_a_contact_is_shown_by_its_id_and_by_an_identity(
    contacts: Contacts, capsys: pytest.CaptureFixture[str]
) -> None:
    made = contacts.resolve("acme", [("email", "Ann@x.org"), ("phone", "+442079460958")], {"plan": "pro"})
    for who in (str(made.contact_id), "email:ANN@x.org", "phone:020 7946 0958"):
        assert run(["contacts", "show", "acme", who]) == 0
        out = printed(capsys)
        assert str(made.contact_id) in out
        assert "Ann@x.org" in out
        assert "pro" in out
    assert run(["contacts", "show", "acme", "email:ann@x.org", "--json"]) == 0
    shown = json.loads(printed(capsys))
    assert (shown["id"], shown["traits"]) == (str(made.contact_id), {"plan": "pro"})
    assert shown["identities"][0] == {"type": "email", "value": "Ann@x.org", "normalised": "ann@x.org"}


def test_a_tombstone_says_what_it_has_become(contacts: Contacts, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (contacts.resolve("acme", [("anonymous_id", name)]).contact_id for name in "abc")
    contacts.resolve("acme", [("anonymous_id", "b"), ("anonymous_id", "c")])
    contacts.resolve("acme", [("anonymous_id", "a"), ("anonymous_id", "b")])
    assert run(["contacts", "show", "acme", str(three)]) == 0
    first = printed(capsys).splitlines()[0]
    assert first == f"Contact {three} is a tombstone: merged into {two}, which is {one} now"


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("email:bob@x.org", "tenant 'acme' has no contact email:bob@x.org"),
        ("01890000-0000-7000-8000-000000000000", "has no contact"),
        ("bob", "is no UUID"),
        ("twitter:bob", "unknown type 'twitter'"),
    ],
)
def test_who_is_not_there_is_one_line(
    contacts: Contacts, who: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del contacts
    assert run(["contacts", "show", "acme", who]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_wrong_region_is_named(contacts: Contacts, monkeypatch: pytest.MonkeyPatch) -> None:
    del contacts
    monkeypatch.setenv("CONTACTS_DEFAULT_REGION", "england")
    assert run(["contacts", "tenants"]) == 1
