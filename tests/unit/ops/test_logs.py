"""Lines of the log as a machine reads them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from carrick.ops.logs import configure_logs


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level


def test_every_line_has_its_severity_beside_its_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(logging.DEBUG)
    log = logging.getLogger("carrick.osm")
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(log, level)("osm.said", extra={"user_id": 7})
    try:
        raise ValueError("here")
    except ValueError:
        log.exception("osm.said")
    logging.getLogger("another.library").warning("in %s words", "its own")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["severity"]) for line in lines] == [
        ("debug", "DEBUG"),
        ("info", "INFO"),
        ("warning", "WARN"),
        ("error", "ERROR"),
        ("critical", "CRITICAL"),
        ("error", "ERROR"),
        ("warning", "WARN"),
    ]
    assert (lines[0]["event"], lines[0]["user_id"], lines[0]["logger"]) == ("osm.said", 7, "carrick.osm")
