"""Routes as data, over real sockets: decoding, errors in one form, nothing but JSON."""

from __future__ import annotations

import asyncio
import gzip
from typing import Annotated, Any

import aiohttp
import msgspec
import pytest
import zstandard
from aiohttp import web

from carrick.errors import BacklogFull, KeyReused, SettingsError, StoreUnavailable
from carrick.web.openapi import document
from carrick.web.problems import Problem
from carrick.web.routes import Answer, Call, Route, application
from carrick.web.server import serving


class Thing(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A thing."""

    name: Annotated[str, msgspec.Meta(min_length=1)]


class Found(msgspec.Struct, kw_only=True):
    """What was found."""

    names: list[str]


class Wanted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is wanted."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10)] = 5


async def make(call: Call[None, Thing | list[Thing]]) -> Found:
    things = call.body if isinstance(call.body, list) else [call.body]
    return Found(names=[thing.name for thing in things])


async def find(call: Call[Wanted, None]) -> Found:
    return Found(names=["x"] * call.query.limit)


async def fail(call: Call[None, Thing]) -> Answer:
    raise {
        "full": BacklogFull("things"),
        "reused": KeyReused("things", "t", "k"),
        "down": StoreUnavailable("no answer"),
        "mine": Problem(418, "teapot", "short and stout"),
        "bug": ZeroDivisionError("secret detail"),
    }[call.body.name]


def admit(request: web.Request) -> None:
    if "x-key" not in request.headers:
        raise Problem(404, "not_found", f"{request.path} is not there")


def signed(request: web.Request, body: bytes) -> None:
    if request.headers.get("x-length") != str(len(body)):
        raise Problem(401, "unauthorized", "this is not what was signed")


ROUTES = [
    Route(
        method="POST", path="/things", summary="Make", handle=make, takes=Thing | list[Thing], gives=Found, status=202
    ),
    Route(method="GET", path="/things", summary="Find", handle=find, query=Wanted, gives=Found, problems=[400]),
    Route(method="POST", path="/fail", summary="Fail", handle=fail, takes=Thing, gives=Found),
    Route(method="GET", path="/hidden", summary="Hidden", handle=find, query=Wanted, gives=Found, guards=[admit]),
    Route(method="POST", path="/signed", summary="Signed", handle=make, takes=Thing, gives=Found, body_guards=[signed]),
]


JSON = {"Content-Type": "application/json"}


class Said:
    """An answer: its status and its JSON."""

    def __init__(self, status: int, value: Any, headers: Any) -> None:
        self.status = status
        self.value = value
        self.headers = headers


def ask(method: str, path: str, *, data: bytes | None = None, headers: dict[str, str] | None = None) -> Said:
    sent = JSON | (headers or {})

    async def main() -> Said:
        app = application(ROUTES, max_body_bytes=1000)
        async with (
            serving(app, "127.0.0.1", 0) as port,
            aiohttp.ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{port}{path}", data=data, headers=sent) as response,
        ):
            assert response.content_type == "application/json"
            return Said(response.status, await response.json(), response.headers)

    return asyncio.run(main())


def test_a_value_is_decoded_and_answered() -> None:
    said = ask("POST", "/things", data=b'{"name": "a"}')
    assert (said.status, said.value) == (202, {"names": ["a"]})


def test_a_list_is_taken_where_the_type_says_so() -> None:
    assert ask("POST", "/things", data=b'[{"name": "a"}, {"name": "b"}]').value == {"names": ["a", "b"]}


@pytest.mark.parametrize(
    ("data", "message", "field", "index"),
    [
        (b'{"name": ""}', "body: Expected `str` of length >= 1 at $.name", "name", None),
        (b'[{"name": "a"}, {"name": 1}]', "body: Expected `str`, got `int` at $[1].name", "name", 1),
        (b'{"name": "a", "more": 1}', "body: Object contains unknown field `more`", "more", None),
        (b"{}", "body: Object missing required field `name`", "name", None),
        (b'[{"name": "a"}, {}]', "body: Object missing required field `name` at $[1]", "name", 1),
        (b"[5]", "body: Expected `object`, got `int` at $[0]", None, 0),
        (b"5", "body: Expected `object | array`, got `int`", None, None),
    ],
)
def test_what_the_type_does_not_accept_is_named(
    data: bytes, message: str, field: str | None, index: int | None
) -> None:
    said = ask("POST", "/things", data=data)
    assert (said.status, said.value["error"], said.value["message"]) == (400, "invalid_input", message)
    assert (said.value.get("field"), said.value.get("index")) == (field, index)


@pytest.mark.parametrize(
    ("data", "message", "field", "index"),
    [
        (rb'{"name": "\ud83d"}', " at $.name", "name", None),
        (rb'[{"name": "a"}, {"name": "\udfff and more"}]', " at $[1].name", "name", 1),
        (rb'{"name": "\ud83d\u0041"}', " at $.name", "name", None),
        (rb'{"\ud83d": 1}', "", None, None),
        (rb'["\ud83d"]', "", None, 0),
    ],
)
def test_half_of_a_surrogate_pair_is_named(data: bytes, message: str, field: str | None, index: int | None) -> None:
    said = ask("POST", "/things", data=data)
    assert (said.status, said.value["error"]) == (400, "invalid_input")
    assert said.value["message"] == f"body: contains a lone surrogate{message}; accepted: whole surrogate pairs"
    assert (said.value.get("field"), said.value.get("index")) == (field, index)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"nope"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    said = ask("POST", "/things", data=data)
    assert (said.status, said.value["error"]) == (400, "invalid_json")


def test_a_query_is_decoded() -> None:
    assert ask("GET", "/things?limit=2").value == {"names": ["x", "x"]}
    assert len(ask("GET", "/things").value["names"]) == 5


@pytest.mark.parametrize("query", ["limit=0", "limit=11", "limit=x", "limit=", "other=1"])
def test_a_bad_query_is_refused(query: str) -> None:
    said = ask("GET", f"/things?{query}")
    assert (said.status, said.value["error"], said.value["field"]) == (400, "invalid_input", query.partition("=")[0])


def test_a_body_that_is_too_large_is_refused() -> None:
    assert ask("POST", "/things", data=b" " * 2000).status == 413


def test_a_compressed_body_counts_by_what_it_becomes() -> None:
    bomb = gzip.compress(b'{"name":"' + b"a" * 1_000_000 + b'"}')
    assert len(bomb) < 1500
    assert ask("POST", "/things", data=bomb, headers={"Content-Encoding": "gzip"}).status == 413


WHOLE = b'{"name": "a"}'
COMPRESSED = {
    "gzip": ("gzip", gzip.compress(WHOLE)),
    "gzip in two members": ("GZIP", gzip.compress(WHOLE[:5]) + gzip.compress(WHOLE[5:])),
    "zstd": ("zstd", zstandard.compress(WHOLE)),
    "zstd without its size": ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(WHOLE)),
    "as it is": ("identity", WHOLE),
    "nothing said": ("", WHOLE),
}


@pytest.mark.parametrize("case", COMPRESSED)
def test_a_compressed_body_is_unfolded(case: str) -> None:
    encoding, data = COMPRESSED[case]
    assert ask("POST", "/things", data=data, headers={"Content-Encoding": encoding}).value == {"names": ["a"]}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [slice(None), slice(0, -1), slice(0, 6)], ids=["plain", "without its end", "begun"])
def test_a_body_that_is_not_what_its_encoding_says_is_refused(encoding: str, cut: slice) -> None:
    folded = gzip.compress(WHOLE) if encoding == "gzip" else zstandard.compress(WHOLE)
    data = WHOLE if cut == slice(None) else folded[cut]
    said = ask("POST", "/things", data=data, headers={"Content-Encoding": encoding})
    assert (said.status, said.value["error"]) == (400, "malformed")
    assert said.value["message"].startswith(f"the body is no {encoding}: ")


@pytest.mark.parametrize("encoding", ["xyz", "br", "deflate", "gzip, gzip"])
def test_an_encoding_that_nobody_here_knows_is_refused_with_those_that_are(encoding: str) -> None:
    said = ask("POST", "/things", data=WHOLE, headers={"Content-Encoding": encoding})
    assert (said.status, said.value["error"]) == (415, "unsupported")
    assert said.value["message"] == (f"Content-Encoding {encoding!r} is not supported; accepted: gzip, zstd, identity")


@pytest.mark.parametrize("size", [True, False], ids=["size told", "size not told"])
def test_a_bomb_of_zstd_counts_by_what_it_becomes(size: bool) -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=size).compress(b" " * 1_000_000)
    assert len(bomb) < 1000
    assert ask("POST", "/things", data=bomb, headers={"Content-Encoding": "zstd"}).status == 413


def test_who_guards_a_body_sees_it_as_it_was_sent() -> None:
    data = gzip.compress(WHOLE)
    headers = {"Content-Encoding": "gzip", "x-length": str(len(data))}
    assert ask("POST", "/signed", data=data, headers=headers).value == {"names": ["a"]}
    assert ask("POST", "/signed", data=data, headers=headers | {"x-length": str(len(WHOLE))}).status == 401


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("full", 507, "backlog_full"),
        ("reused", 409, "key_reused"),
        ("down", 503, "store_unavailable"),
        ("mine", 418, "teapot"),
    ],
)
def test_errors_have_their_status(name: str, status: int, error: str) -> None:
    said = ask("POST", "/fail", data=f'{{"name": "{name}"}}'.encode())
    assert (said.status, said.value["error"]) == (status, error)


def test_a_fault_of_ours_tells_nothing_of_itself() -> None:
    said = ask("POST", "/fail", data=b'{"name": "bug"}')
    assert (said.status, said.value["error"]) == (500, "internal_error")
    assert "secret" not in said.value["message"]


def test_an_unknown_path_and_a_wrong_method_are_told_in_the_same_form() -> None:
    assert ask("GET", "/nowhere").value["error"] == "not_found"
    said = ask("DELETE", "/things")
    assert (said.status, said.value["error"]) == (405, "method_not_allowed")
    assert said.headers["Allow"] == "GET,POST"


def test_a_path_that_is_hidden_does_not_tell_its_methods() -> None:
    assert ask("DELETE", "/hidden").value == ask("GET", "/hidden").value
    said = ask("DELETE", "/hidden", headers={"x-key": "k"})
    assert (said.status, said.headers["Allow"]) == (405, "GET")


def test_a_port_that_is_taken_is_named_with_its_variable() -> None:
    async def main() -> None:
        async with serving(web.Application(), "127.0.0.1", 0) as port:
            with pytest.raises(SettingsError, match=f"METRICS_PORT={port}"):
                async with serving(web.Application(), "127.0.0.1", port, "METRICS_PORT"):
                    pass

    asyncio.run(main())


def test_the_document_names_every_route_with_its_types() -> None:
    described = document("Things", "About things.", ROUTES)
    made = described["paths"]["/things"]["post"]
    assert set(described["paths"]) == {"/things", "/fail", "/hidden", "/signed"}
    assert set(made["responses"]) == {
        "202",
        "400",
        "403",
        "408",
        "413",
        "415",
        "429",
    }  # what may be amiss with any body
    assert made["requestBody"]["required"]
    assert described["paths"]["/things"]["get"]["parameters"][0]["name"] == "limit"
    assert {"Thing", "Found", "ProblemBody"} <= set(described["components"]["schemas"])
