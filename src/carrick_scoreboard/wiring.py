"""The one place where the scoreboard's concrete parts are put together, for the commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from carrick import wiring
from carrick.errors import SchemaMissing, SchemaOutdated, SettingsError
from carrick.outbox import opening
from carrick.settings import read_settings

if TYPE_CHECKING:  # what a command does not need is not loaded
    from carrick.ops.doctor import Finding
    from carrick.settings import Settings
    from carrick_scoreboard.demo import ScoreboardDemo as ScoreboardDemo
    from carrick_scoreboard.look import OsmLook as OsmLook
    from carrick_scoreboard.look import UserLook as UserLook
    from carrick_scoreboard.resealing import Resealed
    from carrick_scoreboard.sealing import KeyRing
    from carrick_scoreboard.service import Scoreboard
    from carrick_scoreboard.settings import ScoreboardSettings
    from carrick_scoreboard.store.blocks import Block as Block
    from carrick_scoreboard.store.clients import Clients
    from carrick_scoreboard.store.tables import Tables

NO_FILE = Path("no .env file")
EXTRA = ("cryptography", "scoreboard", "the scoreboard")


def scoreboard(settings: Settings, own: ScoreboardSettings, *, is_demo: bool = False) -> Scoreboard:
    """The scoreboard. A SQLite file is created or upgraded; a PostgreSQL database must have been migrated."""
    from carrick_scoreboard.service import Scoreboard

    wiring.prepare(settings.database_url)
    keys = open_keys(settings.database_url, own.keys)
    tables = open_tables(settings.database_url)
    tables.check_schema()
    outbox = wiring.open_outbox(settings.database_url)
    return Scoreboard(
        tables,
        outbox,
        lambda threads: wiring.shared_state(settings, threads),
        keys,
        settings,
        own,
        is_demo=is_demo,
    )


def scoreboard_demo(database_url: str, folder: Path) -> ScoreboardDemo:
    """A scoreboard on that database with a simulated OSM, for `carrick demo`; the folder keeps what is not in the
    database. Raises MissingExtra."""
    with opening.needed(*EXTRA):
        from carrick_scoreboard import demo
    from carrick_scoreboard.settings import read_scoreboard_settings

    key = kept_key(folder / "secret-key")  # for a database that has no file beside it

    def build(port: int, osm: str) -> Scoreboard:
        environment = {
            "DATABASE_URL": database_url,
            "PORT": str(port),
            "METRICS_PORT": "0",
            "INSTANCE_ID": "scoreboard-1",
            "EXPOSED_DOMAIN": f"http://localhost:{port}",
            "OSM_DOMAIN": osm,
            "OSM_CLIENT_ID": "carrick-demo",
            "OSM_CLIENT_SECRET": "not-a-secret",
            "INTERNAL_ADMIN_ENABLED": "true",
            "CARRICK_SECRET_KEYS": "" if opening.named_database(database_url).backend == "sqlite" else key,
        }
        settings = read_settings(environment, NO_FILE, service="scoreboard")
        built = scoreboard(settings, read_scoreboard_settings(environment, NO_FILE), is_demo=True)
        with opened_clients(database_url) as clients:
            if clients.get(demo.CLIENT) is None:
                clients.add(demo.CLIENT, "A display of the demo", "", actor="carrick demo")
        return built

    def backdate(seconds: Mapping[int, int]) -> None:
        from carrick_scoreboard.store.scores import Scores

        with opened_tables(database_url) as tables:
            Scores(tables).backdate(seconds)

    return demo.ScoreboardDemo(build, folder, backdate)


def kept_key(path: Path) -> str:
    """The key in that file, as CARRICK_SECRET_KEYS takes it; the file is made with a new one when it is not there."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(new_key_text())
    except FileExistsError:
        pass  # that of the last time
    return path.read_text().strip()


def demo_guide(demo: ScoreboardDemo) -> list[str]:
    """What to do with a demo that has started, line by line."""
    from carrick_scoreboard.demo import guide

    return guide(demo.places)


def read_own_settings() -> ScoreboardSettings:
    """The scoreboard's settings from the environment. Raises SettingsError or MissingExtra."""
    with opening.needed(*EXTRA):
        from carrick_scoreboard.settings import read_scoreboard_settings
    return read_scoreboard_settings()


def open_tables(database_url: str) -> Tables:
    """The scoreboard's tables of that database; close them when done. Raises InvalidInput or MissingExtra."""
    database = opening.named_database(database_url)
    if database.backend == "postgres":
        with opening.psycopg_needed():
            from carrick_scoreboard.store.postgres.tables import PostgresTables
        return PostgresTables(database.target)
    from carrick_scoreboard.store.sqlite.tables import SqliteTables

    return SqliteTables(database.target)


@contextmanager
def opened_tables(database_url: str) -> Iterator[Tables]:
    """The tables, with the schema of this release; closed afterwards."""
    tables = open_tables(database_url)
    try:
        tables.check_schema()
        yield tables
    finally:
        tables.close()


def open_keys(database_url: str, given: KeyRing | None) -> KeyRing:
    """The keys that were given, else those beside an embedded database. Raises SettingsError."""
    if given is not None:
        return given
    path = _key_file(database_url)
    if path is None:
        accepted = "what `carrick keys new` prints, the same for all replicas"
        raise SettingsError(f"CARRICK_SECRET_KEYS is not set; on PostgreSQL it is required: {accepted}")
    from carrick_scoreboard.own_keys import OwnKeys

    return OwnKeys(path)


def _key_file(database_url: str) -> Path | None:
    """Where the keys of an embedded database are, or will be; a server has none."""
    database = opening.named_database(database_url)
    return None if database.backend == "postgres" else Path(f"{database.target}.key")


def new_key_text() -> str:
    """A fresh key as CARRICK_SECRET_KEYS takes it. Raises MissingExtra."""
    with opening.needed(*EXTRA):
        from carrick_scoreboard.sealing import key_text, new_key
    return key_text(*new_key())


def rotate_keys(database_url: str) -> Resealed:
    """Seal everything with the newest key; where the keys are in a file, a new one is made first.

    A crash in the middle loses nothing: all keys are still there, and the next rotation goes on.
    """
    with opening.needed(*EXTRA):
        from carrick_scoreboard.own_keys import OwnKeys
        from carrick_scoreboard.resealing import reseal_all
        from carrick_scoreboard.settings import read_keys
    from carrick_scoreboard.store.credentials import StoredCredentials

    with opened_tables(database_url) as tables:
        keys = open_keys(database_url, read_keys())
        with keys.rotating() if isinstance(keys, OwnKeys) else nullcontext():
            return reseal_all(StoredCredentials(tables), keys)


@contextmanager
def opened_clients(database_url: str) -> Iterator[Clients]:
    """The allow-list of device applications; closed afterwards."""
    from carrick_scoreboard.store.clients import Clients

    with opened_tables(database_url) as tables:
        yield Clients(tables)


def unblock(database_url: str, actor: str, reason: str) -> Block | None:
    """End OSM's block of the application; None where none stands. Raises InvalidInput."""
    from carrick_scoreboard.store.blocks import Blocks

    with opened_tables(database_url) as tables:
        return Blocks(tables).clear(actor, reason)


def standing_block(database_url: str) -> Block | None:
    """OSM's block of the application, if one stands. A database without the scoreboard's tables has none."""
    from carrick_scoreboard.store.blocks import Blocks

    try:
        with opened_tables(database_url) as tables:
            return Blocks(tables).standing()
    except (SchemaMissing, SchemaOutdated):
        return None


def examine(database_url: str, *, with_tables: bool) -> list[Finding]:
    """The doctor's findings about the scoreboard; about its tables only when they can be asked. Changes nothing."""
    from carrick.ops import doctor

    found = doctor.examine([doctor.Check("scoreboard", lambda: _configuration(database_url))])
    if not with_tables or find_spec("cryptography") is None:
        return found
    from carrick_scoreboard import checkup

    with opened_tables(database_url) as tables:
        return [*found, *doctor.examine(checkup.checks(tables, lambda: _found_keys(database_url)))]


def _configuration(database_url: str) -> Finding:
    from carrick.ops import doctor
    from carrick.variables import read_variables

    if not any(read_variables().get(name, "").strip() for name in ("OSM_CLIENT_ID", "OSM_CLIENT_SECRET")):
        return doctor.not_configured("scoreboard", "OSM_CLIENT_ID")
    own = read_own_settings()
    if own.keys is None and _key_file(database_url) is None:
        open_keys(database_url, None)  # says what is missing
    from carrick_scoreboard import checkup

    return checkup.configuration(own)


def _found_keys(database_url: str) -> KeyRing | None:
    """The keys that there are; none is made."""
    from carrick_scoreboard.settings import read_keys

    given, path = read_keys(), _key_file(database_url)
    return open_keys(database_url, given) if given or (path and path.exists()) else None


def look_at_osm(settings: Settings) -> OsmLook:
    """How the application and its users stand with OSM; asks nothing of OSM."""
    from carrick.relay.threads import Threads
    from carrick_scoreboard import look

    async def looked(tables: Tables) -> OsmLook:
        threads = Threads(1)
        state = wiring.shared_state(settings, threads)
        try:
            return await look.look_at_osm(tables, state, threads)
        finally:
            await state.close()
            threads.close()

    with opened_tables(settings.database_url) as tables:
        return asyncio.run(looked(tables))
