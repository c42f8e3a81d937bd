"""The SQL of two outbox documents runs in psql as it is written there, with the results that they state."""

from __future__ import annotations

import subprocess

import pytest

from tests.scenario.psql import Terminal, at_once, command, psql
from tests.scenario.test_examples import examples

ONE = "11111111-1111-1111-1111-111111111111"
TWO = "22222222-2222-2222-2222-222222222222"

OUT_OF_ORDER = """
-- Insert test events out of order
INSERT INTO outbox (topic, payload, created_at)
VALUES 
  ('test', '{"seq": 3}'::jsonb, now() - interval '1 hour'),
  ('test', '{"seq": 1}'::jsonb, now() - interval '3 hours'),
  ('test', '{"seq": 2}'::jsonb, now() - interval '2 hours');
"""  # noqa: W291  as it is written

RETENTION = """
DELETE FROM public.outbox
WHERE delivered_at IS NOT NULL
  AND delivered_at < NOW() - INTERVAL '7 days';
"""

CLAIM_BODY = """
WITH to_claim AS (
  SELECT id
  FROM public.outbox
  WHERE delivered_at IS NULL
    AND processing_token IS NULL
    AND (p_tenant IS NULL OR tenant_id = p_tenant)
  ORDER BY created_at ASC
  LIMIT p_limit
  FOR UPDATE SKIP LOCKED  -- Key for concurrency safety
)
UPDATE public.outbox o
   SET processing_token = p_token
  FROM to_claim c
 WHERE o.id = c.id
 RETURNING o.*;
"""

DELIVERED_BODY = """
UPDATE public.outbox o
   SET delivered_at = NOW(),
       attempts = COALESCE(o.attempts, 0) + 1,
       processing_token = NULL
 WHERE o.id = ANY(p_ids)
   AND o.processing_token = p_token;

SELECT COUNT(*)::int FROM public.outbox
 WHERE id = ANY(p_ids) AND delivered_at IS NOT NULL;
"""

SYNC_CLAIM = """
WITH candidates AS (
  SELECT id FROM sync_outbox
  WHERE status IN ('pending', 'claimed')
    AND next_attempt_at <= NOW()
    AND (claimed_by IS NULL OR lease_expires_at < NOW())
  ORDER BY priority DESC, occurred_at ASC
  LIMIT $batchSize
  FOR UPDATE SKIP LOCKED
)
UPDATE sync_outbox o
SET status = 'claimed', claimed_by = $instanceId, ...
FROM candidates c WHERE o.id = c.id
RETURNING o.*;
"""

REST_OF_THE_CLAIM = "claimed_at = NOW(), lease_expires_at = NOW() + INTERVAL '120 seconds'"

MONITOR = """
   SELECT status, attempt_count, next_attempt_at, last_error_code
   FROM sync_outbox
   WHERE status IN ('pending', 'dlq')
   ORDER BY attempt_count DESC;
"""

STUCK = """
   -- Manually set lease_expires_at in past
   UPDATE sync_outbox 
   SET lease_expires_at = NOW() - INTERVAL '1 minute'
   WHERE claimed_by = 'dead-pod-1';
"""  # noqa: W291  as it is written

ADDED_COLUMNS = """
next_attempt_at claimed_by claimed_at lease_expires_at attempt_count last_attempt_at last_error_code last_error_message
failed_at dlq_reason priority payload_size_bytes
"""


@pytest.fixture
def url(compat_url: str) -> str:
    """A database with the views."""
    return compat_url


def seed_outbox(url: str, count: int) -> None:
    psql(url, f"INSERT INTO outbox (topic, payload) SELECT 'test', '{{}}' FROM generate_series(1, {count});")


def seed_sync_outbox(url: str, count: int) -> None:
    """Seed test data, the way the document does it."""
    row = """(gen_random_uuid(), 'tenant-1', 'test.event', 'pending', NOW(), '{"test": 1}')"""
    psql(
        url,
        f"""
   INSERT INTO sync_outbox (id, tenant_id, event_type, status, next_attempt_at, payload_json)
   VALUES 
     {", ".join([row] * count)}
""",  # noqa: W291  as it is written
    )


def sync_claim(worker: str, size: int) -> str:
    """The document's claim, with its three gaps filled."""
    filled = SYNC_CLAIM.replace("$batchSize", str(size)).replace("$instanceId", f"'{worker}'")
    return filled.replace("...", REST_OF_THE_CLAIM)


def ids_of(lines: list[str]) -> list[str]:
    return [line.partition("|")[0] for line in lines]


def number(url: str, query: str) -> int:
    return int(psql(url, query)[0])


# Outbox Claim Hardening


def test_smoke_1_a_claim_returns_the_oldest_first(url: str) -> None:
    lines = psql(
        url,
        OUT_OF_ORDER
        + """
-- Claim should return oldest first
SELECT app.outbox_claim(10, gen_random_uuid(), null);
-- Expected: seq 1, 2, 3 (oldest to newest)
""",
    )
    assert [line.split('"{""seq"": ')[1][0] for line in lines] == ["1", "2", "3"]


def test_smoke_2_claims_of_two_terminals_do_not_overlap(url: str) -> None:
    seed_outbox(url, 10)
    claims = [f"SELECT id FROM app.outbox_claim(5, '{token}', null);" for token in (ONE, TWO)]
    first = subprocess.run(command(url, "-c", claims[0]), capture_output=True, text=True, check=True).stdout.split()
    second = subprocess.run(command(url, "-c", claims[1]), capture_output=True, text=True, check=True).stdout.split()
    assert len(first) == len(second) == 5
    assert not set(first) & set(second)


def test_smoke_2_a_claim_neither_waits_for_one_that_is_not_committed_nor_overlaps_it(url: str) -> None:
    seed_outbox(url, 10)
    with Terminal(url) as terminal:
        first = terminal.run(f"BEGIN; SELECT id FROM app.outbox_claim(5, '{ONE}', null);")
        second = psql(url, f"SET lock_timeout = '10s'; SELECT id FROM app.outbox_claim(6, '{TWO}', null);")
        terminal.run("COMMIT;")
    assert len(first) == len(second) == 5
    assert not set(first) & set(second)


def test_smoke_3_finalizing_needs_the_token_of_the_claim(url: str) -> None:
    seed_outbox(url, 7)
    lines = psql(
        url,
        """
-- Claim rows
SELECT id FROM app.outbox_claim(5, 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', null);

-- Try to finalize with wrong token
SELECT app.outbox_mark_delivered('bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb', 
  ARRAY(SELECT id FROM outbox WHERE processing_token = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa')
);
-- Expected: 0 rows delivered (token mismatch)

-- Finalize with correct token
SELECT app.outbox_mark_delivered('aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', 
  ARRAY(SELECT id FROM outbox WHERE processing_token = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa')
);
-- Expected: N rows delivered
""",  # noqa: W291  as it is written
    )
    assert lines[5:] == ["0", "5"]
    assert number(url, "SELECT count(*) FROM outbox WHERE delivered_at IS NOT NULL") == 5


def test_the_retention_policy_removes_what_was_delivered_a_week_ago(url: str) -> None:
    seed_outbox(url, 3)
    psql(url, OUT_OF_ORDER)
    psql(url, "UPDATE outbox SET delivered_at = now() - interval '8 days' WHERE payload = '{}';")
    psql(url, """UPDATE outbox SET delivered_at = now() - interval '6 days' WHERE payload = '{"seq": 1}';""")
    psql(url, RETENTION)
    assert psql(url, "SELECT payload->>'seq' FROM outbox ORDER BY 1") == ["1", "2", "3"]
    assert number(url, "SELECT count(*) FROM carrick.record") == 3


def test_the_retention_policy_runs_from_a_cron_in_the_database(url: str) -> None:
    psql(
        url,
        """
CREATE SCHEMA IF NOT EXISTS cron;
CREATE OR REPLACE FUNCTION cron.schedule(name text, at text, command text) RETURNS void LANGUAGE plpgsql
  AS 'BEGIN EXECUTE command; END'; -- a cron whose hour has come
""",
    )
    seed_outbox(url, 3)
    psql(url, "UPDATE outbox SET delivered_at = now() - interval '8 days';")
    psql(url, f"SELECT cron.schedule('outbox-retention', '0 2 * * *', /* 2 AM daily */ $$ {RETENTION} $$);")
    assert psql(url, "SELECT count(*) FROM outbox") == ["0"]


FINISH_MANY = """
SELECT count(*)
  FROM (SELECT DISTINCT lease_token FROM carrick.claim('events', 'w', 10000, 1000000000)) claimed,
       carrick.finish_all(lease_token)"""


def test_the_nightly_command_for_a_cron_in_the_database_removes_everything_past_its_retention(url: str) -> None:
    nightly = examples("docs/how-to/drain-to-kafka.md", "sql")[0].split("$job$")[1]
    psql(url, """SELECT carrick.declare_channel('events', '{"retention_days": 0}')""")
    psql(url, "SELECT count(carrick.put('events', 'e', '{}')) FROM generate_series(1, 20001)")
    psql(url, FINISH_MANY)
    psql(url, FINISH_MANY)
    psql(url, nightly)
    assert number(url, "SELECT count(*) FROM carrick.record WHERE channel = 'events'") == 1


@pytest.fixture
def hand_written(url: str) -> str:
    """A database in which the bodies that the document gives for its functions are functions."""
    psql(
        url,
        f"""
CREATE OR REPLACE FUNCTION claim(p_limit int, p_token uuid, p_tenant uuid) RETURNS SETOF public.outbox
  LANGUAGE sql AS $$ {CLAIM_BODY} $$;
CREATE OR REPLACE FUNCTION mark_delivered(p_token uuid, p_ids uuid[]) RETURNS int
  LANGUAGE sql AS $$ {DELIVERED_BODY} $$;
""",
    )
    return url


def test_the_body_of_the_claim_function_takes_the_oldest_under_a_lease(hand_written: str) -> None:
    psql(hand_written, OUT_OF_ORDER)
    taken = psql(hand_written, f"SELECT payload->>'seq' FROM claim(2, '{ONE}', null)")
    assert sorted(taken) == ["1", "2"]
    leases = psql(hand_written, "SELECT token, units, cardinality(ids), expires_at > now() FROM carrick.lease")
    assert leases == [f"{ONE}|2|2|t"]


def test_the_body_of_the_claim_function_skips_rows_that_another_transaction_has_locked(hand_written: str) -> None:
    seed_outbox(hand_written, 10)
    with Terminal(hand_written) as terminal:
        first = terminal.run(f"BEGIN; SELECT id FROM claim(5, '{ONE}', null);")
        second = psql(hand_written, f"SET lock_timeout = '10s'; SELECT id FROM claim(5, '{TWO}', null);")
        terminal.run("COMMIT;")
    assert len(first) == len(second) == 5
    assert not set(first) & set(second)


def test_the_body_of_the_delivered_function_finishes_what_the_token_holds(hand_written: str) -> None:
    seed_outbox(hand_written, 4)
    psql(hand_written, f"SELECT id FROM claim(3, '{ONE}', null)")
    held = f"ARRAY(SELECT id FROM outbox WHERE processing_token = '{ONE}')"
    assert psql(hand_written, f"SELECT mark_delivered('{TWO}', {held})") == ["0"]
    assert psql(hand_written, f"SELECT mark_delivered('{ONE}', {held})") == ["3"]
    entries = psql(hand_written, "SELECT state, attempt_count FROM carrick.entry ORDER BY seq")
    assert entries == [*["delivered|1"] * 3, "pending|0"]


# Edge Sync Forwarder


def test_the_columns_that_the_forwarder_migration_adds_are_there(url: str) -> None:
    assert psql(url, f"SELECT {', '.join(ADDED_COLUMNS.split())} FROM sync_outbox") == []


def test_each_seeded_row_is_claimed_by_exactly_one_replica_and_acked_once(url: str) -> None:
    seed_sync_outbox(url, 200)
    for _ in range(20):
        claimed = at_once(url, [sync_claim(f"pod-{n}", 25) for n in range(3)])
        for worker, lines in enumerate(claimed):
            ids = ",".join(ids_of(lines))
            mine = f"claimed_by = 'pod-{worker}' AND id = ANY('{{{ids}}}')"
            assert len(psql(url, f"UPDATE sync_outbox SET status = 'acked' WHERE {mine} RETURNING id")) == len(lines)
        if not any(claimed):
            break
    assert psql(url, "SELECT status, attempt_count, count(*) FROM sync_outbox GROUP BY 1, 2") == ["acked|1|200"]


def test_the_forwarders_claim_skips_rows_that_another_transaction_has_locked(url: str) -> None:
    seed_sync_outbox(url, 10)
    with Terminal(url) as terminal:
        first = terminal.run(f"BEGIN; {sync_claim('pod-1', 5)}")
        second = psql(url, f"SET lock_timeout = '10s'; {sync_claim('pod-2', 6)}")
        terminal.run("COMMIT;")
    assert len(first) == len(second) == 5
    assert not set(ids_of(first)) & set(ids_of(second))


def test_the_forwarders_claim_neither_waits_for_the_engines_claim_nor_overlaps_it(url: str) -> None:
    seed_sync_outbox(url, 10)
    with Terminal(url) as terminal:
        first = terminal.run("BEGIN; SELECT id FROM carrick.claim('cloud', 'pod-1', 5);")
        second = psql(url, f"SET lock_timeout = '10s'; {sync_claim('pod-2', 10)}")
        terminal.run("COMMIT;")
    assert len(first) == len(second) == 5
    assert not set(first) & set(ids_of(second))


def test_the_forwarders_claim_makes_one_lease_that_the_engine_can_finish(url: str) -> None:
    seed_sync_outbox(url, 8)
    psql(url, sync_claim("pod-1", 5))
    assert psql(url, "SELECT owner, units, bytes, cardinality(seqs) FROM carrick.lease") == ["pod-1|5|55|5"]
    finished = psql(url, "SELECT (carrick.finish_all(token)).state FROM (SELECT DISTINCT token FROM carrick.lease) l")
    assert finished == ["delivered"] * 5


def test_a_failing_row_shows_its_attempts_and_lands_in_the_dlq_after_ten(url: str) -> None:
    seed_sync_outbox(url, 1)
    for attempt in range(1, 11):
        psql(url, "UPDATE sync_outbox SET next_attempt_at = NOW();")
        psql(url, sync_claim("pod-1", 1))
        psql(
            url,
            """
UPDATE sync_outbox SET status = 'pending', claimed_by = NULL, claimed_at = NULL, lease_expires_at = NULL,
  attempt_count = attempt_count + 1, last_attempt_at = NOW(), last_error_code = '500', last_error_message = 'no'
WHERE claimed_by = 'pod-1';
""",
        )
        status, attempts, due, code = psql(url, MONITOR)[0].split("|")
        assert (status, attempts, code) == ("dlq" if attempt == 10 else "pending", str(attempt), "500")
        assert bool(due) == (attempt < 10)
    assert psql(url, "SELECT dlq_reason, failed_at IS NOT NULL FROM sync_outbox") == ["max_attempts|t"]


def test_the_next_attempt_comes_later_after_each_failure(url: str) -> None:
    seed_sync_outbox(url, 1)
    waits = []
    for _ in range(3):
        psql(url, "UPDATE sync_outbox SET next_attempt_at = NOW();")
        psql(url, sync_claim("pod-1", 1))
        psql(url, "UPDATE sync_outbox SET status = 'pending', attempt_count = attempt_count + 1;")
        wait = psql(url, "SELECT extract(epoch from next_attempt_at - last_attempt_at) FROM sync_outbox")
        waits.append(float(wait[0]))
    assert 0.5 <= waits[0] <= 1
    assert 1 <= waits[1] <= 2
    assert 2 <= waits[2] <= 4


def test_redriven_rows_are_pending_with_no_attempts(url: str) -> None:
    seed_sync_outbox(url, 3)
    psql(url, "UPDATE sync_outbox SET status = 'dlq', dlq_reason = 'max attempts exceeded';")
    assert psql(url, "SELECT DISTINCT status, dlq_reason FROM sync_outbox") == ["dlq|max attempts exceeded"]
    psql(url, "UPDATE sync_outbox SET status = 'pending', attempt_count = 0 WHERE status = 'dlq';")
    redriven = psql(url, "SELECT status, attempt_count, dlq_reason, count(*) FROM sync_outbox GROUP BY 1, 2, 3")
    assert redriven == ["pending|0||3"]


def test_rows_of_a_stuck_lease_return_and_another_replica_takes_them(url: str) -> None:
    seed_sync_outbox(url, 4)
    psql(url, sync_claim("dead-pod-1", 4))
    assert psql(url, "SELECT carrick.release_expired('cloud')") == ["0"]
    psql(url, STUCK)
    assert psql(url, "SELECT carrick.release_expired('cloud', 300)") == ["0"]
    assert psql(url, "SELECT carrick.release_expired('cloud')") == ["4"]
    assert psql(url, "SELECT DISTINCT status, claimed_by FROM sync_outbox") == ["pending|"]
    assert len(psql(url, sync_claim("pod-2", 4))) == 2  # at most half of what a worker died with
    assert len(psql(url, sync_claim("pod-3", 4))) == 2


def test_the_forwarders_claim_takes_over_a_stuck_lease_by_itself(url: str) -> None:
    seed_sync_outbox(url, 4)
    psql(url, sync_claim("dead-pod-1", 4))
    psql(url, STUCK)
    taken = psql(url, sync_claim("pod-2", 4))
    assert len(taken) == 2
    claimed = psql(
        url, "SELECT claimed_by, lease_expires_at > NOW(), count(*) FROM sync_outbox GROUP BY 1, 2 ORDER BY 1"
    )
    assert claimed == ["pod-2|t|2", "||2"]
