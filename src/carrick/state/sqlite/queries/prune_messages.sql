-- Keeps the last messages only. A subscriber that is further behind sees a hole in the numbers.
delete from carrick_state_message where id <= :newest - :kept
