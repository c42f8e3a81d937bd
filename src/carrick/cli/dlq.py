"""`carrick dlq`: look at dead entries, send them round again, or remove them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from cyclopts import App, CycloptsError, Parameter

from carrick import wiring
from carrick.cli.options import naming_options
from carrick.cli.printing import AsJson, Flag, print_json, print_line, print_table
from carrick.entry import State
from carrick.outbox.dead import discard_all
from carrick.settings import read_settings

app = App(name="dlq", help="Dead entries: look at them, send them round again, or remove them.")

Limit = Annotated[int, Parameter(name="--limit")]


@app.command(name="list")
def list_dead(
    channel: str,
    /,
    *,
    tenant: str | None = None,
    limit: Limit = 100,
    after: str | None = None,
    as_json: AsJson = False,
    database: str | None = None,
) -> int:
    """List dead entries, the oldest first.

    Parameters
    ----------
    channel
        The channel.
    tenant
        Only entries of this tenant.
    limit
        At most so many, 1 to 1000.
    after
        Go on behind an earlier list: its cursor.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with naming_options(), wiring.opened_store(database or read_settings().database_url) as store:
        page = store.entries(channel, state=State.DEAD, tenant=tenant, max_rows=limit, after=after)
    if as_json:
        print_json({"entries": page.lines, "next": page.next})
        return 0
    rows = [
        (
            line.id,
            line.tenant_id,
            line.event_type,
            line.dlq_reason,
            line.attempt_count,
            line.failed_at,
            line.last_error_code,
        )
        for line in page.lines
    ]
    columns = ("id", "tenant", "event type", "reason", "attempts", "died", "last error")
    print_table(f"Dead entries of {channel}", columns, rows, empty=f"No entry of {channel} is dead.")
    if page.next is not None:
        print_line(f"There are more: carrick dlq list {channel} --after {page.next}")
    return 0


@app.command
def show(entry_id: UUID, /, *, as_json: AsJson = False, database: str | None = None) -> int:
    """Show one entry: where it is and why.

    Parameters
    ----------
    entry_id
        The entry's id.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.open_outbox(database or read_settings().database_url) as outbox:
        standing = outbox.store.standing(entry_id)
        explanation = outbox.explain(entry_id)
    if as_json:
        print_json({"sentence": explanation.sentence, **{f: getattr(standing, f) for f in standing.__struct_fields__}})
        return 0
    print_line(explanation.sentence)
    facts = [(name, getattr(standing, name)) for name in standing.__struct_fields__]
    print_table(str(entry_id), ("what", "value"), [(n, v) for n, v in facts if v is not None], empty="")
    return 0


@app.command
def redrive(
    channel: str,
    ids: tuple[UUID, ...] = (),
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    reason: str | None = None,
    limit: Annotated[int | None, Parameter(name="--limit")] = None,
    spread: float = 60.0,
    dry_run: Flag = False,
    as_json: AsJson = False,
    database: str | None = None,
) -> int:
    """Send dead entries round again, their attempts back to 0.

    Parameters
    ----------
    channel
        The channel.
    ids
        The entries; or give --all.
    everything
        All dead entries of the channel, narrowed by --reason and --limit.
    reason
        Only those that died of this reason.
    limit
        At most so many, the oldest first.
    spread
        Over how many seconds they become due, so that the destination is not flooded.
    dry_run
        Change nothing: say how many it would be.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    if bool(ids) == everything:
        raise CycloptsError(msg="Give the ids of entries, or --all.")
    with naming_options(), wiring.opened_store(database or read_settings().database_url) as store:
        count = store.redrive(
            channel,
            ids=None if everything else list(ids),
            reason=reason,
            max_rows=limit,
            spread_seconds=spread,
            dry_run=dry_run,
        )
    if as_json:
        print_json({"redriven": count, "dry_run": dry_run})
        return 0
    print_line(f"{'would be redriven' if dry_run else 'redriven'}: {count}")
    return 0


@app.command
def discard(
    channel: str,
    ids: tuple[UUID, ...] = (),
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    reason: str | None = None,
    limit: Annotated[int | None, Parameter(name="--limit")] = None,
    dry_run: Flag = False,
    as_json: AsJson = False,
    database: str | None = None,
) -> int:
    """Remove dead entries for good. This cannot be taken back.

    Parameters
    ----------
    channel
        The channel.
    ids
        The entries; or give --all. Those that are not dead stay.
    everything
        All dead entries of the channel, narrowed by --reason and --limit.
    reason
        With --all: only those that died of this reason.
    limit
        With --all: at most so many, the oldest first.
    dry_run
        Change nothing: say how many it would be.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    if bool(ids) == everything:
        raise CycloptsError(msg="Give the ids of entries, or --all.")
    if ids and (reason is not None or limit is not None):
        raise CycloptsError(msg="--reason and --limit go with --all.")
    with naming_options(), wiring.opened_store(database or read_settings().database_url) as store:
        if dry_run:  # the dead among them, as a redrive would find them
            chosen = list(ids) if ids else None
            count = store.redrive(channel, ids=chosen, reason=reason, max_rows=limit, dry_run=True)
        elif ids:
            count = store.discard(channel, list(ids))
        else:
            count = discard_all(store, channel, reason=reason, limit=limit).entries
    if as_json:
        print_json({"discarded": count, "dry_run": dry_run})
        return 0
    print_line(f"{'would be discarded' if dry_run else 'discarded'}: {count}")
    return 0
