-- Which of these event ids (a JSON array) the tenant has already.
select i.event_id
  from json_each(:event_ids) as e cross join carrick_inbox as i on i.tenant_id = :tenant_id and i.event_id = e.value
