-- The settings of these sections.
select section_id, patrol_colors::text as patrol_colors, updated_at, updated_by
from carrick.section_settings where section_id = any(%(section_ids)s::bigint[])
