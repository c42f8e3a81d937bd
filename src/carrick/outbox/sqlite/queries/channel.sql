-- One declared channel with its options.
select name, mode, one_tenant, fair, batch_rows, batch_bytes, lease_seconds, max_attempts, backoff_base_seconds,
       backoff_cap_seconds, max_payload_bytes, max_backlog_bytes, on_full, retention_days, dead_retention_days,
       remember_keys_days, said
  from carrick_channel where name = :name
