-- A merged contact becomes a tombstone.
update carrick_contacts set merged_into = :survivor, merged_at = (select now from carrick_clock) where id = :loser
