-- Lets a device application in; no row when its id is taken.
insert into carrick_device_clients (client_id, comment, email, created_at)
values (:client_id, :comment, :email, (select now from carrick_clock))
on conflict do nothing
returning client_id
