-- Messages of all topics after a number, in order: holes in the numbers show what was removed meanwhile.
select id, topic, text from carrick_state_message where id > :after order by id
