"""Where PgBouncer is."""

from __future__ import annotations

import os
import shutil


def pgbouncer() -> str | None:
    """The one on the PATH, or where packages of systems put it; None where there is none."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
