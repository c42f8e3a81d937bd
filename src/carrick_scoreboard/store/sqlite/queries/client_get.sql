-- One device application.
select client_id, comment, email, replaced_by, created_at,
       disabled_at from carrick_device_clients where client_id = :client_id
