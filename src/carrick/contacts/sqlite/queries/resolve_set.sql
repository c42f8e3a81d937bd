-- The contact's traits; `touched` when something was given that it did not have.
update carrick_contacts
   set traits = :traits, updated_at = case when :touched then (select now from carrick_clock) else updated_at end
 where id = :contact
