-- What one entry carries, its payload up to so many characters and one more: who gets that one knows that there is more.
select seq, key, substr(payload, 1, :characters + 1), headers, payload_size_bytes, priority, traceparent, occurred_at
  from carrick_record
 where id = :id
