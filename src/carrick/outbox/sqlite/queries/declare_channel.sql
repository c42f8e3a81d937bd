-- Creates a channel or changes its options. The caller has refused another mode while entries live; triggers count its bytes.
insert into carrick_channel (name, mode, one_tenant, fair, batch_rows, batch_bytes, lease_seconds, max_attempts,
                             backoff_base_seconds, backoff_cap_seconds, max_payload_bytes, max_backlog_bytes, on_full,
                             retention_days, dead_retention_days, remember_keys_days, said, declared_at)
values (:name, :mode, :one_tenant, :fair, :batch_rows, :batch_bytes, :lease_seconds, :max_attempts,
        :backoff_base_seconds, :backoff_cap_seconds, :max_payload_bytes, :max_backlog_bytes, :on_full,
        :retention_days, :dead_retention_days, :remember_keys_days, :said, (select now from carrick_clock))
on conflict (name) do update
  set mode = excluded.mode, one_tenant = excluded.one_tenant, fair = excluded.fair, batch_rows = excluded.batch_rows,
      batch_bytes = excluded.batch_bytes, lease_seconds = excluded.lease_seconds, max_attempts = excluded.max_attempts,
      backoff_base_seconds = excluded.backoff_base_seconds, backoff_cap_seconds = excluded.backoff_cap_seconds,
      max_payload_bytes = excluded.max_payload_bytes, max_backlog_bytes = excluded.max_backlog_bytes,
      on_full = excluded.on_full, retention_days = excluded.retention_days,
      dead_retention_days = excluded.dead_retention_days, remember_keys_days = excluded.remember_keys_days,
      said = excluded.said
