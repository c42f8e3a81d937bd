-- The settings of these sections.
select section_id, patrol_colors, updated_at, updated_by
from carrick_section_settings where section_id in (select value from json_each(:section_ids))
