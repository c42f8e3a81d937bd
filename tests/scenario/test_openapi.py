"""The OpenAPI documents as a source of hostile requests: whatever they allow or forbid, nothing answers with a 500."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok

from tests.scenario.processes import ForwarderProcess, IngestProcess, ServiceProcess

EXAMPLES = 25
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
    url = f"http://127.0.0.1:{service.port}"
    schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
    tried = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
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
            case.call_and_validate(base_url=url, checks=[not_a_server_error])

        ask()
        tried += 1
    assert tried >= 5
    assert "Traceback" not in service.log
