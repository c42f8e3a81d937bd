"""`carrick scoreboard` as an operator runs it: two replicas on PostgreSQL, a block, its end; nothing secret left."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from carrick_scoreboard import wiring
from tests.osm import OsmProcess
from tests.scenario.processes import ServiceProcess, until
from tests.scoreboard import Browser, Device
from tests.secrets_seen import Secrets, in_folder, in_postgres
from tests.service import environment, register, sign_in

CLIENT = "matrix"


def command(url: str, *arguments: str) -> str:
    """What a command prints; it must work."""
    done = subprocess.run(
        [sys.executable, "-m", "carrick", *arguments, "--database", url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def replica(folder: Path, url: str, osm: OsmProcess, keys: str, exposed: str | None = None) -> ServiceProcess:
    process = ServiceProcess("scoreboard", folder)
    changed = {"CARRICK_SECRET_KEYS": keys, **({"EXPOSED_DOMAIN": exposed} if exposed else {})}
    variables = environment(url, osm.osm, process.port, **changed)
    del variables["PORT"]
    process.start(**variables)
    return process


def metrics_of(process: ServiceProcess) -> str:
    """What Prometheus gets; the log says where."""
    (started,) = [line for line in process.log.splitlines() if "scoreboard.started" in line]
    with urllib.request.urlopen(json.loads(started)["metrics"]) as answer:
        text: str = answer.read().decode()
        return text


def test_two_replicas_a_block_and_its_end(postgres_url: str, tmp_path: Path) -> None:
    logs, state, keys = tmp_path / "logs", tmp_path / "osm.json", wiring.new_key_text()
    logs.mkdir()
    url = postgres_url
    command(url, "clients", "add", CLIENT, "--comment", "the hall")
    bodies: list[Any] = []
    with OsmProcess(tmp_path, "--state", str(state)) as osm:
        until(lambda: "simulated" in osm.log, "the simulator has started")
        one = replica(logs, url, osm, keys)
        two = replica(logs, url, osm, keys, f"http://127.0.0.1:{one.port}")
        replicas = (one, two)
        try:
            for process in replicas:
                process.wait_ready()
            asyncio.run(register(osm.osm, one.port))
            token = asyncio.run(sign_in(f"http://127.0.0.1:{one.port}", client_id=CLIENT))
            device = {"Authorization": f"Bearer {token}"}
            status, scores = two.ask("GET", "/api/v1/patrols", **device)
            assert (status, scores["stale"], len(scores["patrols"])) == (200, False, 3)

            asyncio.run(osm.osm.control("fault", kind="blocked_header", endpoint="token", text="too many calls"))
            bodies.append(asyncio.run(sign_in_fails(f"http://127.0.0.1:{one.port}")))
            until(lambda: two.ask("GET", "/api/ready")[1]["osm_blocked"], "the other replica knows")
            calls = len(asyncio.run(osm.osm.calls(limit=1000)))
            status, scores = two.ask("GET", "/api/v1/patrols", **device)
            assert (status, scores["service_blocked"]) == (200, True)
            assert "too many calls" in command(url, "osm", "status")
            assert len(asyncio.run(osm.osm.calls(limit=1000))) == calls, "nothing leaves while it stands"

            asyncio.run(osm.osm.control("unblock"))
            assert command(url, "osm", "unblock", "--reason", "spoke to OSM").startswith("ended: ")
            until(lambda: not two.ask("GET", "/api/ready")[1]["osm_blocked"], "the other replica knows")
            again = asyncio.run(sign_in(f"http://127.0.0.1:{one.port}", client_id=CLIENT))
            assert two.ask("GET", "/api/v1/patrols", Authorization=f"Bearer {again}")[0] == 200
            bodies.append(two.ask("GET", "/api/v1/patrols", Authorization=f"Bearer {token}x"))

            secrets = Secrets()
            secrets.add_osm(state)
            for name, value in (("token", token), ("token", again), ("key", keys.partition(":")[2])):
                secrets.add(name, value)
            secrets.add("application's secret", "not-a-secret")
            figures = {f"metrics {number}": metrics_of(process) for number, process in enumerate(replicas)}
            assert [process.stop() for process in replicas] == [0, 0]
            secrets.assert_unseen({**in_folder(logs), **in_postgres(url), **figures, "answers": json.dumps(bodies)})
            assert "Traceback" not in one.log + two.log
        finally:
            for process in replicas:
                process.__exit__(None, None, None)


async def sign_in_fails(url: str) -> str:
    """OSM does not let a person in; the page that says so."""
    async with Browser(url) as browser:
        page = await browser.signed_in(await Device(url, CLIENT).begin())
        assert page.status == 503, page.text
        return page.text
