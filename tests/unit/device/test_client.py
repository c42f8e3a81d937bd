"""The server over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from carrick_device.answers import Reply, Response, Unreachable
from carrick_device.client import MAX_ANSWER_BYTES, Server, checked_url, is_open_to_listeners
from carrick_device.errors import DeviceError
from tests.unit.device.scripted import CODE, GRANTED, Answer, Script, scores, serving


def asked(script: Script, call: str, *arguments: str, timeout_seconds: float = 15.0) -> Reply:
    """The reply to one call of a server with this script."""

    async def story() -> Reply:
        async with serving(script) as url:
            server = Server(url, "hall", timeout_seconds=timeout_seconds)
            try:
                reply: Reply = await getattr(server, call)(*arguments)
                return reply
            finally:
                await server.close()

    return asyncio.run(story())


def test_a_code_is_asked_for_with_the_client_id() -> None:
    script = Script(authorize=[CODE])
    assert isinstance(asked(script, "authorize"), Response)
    ((method, path, form, _),) = script.asked
    assert (method, path, form) == ("POST", "/device/authorize", {"client_id": "hall"})


def test_a_poll_names_the_grant_the_code_and_the_client() -> None:
    script = Script(token=[GRANTED])
    asked(script, "token", "secret-device-code")
    ((method, path, form, _),) = script.asked
    assert (method, path) == ("POST", "/device/token")
    assert form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": "secret-device-code",
        "client_id": "hall",
    }


def test_scores_are_asked_for_with_the_token() -> None:
    script = Script(patrols=[scores(1)])
    reply = asked(script, "patrols", "secret-access-token")
    ((method, path, _, headers),) = script.asked
    assert (method, path, headers["Authorization"]) == ("GET", "/api/v1/patrols", "Bearer secret-access-token")
    assert isinstance(reply, Response)
    assert reply.headers["date"] == "Thu, 08 Jan 2026 14:30:00 GMT"


def test_a_redirect_is_not_followed() -> None:
    script = Script(patrols=[Answer("", 307, {"Location": "/elsewhere"})])
    reply = asked(script, "patrols", "secret-access-token")
    assert isinstance(reply, Response)
    assert (reply.status, script.paths()) == (307, ["/api/v1/patrols"])


def test_an_answer_that_is_too_long_is_not_read() -> None:
    reply = asked(Script(patrols=[Answer("x" * (MAX_ANSWER_BYTES + 1))]), "patrols", "token")
    assert isinstance(reply, Unreachable)
    assert "is too long" in reply.message
    assert isinstance(asked(Script(patrols=[Answer("x" * MAX_ANSWER_BYTES)]), "patrols", "token"), Response)


def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    script = Script(patrols=[Answer("packed", headers={"Content-Encoding": "gzip"})])
    reply = asked(script, "patrols", "token")
    assert isinstance(reply, Response)
    assert (reply.body, script.asked[0][3]["Accept-Encoding"]) == (b"packed", "identity")


def test_a_server_that_hangs_up_is_out_of_reach_and_asked_once() -> None:
    script = Script(patrols=[Answer("", 0)])
    reply = asked(script, "patrols", "token")
    assert isinstance(reply, Unreachable)
    assert reply.message.startswith("Cannot reach 127.0.0.1:")
    assert script.paths() == ["/api/v1/patrols"]


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def story() -> Reply:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "hall", timeout_seconds=0.05)
            try:
                return await server.patrols("token")
            finally:
                await server.close()

    reply = asyncio.run(story())
    assert isinstance(reply, Unreachable)
    assert reply.message.endswith("does not answer.")


def test_what_is_not_http_makes_no_sense() -> None:
    async def nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        await writer.drain()
        writer.close()

    async def story() -> Reply:
        async with await asyncio.start_server(nonsense, "127.0.0.1", 0) as listener:
            server = Server(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", "hall")
            try:
                return await server.patrols("token")
            finally:
                await server.close()

    reply = asyncio.run(story())
    assert isinstance(reply, Unreachable)
    assert reply.message.endswith("makes no sense.")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.example",
        "ftp://x",
        "https://",
        "https://u:p@x",
        "https://x?y",
        "https://x#y",
        "https://x:99999",
        "https://[x",
    ],
)
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(DeviceError, match=r"--server .* is no address of a server; accepted is one such as https://"):
        checked_url(url)


@pytest.mark.parametrize("url", ["https://x y", "http://x\n", "http://x/\x1b[2J"])
def test_an_address_with_signs_that_do_not_belong_there_is_named(url: str) -> None:
    with pytest.raises(DeviceError, match="is no address of a server"):
        checked_url(url)


def test_an_address_may_have_a_path_and_loses_its_last_slash() -> None:
    assert checked_url("https://x.example/scores/") == "https://x.example/scores"


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("http://x.example", True),
        ("https://x.example", False),
        ("http://localhost:8080", False),
        ("http://[::1]:8080", False),
    ],
)
def test_only_what_leaves_this_machine_unencrypted_can_be_listened_to(url: str, is_open: bool) -> None:
    assert is_open_to_listeners(url) == is_open
