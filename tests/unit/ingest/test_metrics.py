"""The ingest's figures for Prometheus."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from carrick import wiring
from carrick.ingest.metrics import IngestMetrics


@pytest.mark.parametrize("result", ["accepted", "duplicated", "rejected"])
def test_what_has_not_happened_yet_counts_as_zero(tmp_path: Path, result: str) -> None:
    url = f"sqlite:///{tmp_path}/ingest.db"
    wiring.migrate(url)
    with closing(wiring.open_store(url)) as store:
        text = IngestMetrics(store).text().decode()
    assert f'carrick_ingest_events_total{{result="{result}"}} 0.0' in text
