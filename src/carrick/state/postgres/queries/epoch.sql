-- The epoch, and how many seconds ago it began.
select number, name, run, failures, extract(epoch from carrick.clock() - changed_at)::double precision from carrick.state_epoch
