-- What one entry carries, its payload up to so many characters and one more: who gets that one knows that there is more.
select seq, key, left(payload::text, %(characters)s::int + 1), headers, payload_size_bytes, priority, traceparent, occurred_at
  from carrick.record
 where id = %(id)s::uuid
