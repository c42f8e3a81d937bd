"""SQLite files with the schema in them, migrated once per process and copied: that is fifty times faster."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from carrick.outbox.sqlite.migrate import migrate as migrate_engine
from carrick.wiring import migrate


def engine_file(path: Path) -> None:
    """A new file with the tables of the engine alone."""
    shutil.copy(_templates() / "engine.db", path)


def whole_file(path: Path) -> None:
    """A new file with the tables of every part, as `carrick migrate` leaves it."""
    shutil.copy(_templates() / "whole.db", path)


@cache
def _templates() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="carrick-sqlite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    migrate_engine(folder / "engine.db")
    migrate(f"sqlite:///{folder}/whole.db")
    assert {file.name for file in folder.iterdir()} == {"engine.db", "whole.db"}, "nothing is left beside a file"
    return folder
