-- Writes a message down for those who watch the file; its number.
insert into carrick_state_message (topic, text) values (:topic, :text) returning id
