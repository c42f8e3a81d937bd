-- The section that a leader works with.
update carrick.web_sessions set selected_section_id = %(section_id)s where session_digest = %(session_digest)s
