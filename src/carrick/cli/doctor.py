"""`carrick doctor`: is everything that is configured there and well, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from carrick import checkup
from carrick.cli.printing import AsJson, print_json
from carrick.errors import SettingsError
from carrick.ops.doctor import Finding, failed
from carrick.settings import read_settings
from carrick_scoreboard import wiring as scoreboard

STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def doctor(*, as_json: AsJson = False, database: str | None = None) -> int:
    """Look at everything that is configured: settings, database, Redis, Kafka, the cloud, OSM's block, keys.

    Each line is OK, WARN or FAIL, with what to do. It changes nothing. Exit code 1 when something FAILs.

    Parameters
    ----------
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    found = _examined(database)
    if as_json:
        print_json({"checks": found})
    else:
        _print(found)
    return 1 if any(finding.status == "FAIL" for finding in found) else 0


def _examined(database: str | None) -> list[Finding]:
    try:
        settings = read_settings()
    except SettingsError as error:
        return [failed("configuration", str(error), "correct the variable, in the environment or in .env")]
    if database is not None:
        settings = msgspec.structs.replace(settings, database_url=database)
    found = checkup.examine(settings)
    has_tables = not any(finding.status == "FAIL" and finding.name in ("database", "schema") for finding in found)
    return [*found, *scoreboard.examine(settings.database_url, with_tables=has_tables)]


def _print(found: Sequence[Finding]) -> None:
    console = Console(highlight=False)
    for finding in found:
        first, *more = finding.detail.splitlines() or [""]
        console.print(
            Text.assemble((f"{finding.status:<5}", STYLES[finding.status]), f"{finding.name}: {first}"), soft_wrap=True
        )
        for line in more:
            console.print(Text(f"     {line}"), soft_wrap=True)
        if finding.remedy:
            console.print(Text(f"     -> {finding.remedy}"), soft_wrap=True)
