-- How many users' sign-ins are good. One row per user: the table is small.
select count(*) as active from carrick.user_credentials where revoked_at is null
