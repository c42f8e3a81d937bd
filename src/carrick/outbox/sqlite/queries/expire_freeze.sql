-- An entry is part of a frozen batch, unless it is part of one already.
update carrick_trouble set frozen_batch = coalesce(frozen_batch, :frozen_batch) where seq = :seq
