"""The ingest's upkeep: retention on one replica at a time."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from carrick import wiring
from carrick.relay.janitor import tidy_once
from carrick.relay.threads import Threads
from carrick.testing import SqliteClock
from tests.batches import checked, numbered, take


def test_one_replica_forgets_what_is_old_for_all(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ingest.db"
    wiring.migrate(url)
    store, inbox = wiring.open_store(url), wiring.open_inbox(url)
    take(inbox, checked(*numbered(25)))
    SqliteClock(tmp_path / "ingest.db").shift(91 * 86_400)
    prune = partial(inbox.prune, 90.0, max_rows=10)
    threads = Threads(1)

    async def story() -> tuple[int, int]:
        mine = await tidy_once(store, threads, "inbox", "replica-1", prune)
        take(inbox, checked(*numbered(3)))
        return mine, await tidy_once(store, threads, "inbox", "replica-2", partial(inbox.prune, -1.0, max_rows=10))

    assert asyncio.run(story()) == (25, 0)
    threads.close()
    store.close()
    inbox.close()
