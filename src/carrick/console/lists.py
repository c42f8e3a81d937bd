"""Lists of entries, searches, and what dead entries died of. Each blocks on the store: call it in a thread."""

from __future__ import annotations

from carrick.console.answers import DeadLook, DeadQuery, EntriesQuery, EntryLines, Hit, Search, SearchQuery
from carrick.entry import Line, State
from carrick.outbox.store import MOST_DEAD, Store

LOOK_ROWS = 5_000
"""So many entries are looked at for those with certain words or of one reason; then the list ends, short."""
STEP_ROWS = 200
OLDEST = 5


def listed(store: Store, asked: EntriesQuery) -> EntryLines:
    """Entries page by page. Where words or a reason are given, those that fit among the next LOOK_ROWS."""
    state = None if asked.state is None else State.parse(asked.state)
    words = asked.words.casefold().split()
    narrowed = bool(words) or asked.reason is not None
    lines: list[Line] = []
    after, looked, step = asked.after, 0, STEP_ROWS if narrowed else asked.limit
    while True:
        page = store.entries(asked.channel, state=state, tenant=asked.tenant, max_rows=step, after=after)
        lines += [line for line in page.lines if _fits(line, asked.reason, words)]
        after, looked = page.next, looked + step
        if not narrowed or after is None or len(lines) >= asked.limit or looked >= LOOK_ROWS:
            return EntryLines(entries=lines, next=after)


def searched(store: Store, asked: SearchQuery) -> Search:
    """Entries in any state that the text names. Raises InvalidInput."""
    text = asked.text.strip()
    found = store.find(text, tenant=asked.tenant, max_rows=asked.limit)
    return Search(
        hits=[Hit(matches=_matches(line, text), entry=line) for line in found.lines],
        cut=found.cut,
        tenants_unseen=found.tenants_unseen,
        ended_unseen=found.ended_unseen,
    )


def dead_look(store: Store, asked: DeadQuery) -> DeadLook:
    """What the dead entries of a channel died of. Raises UnknownChannel."""
    at = store.now()
    causes = store.dead(asked.channel, reason=asked.reason)
    oldest = EntriesQuery(channel=asked.channel, state=State.DEAD, reason=asked.reason, limit=OLDEST)
    return DeadLook(
        at=at,
        count=sum(cause.count for cause in causes),
        counted_up_to=MOST_DEAD,
        causes=causes,
        oldest=listed(store, oldest).entries[:OLDEST] if causes else (),
    )


def _fits(line: Line, reason: str | None, words: list[str]) -> bool:
    if reason is not None and line.dlq_reason != reason:
        return False
    shown = (
        line.id,
        line.tenant_id,
        line.event_type,
        line.key,
        line.group_key,
        line.dlq_reason,
        line.last_error_code,
        line.last_error_message,
    )
    text = " ".join(str(part) for part in shown if part is not None).casefold()
    return all(word in text for word in words)


def _matches(line: Line, text: str) -> list[str]:
    names = {"id": str(line.id), "key": line.key, "group": line.group_key, "tenant": line.tenant_id}
    found = [name for name, value in names.items() if value == text]
    return found or ["id"]  # an id may be written otherwise
