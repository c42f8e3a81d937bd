"""Writes the pages of the reference that the code itself can tell: commands, HTTP, SQL functions, log events.

`make docs` runs it; a test fails while a page is not what it would write.
"""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import sys
import tempfile
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console

from carrick import wiring
from carrick.cli import app as carrick_app
from carrick.relay.meter import NoMeter
from carrick.settings import Service, read_settings
from carrick.web.called_drain import CalledDrain
from carrick.web.routes import Call
from carrick.web.tokens import AdminToken
from carrick_scoreboard import wiring as scoreboard_wiring
from carrick_scoreboard.settings import read_scoreboard_settings

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
NO_FILE = Path("no .env file")
NO_CALL: Call[Any, Any] = Call(query=None, body=None, raw=b"", headers={}, request=None)
MADE = "<!-- Made by `make docs` from the code: change it there. -->"
FUNCTION = re.compile(r"^create (?:or replace )?function (?P<name>(?:carrick|app)\.[a-z]\w*)\s*\(", re.MULTILINE)
EVENT = re.compile(r"[a-z_]+\.[a-z_]+")
SERVICES: tuple[Service, ...] = ("forward", "ingest", "scoreboard", "drain")
"""Those with an OpenAPI document."""
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")

MEANINGS = {
    "carrick.clock": "the one clock of the outbox",
    "carrick.declare_channel": "declares a channel, or changes the options that are given",
    "carrick.put": "puts an entry, in the caller's transaction",
    "carrick.claim": "takes what is due, for the time of a lease",
    "carrick.renew": "lengthens the lease; false when it is lost",
    "carrick.note": "writes down what a delivery is about to do",
    "carrick.finish": "says what became of each entry",
    "carrick.finish_all": "says that all were delivered",
    "carrick.release": "gives entries back unspent",
    "carrick.release_expired": "takes entries back from leases that have ended, before a claim does",
    "carrick.close_gate": "holds a channel, a tenant or a principal",
    "carrick.fail_gate": "counts a failure of the destination and closes the gate for a while",
    "carrick.open_gate": "lets what a gate held go on",
    "carrick.redrive": "sends dead entries round again",
    "carrick.discard": "removes dead entries for good",
    "carrick.prune": "removes ended entries past their retention, 10,000 at most",
    "carrick.ingest_batch": "stores what is new of a batch of events, and relays it",
    "carrick.prune_inbox": "removes events past their retention",
    "carrick.resolve_contact": "the one contact that the identities belong to: found, made or merged",
    "carrick.resolve_contacts": "resolves the contacts of many events at once",
    "carrick.living_contact": "the contact that a merged one became",
    "carrick.enable_row_security": "lets a session see the contacts of its own tenant only",
    "carrick.disable_row_security": "lets every session see all contacts again",
    "carrick.uuid7": "an id in the order of time",
    "app.outbox_claim": "a claim by the names of other outboxes",
    "app.outbox_mark_delivered": "a finish by the names of other outboxes",
}
"""What each public function does. One that is missing here stops the generator."""


def main() -> int:
    for page, write in PAGES.items():
        (REFERENCE / page).write_text(write(), encoding="utf-8")
    sys.stdout.write(f"{len(PAGES)} pages of the reference made from the code\n")
    return 0


def commands() -> str:
    """The help of every command, as it is printed."""
    lines = ["# Command-line help", MADE, "What `--help` prints. [Commands](cli.md) says more about some of them."]
    for words in _commands(carrick_app, ("carrick",)):
        said = io.StringIO()
        carrick_app.help_print(list(words[1:]), console=Console(file=said, width=100, color_system=None))
        text = "\n".join(line.rstrip() for line in said.getvalue().strip().splitlines())
        lines.append(f"## `{' '.join(words)}`\n\n```text\n{text}\n```")
    return "\n\n".join(lines) + "\n"


def _commands(app: App, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    for name in sorted(name for name in app if not name.startswith("-")):
        yield from _commands(app[name], (*words, name))


def http() -> str:
    """Every endpoint of every service, from its own OpenAPI document."""
    lines = [
        "# HTTP endpoints",
        MADE,
        "From the OpenAPI documents that the services give at `/api/openapi.json`. More about them: "
        "[the forwarder](forwarder-api.md), [the ingest](ingest-api.md), [contacts](contacts.md).",
    ]
    for command, document in documents().items():
        lines += [f"## `carrick {command}`", document["info"]["description"], _endpoints(document)]
        for name, schema in sorted(document["components"]["schemas"].items()):
            if table := _fields(schema):
                lines += [f"### {name} (`carrick {command}`)", schema.get("description", "").strip(), table]
    return "\n\n".join(line for line in lines if line) + "\n"


def documents() -> dict[Service, dict[str, Any]]:
    """The documents of services that are started for it, on an embedded database."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "DATABASE_URL": f"sqlite:///{folder}/carrick.db",
            "CLOUD_INGESTION_URL": "http://127.0.0.1:9/",
            "INTERNAL_ADMIN_ENABLED": "true",
            "OSM_DOMAIN": "http://127.0.0.1:9",
            "OSM_CLIENT_ID": "id",
            "OSM_CLIENT_SECRET": "secret",
            "PORT": "0",
            "METRICS_PORT": "0",
        }
        return {name: asyncio.run(_document(environment, name)) for name in SERVICES}


async def _document(environment: dict[str, str], name: Service) -> dict[str, Any]:
    settings = read_settings(environment, NO_FILE, service=name)
    service: Any
    if name == "drain":
        with wiring.opened_store(settings.database_url) as store:
            token = AdminToken(settings.admin_token)
            called = CalledDrain(store, list, wiring.relay_settings(settings), token, seconds=1, meter=NoMeter())
            described: dict[str, Any] = json.loads((await called.routes()[-1].handle(NO_CALL)).body)
            return described
    if name == "scoreboard":
        service = scoreboard_wiring.scoreboard(settings, read_scoreboard_settings(environment, NO_FILE))
    else:
        service = wiring.forwarder(settings) if name == "forward" else wiring.ingest(settings)
    stopping, port = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(service.run(stopping, lambda at, _: port.set_result(at)))
    await asyncio.wait([running, port], return_when=asyncio.FIRST_COMPLETED)
    address = f"http://127.0.0.1:{await port}/api/openapi.json"
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(address).read())
    stopping.set()
    await running
    document: dict[str, Any] = json.loads(text)
    return document


def _endpoints(document: dict[str, Any]) -> str:
    rows = ["| endpoint | does | takes | answers | refuses with |", "|---|---|---|---|---|"]
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            responses = sorted(operation["responses"].items())
            good = [f"{status} {_kind(_schema(response))}".strip() for status, response in responses if status < "400"]
            taken = [f"`{parameter['name']}`" for parameter in operation.get("parameters", [])]
            taken += [_kind(_schema(operation["requestBody"]))] if "requestBody" in operation else []
            refused = ", ".join(status for status, _ in responses if status >= "400")
            cells = (f"`{method.upper()} {path}`", operation["summary"], ", ".join(taken), ", ".join(good), refused)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _schema(holder: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = next(iter(holder.get("content", {"": {}}).values())).get("schema", {})
    return schema


def _fields(schema: dict[str, Any]) -> str:
    if not schema.get("properties"):
        return ""
    required = schema.get("required", [])
    rows = ["| field | type | needed |", "|---|---|---|"]
    for name, kind in schema["properties"].items():
        rows.append(f"| `{name}` | {_kind(kind)} | {'yes' if name in required else 'no'} |")
    return "\n".join(rows)


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any JSON value") if schema else ""


def sql() -> str:
    """Every public function of the schema on PostgreSQL."""
    script = wiring.migration_script("postgresql://nowhere/", compat=True)
    heads: dict[str, str] = {}
    for found in FUNCTION.finditer(script):
        heads[found["name"]] = _head(script, found)
    lines = [
        "# SQL functions",
        MADE,
        "On PostgreSQL, after `carrick migrate`. [Use it from SQL](../how-to/use-sql.md) shows how, with the errors. "
        "Functions whose names begin with `_` are the engine's own and change without notice.",
    ]
    if unsaid := heads.keys() - MEANINGS.keys():
        raise SystemExit(f"docs/generate.py: say in MEANINGS what these do: {', '.join(sorted(unsaid))}")
    lines += [f"## `{name}`\n\n{_sentence(MEANINGS[name])}\n\n```text\n{heads[name]}\n```" for name in sorted(heads)]
    return "\n\n".join(lines) + "\n"


def _head(script: str, found: re.Match[str]) -> str:
    """Name, parameters and result of a function, in one line where it fits."""
    end = re.compile(r"\s+(language|as)\s", re.IGNORECASE).search(script, found.end())
    text = script[found.start("name") : end.start() if end else found.end()]
    return re.sub(r"\n\s*", "\n  ", text).strip()


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def events() -> str:
    """Every event in the logs, with what it carries."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for event, level, fields in sorted(set(_logged())):
        said = ", ".join(f"`{field}`" for field in fields)
        found[event.partition(".")[0]].append(f"| `{event}` | {level} | {said} |")
    lines = [
        "# Log events",
        MADE,
        "Logs are JSON when the output is not a terminal. `event` is one of these; `timestamp`, `level`, `severity` "
        "(DEBUG, INFO, WARN, ERROR, CRITICAL) and `logger` stand beside it. No token, secret, full device code or "
        "payload is ever in a log.",
    ]
    for component, rows in sorted(found.items()):
        lines.append("\n".join([f"## {component}\n", "| event | level | with |", "|---|---|---|", *rows]))
    return "\n\n".join(lines) + "\n"


def _logged() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                name = node.args[0] if node.args else None
                if isinstance(name, ast.Constant) and isinstance(name.value, str) and EVENT.fullmatch(name.value):
                    level = "error" if node.func.attr == "exception" else node.func.attr
                    yield name.value, level, _fields_of(node)


def _fields_of(call: ast.Call) -> tuple[str, ...]:
    """The names in `extra={…}`, where they stand there."""
    extra = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
    keys = extra.keys if isinstance(extra, ast.Dict) else []
    return tuple(key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


PAGES: dict[str, Callable[[], str]] = {
    "command-help.md": commands,
    "http.md": http,
    "sql.md": sql,
    "log-events.md": events,
}


if __name__ == "__main__":
    sys.exit(main())
