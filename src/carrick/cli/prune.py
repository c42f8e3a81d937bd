"""`carrick prune`: remove what is past its retention, now."""

from __future__ import annotations

from carrick import wiring
from carrick.cli.printing import AsJson, print_json, print_line
from carrick.errors import UnknownChannel
from carrick.settings import read_settings


def prune(*, channel: str | None = None, as_json: AsJson = False, database: str | None = None) -> int:
    """Remove delivered and dead entries past their retention, and events of the inbox past theirs.

    Services do this by themselves, one replica at a time. What waits or is claimed is never touched.

    Parameters
    ----------
    channel
        Only this channel's entries.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    settings = read_settings()
    url = database or settings.database_url
    with wiring.opened_store(url) as store:
        known = sorted(store.channels())
        if channel is not None and channel not in known:
            raise UnknownChannel(channel, known)
        removed = {name: wiring.prune_channel(store, name, settings) for name in ([channel] if channel else known)}
    events = wiring.prune_inbox(url, settings.ingest.retention_days) if channel is None else 0
    if as_json:
        print_json({"channels": removed, "inbox": events})
        return 0
    for name, count in removed.items():
        print_line(f"{name}: removed {count}")
    if channel is None:
        print_line(f"inbox: removed {events}")
    return 0
