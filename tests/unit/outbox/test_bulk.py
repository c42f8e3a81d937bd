"""Bulk puts by COPY: the text they send."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from carrick.entry import NewEntry, State
from carrick.outbox.ids import new_ids
from carrick.outbox.postgres.bulk import CHUNK_ROWS, copy_steps
from carrick.outbox.puts import Puts
from carrick.outbox.statement import Copy

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def copies(*entries: NewEntry) -> list[Copy]:
    steps = copy_steps(entries, NOW, range(1, len(entries) + 1))
    first = next(steps)
    second = steps.send([])
    assert isinstance(first, Copy)
    assert isinstance(second, Copy)
    return [first, second]


def text_of(copy: Copy) -> str:
    return b"".join(copy.texts).decode()


def entry(**fields: object) -> NewEntry:
    return NewEntry(**{"channel": "c", "event_type": "e", "payload": b"1"} | fields)  # type: ignore[arg-type]


def test_ids_are_uuids_of_version_7_and_of_that_moment() -> None:
    made = [UUID(text) for text in new_ids(NOW, 1000)]
    assert len(set(made)) == 1000
    assert {made_id.version for made_id in made} == {7}
    assert {made_id.variant for made_id in made} == {"specified in RFC 4122"}
    assert {made_id.int >> 80 for made_id in made} == {int(NOW.timestamp() * 1000)}


def test_what_copy_would_read_as_structure_is_escaped() -> None:
    record, _ = copies(entry(payload=b'{"a":\t"\\n"\n}\r', tenant_id="t\\N"))
    fields = dict(zip(record.columns, text_of(record).rstrip("\n").split("\t"), strict=True))
    assert fields["payload"] == r'{"a":\t"\\n"\n}\r'
    assert fields["tenant_id"] == r"t\\N"


def test_columns_that_every_entry_leaves_at_its_default_are_not_sent() -> None:
    record, work = copies(entry(), entry())
    assert record.columns == ("id", "seq", "channel", "event_type", "payload", "payload_size_bytes", "created_at")
    assert "max_wait_at" not in work.columns


def test_many_rows_come_in_pieces_and_none_is_missing() -> None:
    record, work = copies(*[entry(payload=str(n).encode()) for n in range(2 * CHUNK_ROWS + 1)])
    at = record.columns.index("payload")
    texts = list(record.texts)
    rows = [row for text in texts for row in text.decode().splitlines()]
    assert len(texts) == 3
    assert [row.split("\t")[at] for row in rows] == [str(n) for n in range(2 * CHUNK_ROWS + 1)]
    assert len(text_of(work).splitlines()) == 2 * CHUNK_ROWS + 1


def test_one_entry_with_a_field_sends_the_column_for_all() -> None:
    record, work = copies(entry(), entry(group_key="g"))
    at = work.columns.index("group_key")
    assert [row.split("\t")[at] for row in text_of(work).splitlines()] == [r"\N", "g"]
    assert "group_key" in record.columns


@pytest.mark.parametrize(
    ("fields", "due", "rank"),
    [
        ({}, "2026-05-01T12:00:00+00:00", "2026-05-01T12:00:00+00:00"),
        ({"priority": 6}, "2026-05-01T12:00:00+00:00", "2026-05-01T11:00:00+00:00"),
        ({"delay_seconds": 60.0}, "2026-05-01T12:01:00+00:00", "2026-05-01T12:01:00+00:00"),
        ({"delay_seconds": 60.0, "max_wait_seconds": 30.0}, "2026-05-01T12:00:30+00:00", "2026-05-01T12:00:30+00:00"),
    ],
)
def test_due_and_rank_follow_the_clock_the_delay_and_the_priority(
    fields: dict[str, object], due: str, rank: str
) -> None:
    _, work = copies(entry(**fields))
    row = dict(zip(work.columns, text_of(work).rstrip("\n").split("\t"), strict=True))
    assert (row["due"], row["rank"]) == (due, rank)


def test_the_answers_are_made_when_looked_at() -> None:
    ids = new_ids(NOW, 3)
    puts = Puts(ids)
    assert [put.id for put in puts] == [UUID(text) for text in ids]
    assert puts[1].created
    assert puts[-1].state is State.PENDING
    assert [put.id for put in puts[1:]] == [UUID(text) for text in ids[1:]]
    assert puts == list(puts)
