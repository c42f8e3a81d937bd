"""Headers, cookies, marks on forms and limits, each by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from carrick import wiring
from carrick.relay.threads import Threads
from carrick.state.shared import SharedState
from carrick.state.sqlite.tables import SqliteTables
from carrick.testing import SqliteClock
from carrick.web.addresses import Visitor
from carrick.web.headers import PagePolicy
from carrick_scoreboard.notes import Notes
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import Rate
from carrick_scoreboard.web_security import Cookies, ForgedForm, Forms, Limits, is_secret

HERE = "https://scores.example"
OLD, NEW = KeyRing({"old": b"o" * 32}), KeyRing({"new": b"n" * 32, "old": b"o" * 32})
MINE, OTHERS = "m" * 43, "o" * 43  # the names of tests must be the same in every process


def checked(
    given: str,
    *,
    holder: str | None = MINE,
    form: str = "confirm",
    matter: str = "BCDFGHJK",
    keys: KeyRing = OLD,
    headers: Mapping[str, str] | None = None,
) -> bool:
    request = make_mocked_request("POST", "/", headers=dict(headers or {}))
    try:
        Forms(keys, HERE).check(request, {"csrf": given}, holder, form, matter)
    except ForgedForm:
        return False
    return True


MARK = Forms(OLD, HERE).mark(MINE, "confirm", "BCDFGHJK")


def test_a_mark_holds_for_its_browser_form_and_matter_alone() -> None:
    assert checked(MARK)
    assert not checked(MARK, holder=OTHERS)
    assert not checked(MARK, holder=None)
    assert not checked(MARK, form="cancel")
    assert not checked(MARK, matter="CCDFGHJK")
    assert not checked(MARK, keys=KeyRing({"old": b"x" * 32}))


@pytest.mark.parametrize("given", ["", "x", MARK[:-1], MARK.upper(), MARK + "0", "\udcff", "é" * 64])
def test_no_other_mark_will_do(given: str) -> None:
    assert not checked(given)


def test_marks_of_an_older_key_hold_while_it_is_in_the_ring() -> None:
    assert checked(MARK, keys=NEW)
    assert not checked(Forms(NEW, HERE).mark(MINE, "confirm", "BCDFGHJK"), keys=OLD)


def test_a_mark_is_bound_to_its_parts_not_to_their_sum() -> None:
    forms = Forms(OLD, HERE)
    assert forms.mark("ab", "c", "d") != forms.mark("a", "bc", "d")


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"Origin": HERE}, True),
        ({"Origin": HERE, "Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "http://scores.example"}, False),
        ({"Origin": HERE + ".evil.example"}, False),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "null", "Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": HERE, "Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_a_form_from_another_site_is_refused_even_with_the_right_mark(headers: Mapping[str, str], own: bool) -> None:
    assert checked(MARK, headers=headers) is own


@pytest.mark.parametrize(
    ("is_https", "said"),
    [
        (True, f"__Host-kind={MINE}; HttpOnly; Max-Age=60; Path=/; SameSite=Lax; Secure"),
        (False, f"kind={MINE}; HttpOnly; Max-Age=60; Path=/; SameSite=Lax"),
    ],
    ids=["https", "http"],
)
def test_cookies_are_hidden_from_scripts_and_other_sites(is_https: bool, said: str) -> None:
    response = web.Response()
    Cookies(is_https=is_https).put(response, "kind", MINE, seconds=60)
    assert response.cookies.output(header="").strip() == said


@pytest.mark.parametrize("value", ["", "short", "x" * 44, "é" * 43, "a b" * 14])
def test_a_cookie_that_is_no_secret_is_no_cookie(value: str) -> None:
    request = make_mocked_request("GET", "/", headers={"Cookie": f"kind={value}"})
    assert Cookies(is_https=False).get(request, "kind") is None
    assert is_secret(MINE)


def test_on_https_only_the_cookie_that_nobody_else_can_plant_counts() -> None:
    request = make_mocked_request("GET", "/", headers={"Cookie": f"kind={MINE}"})
    assert Cookies(is_https=False).get(request, "kind") == MINE
    assert Cookies(is_https=True).get(request, "kind") is None


def test_a_page_may_load_a_style_and_nothing_else() -> None:
    policy = dict(part.split(" ", 1) for part in PagePolicy().header.split("; "))
    assert policy.pop("style-src") == policy.pop("form-action") == "'self'"
    assert policy.pop("img-src") == "'self' data:"
    assert set(policy.values()) == {"'none'"}
    assert {"default-src", "script-src", "base-uri", "frame-ancestors"} <= set(policy)


def test_apps_may_ask_for_more() -> None:
    header = PagePolicy(script="'self'", connect="'self'", form_action=("'self'", "https://osm.example")).header
    assert "script-src 'self';" in header
    assert "form-action 'self' https://osm.example;" in header


@asynccontextmanager
async def state(path: Path) -> AsyncIterator[SharedState]:
    wiring.migrate(f"sqlite:///{path}")
    threads = Threads(2)
    kv = SharedState(SqliteTables(path), threads)
    yield kv
    await kv.close()
    threads.close()


def test_so_many_are_welcome_in_a_window_and_refusals_do_not_make_it_longer(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            limits, clock, rate = Limits(kv), SqliteClock(sqlite_path), Rate(2, 600)
            assert [await limits.wait("x", Visitor("1.1.1.1"), rate) for _ in range(2)] == [0, 0]
            assert 540 < await limits.wait("x", Visitor("1.1.1.1"), rate) <= 600
            assert await limits.wait("x", Visitor("1.1.1.10"), rate) == 0
            assert await limits.wait("y", Visitor("1.1.1.1"), rate) == 0
            clock.shift(400)
            assert 140 < await limits.wait("x", Visitor("1.1.1.1"), rate) <= 200
            clock.shift(200)
            assert await limits.wait("x", Visitor("1.1.1.1"), rate) == 0

    asyncio.run(main())


def test_a_network_of_ipv6_is_limited_as_one(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            waits = [await Limits(kv).wait("x", Visitor(f"2001:db8::{n}"), Rate(2, 60)) > 0 for n in range(1, 4)]
            assert waits == [False, False, True]

    asyncio.run(main())


def test_of_many_at_once_only_so_many_are_welcome(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            waits = await asyncio.gather(*(Limits(kv).wait("x", Visitor("1.1.1.1"), Rate(3, 60)) for _ in range(20)))
            assert waits.count(0) == 3

    asyncio.run(main())


def test_a_note_is_found_by_its_secret_and_taken_once(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            notes = Notes(kv, OLD, "kind", dict[str, str], seconds=60)
            await notes.keep(MINE, {"a": "plain words"})
            assert await notes.read(OTHERS) is None
            assert await notes.read(MINE) == {"a": "plain words"}
            taken = await asyncio.gather(*(notes.take(MINE) for _ in range(8)))
            assert taken.count(None) == 7

    asyncio.run(main())


def test_a_note_cannot_be_read_in_the_database_nor_under_another_key(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            await Notes(kv, OLD, "kind", dict[str, str], seconds=60).keep(MINE, {"a": "plain words"})
            (item,) = await kv.scan("kind:")
            assert b"plain words" not in item.value
            assert MINE not in item.key
            assert await Notes(kv, KeyRing({"x": b"x" * 32}), "kind", dict[str, str], seconds=60).read(MINE) is None
            assert await Notes(kv, OLD, "kind", list[int], seconds=60).read(MINE) is None

    asyncio.run(main())


def test_a_note_ends_by_itself(sqlite_path: Path) -> None:
    async def main() -> None:
        async with state(sqlite_path) as kv:
            notes = Notes(kv, OLD, "kind", str, seconds=60)
            await notes.keep(MINE, "x")
            SqliteClock(sqlite_path).shift(61)
            assert await notes.read(MINE) is None

    asyncio.run(main())
