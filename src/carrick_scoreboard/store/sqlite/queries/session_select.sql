-- The section that a leader works with.
update carrick_web_sessions set selected_section_id = :section_id where session_digest = :session_digest
