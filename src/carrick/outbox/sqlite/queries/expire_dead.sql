-- Those of the entries that have been alone with a dying worker too often.
select seq from carrick_trouble where seq in (select value from json_each(:seqs)) and crash_count >= :crashes
