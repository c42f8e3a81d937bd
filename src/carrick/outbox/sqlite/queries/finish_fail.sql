-- The channel's last error, for people who look.
update carrick_channel set last_error_at = :now where name = :channel
