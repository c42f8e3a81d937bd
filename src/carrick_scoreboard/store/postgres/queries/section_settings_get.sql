-- The settings of a section.
select section_id, patrol_colors::text as patrol_colors, updated_at, updated_by
from carrick.section_settings where section_id = %(section_id)s
