"""The import directions are checked by a machine: each contract is shown to break on an import that it forbids."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

UNLISTED = "a room that no contract knows"

FORBIDDEN = {
    "a value imports the engine": ("entry.py", "import carrick.outbox.store", "Rooms import downward only"),
    "the engine imports the wiring": ("outbox/channel.py", "import carrick.wiring", "Rooms import downward only"),
    "wiring imports a command": ("wiring.py", "import carrick.cli.demo", "Rooms import downward only"),
    "wiring asks the doctor": ("wiring.py", "import carrick.checkup", "Rooms import downward only"),
    "the words for an entry look at the clock": ("outbox/story.py", "import time", "Plain values touch nothing"),
    UNLISTED: ("attic.py", "import json", "Rooms import downward only"),
    "wiring imports the test kit": ("wiring.py", "import carrick.testing", "The product does not import its test kit"),
    "sqlite imports postgres": (
        "outbox/sqlite/__init__.py",
        "import carrick.outbox.postgres",
        "The databases do not know each other",
    ),
    "contacts on sqlite import those on postgres": (
        "contacts/sqlite/store.py",
        "import carrick.contacts.postgres.store",
        "Contacts stand on the engine alone",
    ),
    "contacts speak HTTP": ("contacts/contacts.py", "import carrick.web.routes", "Contacts touch the database only"),
    "the engine imports contacts": (
        "outbox/store.py",
        "import carrick.contacts.identity",
        "Rooms import downward only",
    ),
    "one inbox imports the other's engine": (
        "ingest/sqlite/store.py",
        "import carrick.outbox.postgres.store",
        "The databases do not know each other",
    ),
    "the ingest's rules import its API": (
        "ingest/batch.py",
        "import carrick.ingest.api",
        "The ingest's rooms import downward only",
    ),
    "the console's door knows its endpoints": (
        "console/door.py",
        "import carrick.console.api",
        "The console's rooms import downward only",
    ),
    "who may send depends on the clock": (
        "ingest/auth.py",
        "import time",
        "What an ingest accepts is decided without I/O",
    ),
    "the engine imports the scoreboard": (
        "outbox/store.py",
        "import carrick_scoreboard.osm.limits",
        "The scoreboard stands on Carrick",
    ),
    "the forwarder imports the ingest": ("forward/api.py", "import carrick.ingest.api", "Rooms import downward only"),
    "shared state on sqlite imports redis": (
        "state/sqlite/tables.py",
        "import carrick.state.redis",
        "The places of shared state do not know each other",
    ),
    "one sink imports another": (
        "sinks/handler.py",
        "import carrick.sinks.kafka",
        "The sinks do not know each other",
    ),
    "one adapter imports another": (
        "outbox/adapters/django.py",
        "import carrick.outbox.adapters.psycopg",
        "The adapters do not know each other",
    ),
    "a value looks at the clock": ("outbox/transitions.py", "import time", "Plain values touch nothing"),
    "a command speaks SQL": ("cli/migrate.py", "import sqlite3", "Commands parse, call and print: no SQL"),
    "the relay speaks HTTP": ("relay/relay.py", "import aiohttp", "Only sinks speak HTTP as a client"),
    "the meaning of an answer depends on the clock": (
        "sinks/answers.py",
        "import time",
        "What an answer means is decided without I/O",
    ),
    "the product imports the simulator": (
        "wiring.py",
        "import carrick_osmsim.server",
        "The simulator and the product share no code",
    ),
    "the simulator imports the product": (
        "../carrick_osmsim/server.py",
        "import carrick.entry",
        "The simulator and the product share no code",
    ),
    "the simulator's work knows its HTTP door": (
        "../carrick_osmsim/work.py",
        "import carrick_osmsim.door",
        "The simulator imports downward only",
    ),
    "a command reaches behind the scoreboard's wiring": (
        "cli/osm.py",
        "import carrick_scoreboard.store.blocks",
        "The scoreboard stands on Carrick",
    ),
    "the scoreboard's sign-in knows its routes": (
        "../carrick_scoreboard/sign_in.py",
        "import carrick_scoreboard.routes.pages",
        "The scoreboard's rooms import downward only",
    ),
    "the scoreboard's tables on sqlite import those on postgres": (
        "../carrick_scoreboard/store/sqlite/tables.py",
        "import carrick_scoreboard.store.postgres.tables",
        "The scoreboard's tables stand on the database alone",
    ),
    "the scoreboard's tables speak HTTP": (
        "../carrick_scoreboard/store/audit.py",
        "import aiohttp",
        "The scoreboard's tables do not touch the network",
    ),
    "the OSM client keeps something in a database": (
        "../carrick_scoreboard/osm/client.py",
        "import sqlite3",
        "The OSM client touches the network only",
    ),
    "a page of the scoreboard speaks SQL": (
        "../carrick_scoreboard/routes/front.py",
        "import sqlite3",
        "Pages and routes of the scoreboard speak no SQL",
    ),
    "the device client imports the product": (
        "../carrick_device/kept.py",
        "import carrick.settings",
        "The device client and the product share no code",
    ),
    "the device client imports the scoreboard": (
        "../carrick_device/answers.py",
        "import carrick_scoreboard.osm.classify",
        "The device client, the scoreboard and the simulator share no code",
    ),
    "the device's plan knows who carries it out": (
        "../carrick_device/plan.py",
        "import carrick_device.device",
        "The device client imports downward only",
    ),
    "one display imports another": (
        "../carrick_device/displays/terminal.py",
        "import carrick_device.displays.image",
        "The displays do not know each other",
    ),
    "the device's plan looks at the clock": (
        "../carrick_device/plan.py",
        "import time",
        "What a device does after which answer is decided without I/O",
    ),
    "a sign-in knows the pages": (
        "../carrick_scoreboard/sign_in.py",
        "import carrick_scoreboard.pages.device",
        "The sign-in of devices imports downward only",
    ),
    "a page looks at the clock": (
        "../carrick_scoreboard/pages/render.py",
        "import time",
        "What people see is made without I/O",
    ),
    "a route speaks SQL": (
        "../carrick_scoreboard/routes/pages.py",
        "import sqlite3",
        "The scoreboard's routes parse, call and answer",
    ),
    "the decision for a device does I/O": (
        "../carrick_scoreboard/patrols/decision.py",
        "import socket",
        "What a device is answered is decided without I/O",
    ),
    "what is shared knows how it is fetched": (
        "../carrick_scoreboard/patrols/shelf.py",
        "import carrick_scoreboard.patrols.fetching",
        "Scores for devices import downward only",
    ),
    "a route of devices asks OSM itself": (
        "../carrick_scoreboard/routes/patrols.py",
        "import carrick_scoreboard.osm.client",
        "The scoreboard's routes do no SQL and no OSM",
    ),
    "the engine speaks HTTP": ("outbox/store.py", "import http", "The engine does not touch the network by itself"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of the copy of Carrick in the folder."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command()",
        "--no-cache",
    ]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, text=True, check=False
    )


def copied(folder: Path) -> Path:
    """What the contracts are about, in that folder."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_rooms_import_downward_only(tmp_path: Path) -> None:
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


class Planted(NamedTuple):
    """A copy with every forbidden import in it: where each stands, and what each contract says."""

    lines: dict[str, int]
    broken: dict[str, str]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    copy, lines = copied(tmp_path_factory.mktemp("planted")), {}
    for case, (name, line, _) in FORBIDDEN.items():
        file = copy / "src" / "carrick" / name
        text = file.read_text() if file.exists() else ""
        file.write_text(f"{text}\n{line}\n")
        lines[case] = text.count("\n") + 2
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    _, *parts = re.split(r"\n(.+)\n-{3,}\n", done.stdout.partition("Broken contracts\n")[2])
    words = [" ".join(part.split()) for part in parts]
    return Planted(lines, dict(zip(words[::2], words[1::2], strict=True)))


@pytest.mark.parametrize("case", FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract(case: str, planted: Planted) -> None:
    name, line, contract = FORBIDDEN[case]
    module = os.path.normpath(f"carrick/{name}").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    (told,) = [text for title, text in planted.broken.items() if title.startswith(contract)]
    if case == UNLISTED:
        assert f"not listed as layers: - {module} " in told
    else:
        assert f"{module} -> {line.removeprefix('import ')} (l.{planted.lines[case]}" in told
