-- Writes the settings of a section, whatever they were.
insert into carrick_section_settings (section_id, patrol_colors, updated_at, updated_by)
values (:section_id, :patrol_colors, (select now from carrick_clock), :updated_by)
on conflict (section_id) do update
set patrol_colors = excluded.patrol_colors, updated_at = excluded.updated_at, updated_by = excluded.updated_by
