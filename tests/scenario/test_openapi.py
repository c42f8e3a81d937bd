"""The OpenAPI documents as a source of hostile requests: whatever they allow or forbid, nothing answers with a 500."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.leaders import COOKIE, MARK, PLACE
from carrick_scoreboard.own_keys import OwnKeys
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials, WritableSection
from carrick_scoreboard.store.sessions import Sessions
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.web_security import new_secret
from tests.scenario.processes import ForwarderProcess, IngestProcess, ServiceProcess

EXAMPLES = 12
"""Requests per endpoint."""


BOARD = {
    "DATABASE_URL": "sqlite:///board.db",
    "OSM_CLIENT_ID": "x",
    "OSM_CLIENT_SECRET": "y",
    "OSM_DOMAIN": "http://127.0.0.1:9",
}


@pytest.fixture(scope="module", params=["forward", "ingest", "scoreboard"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Each service, with everything that it can be asked."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    admin = {"SYNC_FORWARDER_MODE": "noop", "INTERNAL_ADMIN_ENABLED": "true"}
    made: ServiceProcess = ServiceProcess("scoreboard", folder, **BOARD)
    if request.param == "ingest":
        made = IngestProcess(folder, "sqlite:///ingest.db")
    elif request.param == "forward":
        made = ForwarderProcess(folder, "sqlite:///edge.db", "http://127.0.0.1:9/batch", **admin)
    with made:
        made.wait_ready()
        yield made


def test_no_request_that_the_document_describes_or_bends_is_answered_with_a_500(service: ServiceProcess) -> None:
    ask_everything(service, {})


def test_no_request_of_a_leader_who_is_signed_in_is_answered_with_a_500(tmp_path: Path) -> None:
    """OSM is not there: that may be said with a 502, and nothing else may go wrong."""
    with ServiceProcess("scoreboard", tmp_path, **BOARD) as board:
        board.wait_ready()
        ask_everything(board, signed_in(tmp_path), only="/api/admin", allowed=("upstream_error",))


def signed_in(folder: Path) -> dict[str, str]:
    """The headers of a leader, whose session is put into the database by hand."""
    keys, secret = OwnKeys(folder / "board.db.key"), new_secret()
    with closing(SqliteTables(folder / "board.db")) as tables:
        section = WritableSection(id=40104, name="Scouts", group_name="1st Ashmere")
        tokens = SealedTokens(keys.seal("a", place_of(7, "access")), keys.seal("r", place_of(7, "refresh")), 3600)
        StoredCredentials(tables).save(7, "Ann", "", tokens, [section])
        Sessions(tables).add(digest(secret), 7)
    session = {"Cookie": f"{COOKIE}={secret}", MARK: keys.mark(secret, PLACE)}
    return {**session, "X-Idempotency-Key": "fuzzed", "X-Sync-Mode": "background"}


def ask_everything(
    service: ServiceProcess, headers: dict[str, str], only: str = "", allowed: tuple[str, ...] = ()
) -> None:
    """Requests to every endpoint that begins so; a 5xx may only say one of the allowed errors."""
    url = f"http://127.0.0.1:{service.port}"
    schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
    tried = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        if not operation.path.startswith(only):
            continue
        strategy = operation.as_strategy() | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def ask(case: schemathesis.Case[Any]) -> None:
            answer = case.call(base_url=url, headers=headers)
            if answer.status_code >= 500:
                assert answer.json()["error"] in allowed, (case, answer.text)

        ask()
        tried += 1
    assert tried >= 5
    assert "Traceback" not in service.log
