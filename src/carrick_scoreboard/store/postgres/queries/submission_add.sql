-- Remembers a submission; no row when the user has used that key: then it is looked at.
insert into carrick.score_submissions (osm_user_id, key, body_digest, section_id, batch_id, created_at)
values (%(osm_user_id)s, %(key)s, %(body_digest)s, %(section_id)s, %(batch_id)s, carrick.clock())
on conflict (osm_user_id, key) do nothing
returning id, osm_user_id, key, body_digest, section_id, batch_id::text as batch_id, created_at
