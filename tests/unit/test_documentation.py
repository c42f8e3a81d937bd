"""The documentation says what the code does: its links, its examples and its tables are checked against the code."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec
import pytest

from carrick import cli, errors
from carrick.outbox.channel import OPTIONS
from carrick.settings import CloudSettings, IngestSettings, KafkaSettings, Settings, WebSettings
from carrick_osmsim import command
from carrick_osmsim.actions import ACTIONS
from carrick_osmsim.faults import APPLIED, KINDS, MEANINGS, Kind
from carrick_osmsim.seed import PASSWORD, seeded
from carrick_scoreboard.osm.client import Application
from carrick_scoreboard.osm.limits import Thresholds
from carrick_scoreboard.settings import Rate, ScoreboardSettings

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "docs" / "check.py"
ERRORS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.CarrickError)]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@dataclass
class Site:
    """A small documentation of its own, with the real check beside it."""

    folder: Path

    def check(self, text: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "README.md").write_text(text)
        command = [sys.executable, str(self.folder / "docs" / "check.py")]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "check.py").write_text(CHECK.read_text())
    (tmp_path / "docs" / "page.md").write_text("# A `page`, with a heading\n")
    return Site(tmp_path)


def test_every_link_and_example_of_the_documentation_is_sound() -> None:
    done = subprocess.run([sys.executable, str(CHECK)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "[to](docs/page.md), [there](docs/page.md#a-page-with-a-heading), [out](https://example.org/x)",
        "`[not](a-link.md)`",
        "```\n[not](a-link.md)\n```",
        "```python\nawait something()\n```",
    ],
)
def test_sound_text_passes_the_check(text: str, site: Site) -> None:
    done = site.check(text)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[x](docs/nowhere.md)", "README.md:1: the link docs/nowhere.md leads nowhere"),
        ("\n[x](docs/page.md#other)", "README.md:2: the link docs/page.md#other names a heading that does not exist"),
        ("[x](../../etc/passwd)", "README.md:1: the link ../../etc/passwd leads nowhere"),
        ("```python\nif:\n```", "README.md:1: the python example cannot be read"),
        ("```json\n{,}\n```", "README.md:1: the json example cannot be read"),
    ],
)
def test_a_broken_link_or_example_is_named_with_its_line(text: str, problem: str, site: Site) -> None:
    done = site.check(text)
    assert done.returncode == 1
    assert done.stderr.startswith(problem)


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_in_the_reference_with_what_to_do(error: type[Exception]) -> None:
    assert f"| `{error.__name__}` |" in page("reference/errors.md")
    assert f" | {error.__doc__} |" in page("reference/errors.md")


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_stands_in_the_tree_of_its_module(error: type[Exception]) -> None:
    assert error.__name__ in (errors.__doc__ or "")


NAMES = {
    "sync_interval_seconds": "SYNC_INTERVAL_MS",
    "url": "CLOUD_INGESTION_URL",
    "cache_fallback_seconds": "CACHE_FALLBACK_TTL",
    "debounce_seconds": "SCORE_DEBOUNCE_SECONDS",
    "poll_seconds": "SCORE_POLL_SECONDS",
    "workers": "SCORE_WORKERS",
    "merge_leaders": "SCORE_MERGE_LEADERS",
    "device_code_seconds": "DEVICE_CODE_EXPIRY",
    "device_poll_seconds": "DEVICE_POLL_INTERVAL",
    "authorize_rate": "DEVICE_AUTHORIZE_RATE_LIMIT",
    "entry_rate": "DEVICE_ENTRY_RATE_LIMIT",
    "keys": "CARRICK_SECRET_KEYS",
}
"""Settings whose variable is not simply their name."""


def variables() -> list[tuple[str, object]]:
    """Every variable with its default, as the code knows them."""
    nested: dict[str, type[msgspec.Struct]] = {
        "cloud": CloudSettings,
        "ingest": IngestSettings,
        "kafka": KafkaSettings,
        "osm": Application,
        "thresholds": Thresholds,
        "web": WebSettings,
    }
    every = (*msgspec.structs.fields(Settings), *msgspec.structs.fields(ScoreboardSettings))
    plain = [field for field in every if field.name not in {*nested, "outbox_set"}]
    named = [(NAMES.get(field.name, field.name.upper()), field.default) for field in plain]
    for prefix, settings in nested.items():
        fields = msgspec.structs.fields(settings)
        before = {"thresholds": "rate_limit"}.get(prefix, prefix)
        named += [(NAMES.get(field.name, f"{before}_{field.name}".upper()), field.default) for field in fields]
    known = {"SYNC_INTERVAL_MS": 60_000, "OUTBOX_MAX_BACKLOG_BYTES": 0, "CACHE_FALLBACK_TTL": "192h"}
    return [(variable, known.get(variable, default)) for variable, default in named]


VARIABLES = variables()


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    rows = [line for line in page("reference/configuration.md").splitlines() if line.startswith("| `")]
    documented = {row.split("`")[1]: row.split("|")[2].strip() for row in rows}
    assert documented.keys() == {variable for variable, _ in VARIABLES}
    for variable, default in VARIABLES:
        if isinstance(default, bool):
            assert documented[variable] == f"`{str(default).lower()}`"
        elif isinstance(default, int | float):
            assert float(documented[variable]) == default
        elif isinstance(default, Rate):
            assert documented[variable] == f"`{default.count}/{default.seconds}`"


def test_every_channel_option_is_in_the_reference() -> None:
    for option in OPTIONS:
        assert f"`{option}`" in page("reference/channels.md")


@pytest.mark.parametrize("command", ["migrate", "demo"])
def test_every_option_of_a_command_is_in_the_reference(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run([command, "--help"])
    options = {word for word in capsys.readouterr().out.split() if word.startswith("--")}
    documented = page("reference/cli.md").partition(f"## `carrick {command}`")[2].partition("\n## ")[0]
    assert options
    for option in options:
        assert f"`{option}" in documented


@pytest.mark.parametrize("group", ["osm", "clients", "keys"])
def test_every_command_of_the_scoreboard_is_in_the_reference(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run([group, "--help"])
    names = re.findall(r"^│ (\w+) ", capsys.readouterr().out, re.MULTILINE)
    documented = page("reference/cli.md").partition(f"## `carrick {group}`")[2].partition("\n## ")[0]
    assert names
    for name in names:
        assert f"| `{name}" in documented


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_of_the_osm_simulator_is_in_the_reference(kind: Kind) -> None:
    done = "yes" if kind in APPLIED else "no"
    assert f"| `{kind}` | {MEANINGS[kind]} | {done} |" in page("reference/osm-simulator.md")


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_of_the_osm_simulator_is_in_the_reference_with_its_fields(action: str) -> None:
    rows = page("reference/osm-simulator.md").splitlines()
    fields = next(row for row in rows if row.startswith(f"| `{action}` |")).split("|")[2]
    if action not in ("fault", "hold"):
        named = {field.strip("` ") for field in fields.split(",")}
        assert named == {field.name for field in msgspec.structs.fields(ACTIONS[action])}


def test_every_option_of_the_osm_simulator_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.run(["--help"])
    options = {word.strip("[],") for word in capsys.readouterr().out.split() if word.strip("[").startswith("--")}
    assert options
    for option in options - {"--help"}:
        assert f"| `{option} " in page("reference/osm-simulator.md")


def test_every_user_of_the_osm_simulator_is_in_the_reference() -> None:
    text = page("reference/osm-simulator.md")
    assert f"`{PASSWORD}`" in text
    for user in seeded(date(2026, 3, 2)).users.values():
        assert f"| {user.full_name} | {user.user_id} |" in text
