-- Writes the settings of a section, whatever they were.
insert into carrick.section_settings (section_id, patrol_colors, updated_at, updated_by)
values (%(section_id)s, %(patrol_colors)s::jsonb, carrick.clock(), %(updated_by)s)
on conflict (section_id) do update
set patrol_colors = excluded.patrol_colors, updated_at = excluded.updated_at, updated_by = excluded.updated_by
