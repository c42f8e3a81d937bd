-- A user's updates that are neither applied nor discarded, the oldest first.
select * from carrick_score_update_state
where osm_user_id = :osm_user_id and applied_at is null and discarded_at is null
order by id limit :limit
