-- All device applications.
select client_id, comment, email, replaced_by, created_at,
       disabled_at from carrick_device_clients order by created_at, client_id
