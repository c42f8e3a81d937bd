"""The scoreboard as a whole: what it serves, how it says that it stands, and how it ends."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from carrick.errors import SchemaMissing, SettingsError
from carrick.settings import read_settings
from carrick_scoreboard import wiring
from carrick_scoreboard.settings import read_scoreboard_settings
from carrick_scoreboard.store.blocks import Blocks
from tests.osm import Osm
from tests.ports import free_port
from tests.secrets_seen import Secrets, in_folder
from tests.service import NOWHERE, Service, environment, service


def run(database: Path, test: Callable[[Service], Awaitable[None]], **changed: str) -> None:
    async def main() -> None:
        async with service(f"sqlite:///{database}", state=None, **changed) as running:
            await test(running)

    asyncio.run(main())


def test_it_shows_a_front_page_and_says_what_it_can_be_asked(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        status, page, headers = await running.get("/")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        for link in ("/device", "/api/openapi.json", "/api/ready"):
            assert f'href="{link}"' in page
            assert (await running.get(link))[0] == 200
        assert await running.get("/api/health") == (200, {"status": "ok"}, (await running.get("/api/health"))[2])
        _, document, _ = await running.get("/api/openapi.json")
        for path in ("/api/v1/patrols", "/ws/device", "/device/authorize", "/device/token", "/device", "/api/ready"):
            assert path in document["paths"]

    run(sqlite_path, story)


def test_every_answer_carries_the_security_headers_refusals_too(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        for path in ("/", "/api/health", "/no/such/page", "/api/v1/patrols"):
            _, _, headers = await running.get(path)
            assert headers["X-Content-Type-Options"] == "nosniff", path

    run(sqlite_path, story)


def test_a_display_signs_in_reads_its_scores_and_nothing_secret_is_left_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()

    async def main() -> None:
        secrets = Secrets()
        state = tmp_path / "osm.json"
        async with service(f"sqlite:///{folder}/board.db", state=state) as running:
            token = await running.device_token()
            status, scores, _ = await running.get("/api/v1/patrols", Authorization=f"Bearer {token}")
            assert status == 200
            assert [patrol["name"] for patrol in scores["patrols"]] == ["Eagles", "Lions", "Wolves"]
            refused = await running.get("/api/v1/patrols", Authorization=f"Bearer {token}x")
            assert refused[0] == 401
            secrets.add("device token", token)
            secrets.add_osm(state)
            shown = {"error": str(refused), "metrics": await running.metrics()}
            files = in_folder(folder)
            assert {"board.db", "board.db-wal", "board.db.key"} <= files.keys()
            secrets.add("key", files.pop("board.db.key").decode().strip().partition(":")[2])
            secrets.assert_unseen({**files, **shown})
        assert len(secrets) >= 4
        secrets.assert_unseen({name: content for name, content in in_folder(folder).items() if name != "board.db.key"})

    asyncio.run(main())
    assert "Traceback" not in "".join(capsys.readouterr())


def test_its_metrics_tell_of_the_outbox_of_shared_state_and_of_osm(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        text = await running.metrics()
        for line in ("carrick_store_up 1.0", "carrick_state_degraded 0.0", "osm_service_blocked 0.0"):
            assert line in text

    run(sqlite_path, story)


def test_readiness_tells_of_a_block_and_of_a_redis_that_is_away(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        ready = (await running.get("/api/ready"))[1]
        assert (ready["status"], ready["osm_blocked"]) == ("degraded", False)
        assert ready["problem"].startswith("Redis: ")
        assert "carrick_state_degraded 1.0" in await running.metrics()
        with wiring.opened_tables(f"sqlite:///{sqlite_path}") as tables:
            Blocks(tables).note("abuse")
        while not (await running.get("/api/ready"))[1]["osm_blocked"]:  # noqa: ASYNC110  it may be a second behind
            await asyncio.sleep(0.05)

    run(sqlite_path, story, REDIS_URL=f"redis://127.0.0.1:{free_port()}")


def test_without_its_tables_it_is_not_ready_and_says_why(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        assert (await running.get("/api/ready"))[:2] == (200, {"status": "ok", "problem": "", "osm_blocked": False})
        with closing(sqlite3.connect(sqlite_path)) as connection, connection:
            connection.execute("delete from carrick_migration where part = 'scoreboard'")
        status, body, _ = await running.get("/api/ready")
        assert (status, body["error"]) == (503, "not_ready")
        assert "carrick migrate" in body["message"]

    run(sqlite_path, story)


def test_when_it_stops_a_request_under_way_is_answered(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        token = await running.device_token()
        await running.osm.control("hold", name="read", point="before_answer", endpoint="patrols")
        asking = asyncio.create_task(running.get("/api/v1/patrols", Authorization=f"Bearer {token}"))
        await running.osm.reached("read")
        running.stopping.set()
        await running.osm.control("release", name="read")
        assert (await asking)[0] == 200
        await running.running

    run(sqlite_path, story)


def test_when_it_stops_displays_that_listen_are_told(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        headers = {"Authorization": f"Bearer {await running.device_token()}"}
        async with running.session.ws_connect(f"{running.url}/ws/device", headers=headers) as socket:
            running.stopping.set()
            message = await socket.receive()
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.GOING_AWAY)
        await running.running

    run(sqlite_path, story)


def test_a_port_that_is_taken_is_one_line_and_nothing_is_left_open(sqlite_path: Path) -> None:
    async def story(running: Service) -> None:
        port = running.url.rpartition(":")[2]
        environ = environment(f"sqlite:///{sqlite_path}", running.osm, int(port))
        second = wiring.scoreboard(read_settings(environ, NOWHERE), read_scoreboard_settings(environ, NOWHERE))
        with pytest.raises(SettingsError, match=f"PORT={port}"):
            await second.run(asyncio.Event(), lambda *_: None)

    run(sqlite_path, story)


def test_on_postgresql_keys_must_be_given() -> None:
    environ = environment("postgresql://nowhere/board", Osm(1), 0)
    with pytest.raises(SettingsError, match="^CARRICK_SECRET_KEYS is not set; on PostgreSQL it is required"):
        wiring.scoreboard(read_settings(environ, NOWHERE), read_scoreboard_settings(environ, NOWHERE))


def test_an_embedded_database_brings_its_own_key_beside_it_unless_one_is_given(sqlite_path: Path) -> None:
    environ = environment(f"sqlite:///{sqlite_path}", Osm(1), 0, CARRICK_SECRET_KEYS=wiring.new_key_text())
    wiring.scoreboard(read_settings(environ, NOWHERE), read_scoreboard_settings(environ, NOWHERE))
    assert not Path(f"{sqlite_path}.key").exists()
    del environ["CARRICK_SECRET_KEYS"]
    wiring.scoreboard(read_settings(environ, NOWHERE), read_scoreboard_settings(environ, NOWHERE))
    assert Path(f"{sqlite_path}.key").exists()


def test_commands_on_a_database_without_the_tables_say_so(sqlite_path: Path) -> None:
    with pytest.raises(SchemaMissing), wiring.opened_tables(f"sqlite:///{sqlite_path}"):
        pass
