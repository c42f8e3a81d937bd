-- Lets a device application in; no row when its id is taken.
insert into carrick.device_clients (client_id, comment, email, created_at)
values (%(client_id)s, %(comment)s, %(email)s, carrick.clock())
on conflict do nothing
returning client_id
