-- How many users' sign-ins are good. One row per user: the table is small.
select count(*) as active from carrick_user_credentials where revoked_at is null
