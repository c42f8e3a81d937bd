-- Leaders and the points they give. Times are microseconds since 1970 (UTC).

-- Whether the tokens may write, and the sections where they may: checked before anything is taken, without asking OSM.
alter table carrick_user_credentials add column can_write integer not null default 0 check (can_write in (0, 1));
alter table carrick_user_credentials add column osm_sections text not null default '[]' check (json_type(osm_sections) = 'array');

create table carrick_web_sessions (
  session_digest      text primary key check (length(session_digest) = 64),
  osm_user_id         integer not null references carrick_user_credentials (osm_user_id) on delete cascade,
  selected_section_id integer,
  created_at          integer not null,
  expires_at          integer not null
) strict, without rowid;
create index carrick_web_sessions_user on carrick_web_sessions (osm_user_id);
create index carrick_web_sessions_expires on carrick_web_sessions (expires_at);

-- What a leader sent at once. The same key of the same user is the same submission, for as long as it is remembered.
create table carrick_score_submissions (
  id          integer primary key autoincrement,
  osm_user_id integer not null,
  key         text not null check (length(key) between 1 and 255),
  body_digest text not null check (length(body_digest) = 64),
  section_id  integer not null check (section_id > 0),
  batch_id    text not null unique check (length(batch_id) = 36),
  created_at  integer not null,
  unique (osm_user_id, key)
) strict;
create index carrick_score_submissions_created on carrick_score_submissions (created_at);

-- One row per entry of the outbox, and what became of it in OSM: written once, when it was applied.
create table carrick_score_updates (
  id             integer primary key autoincrement,
  entry_id       text not null unique check (length(entry_id) = 36),
  submission_id  integer references carrick_score_submissions (id) on delete set null,
  osm_user_id    integer not null,
  section_id     integer not null,
  patrol_id      text not null check (length(patrol_id) between 1 and 16),
  patrol_name    text not null default '',
  points         integer not null check (points <> 0 and points between -1000 and 1000),
  undo_of        integer references carrick_score_updates (id) on delete set null,
  created_at     integer not null,
  applied_at     integer,
  previous_score integer,
  new_score      integer,
  discarded_at   integer,
  check ((applied_at is null) = (previous_score is null)),
  check ((applied_at is null) = (new_score is null)),
  check (applied_at is null or discarded_at is null)
) strict;
create index carrick_score_updates_submission on carrick_score_updates (submission_id);
create index carrick_score_updates_open on carrick_score_updates (section_id, patrol_id)
  where applied_at is null and discarded_at is null;
create index carrick_score_updates_open_user on carrick_score_updates (osm_user_id)
  where applied_at is null and discarded_at is null;
create index carrick_score_updates_history on carrick_score_updates (section_id, id) where applied_at is not null;
create unique index carrick_score_updates_undo on carrick_score_updates (undo_of)
  where undo_of is not null and discarded_at is null;

-- Writes to OSM of which nobody knows yet whether they happened. Written before the call, gone when it is known.
create table carrick_score_doubts (
  entry_id   text primary key references carrick_score_updates (entry_id) on delete cascade,
  write_id   text not null check (length(write_id) = 36),
  section_id integer not null,
  patrol_id  text not null,
  base       integer not null,
  target     integer not null,
  found      integer,
  given_up   integer not null default 0 check (given_up in (0, 1)), -- to be discarded when OSM turns out not to have it
  noted_at   integer not null,
  check (base <> target)
) strict, without rowid;
create index carrick_score_doubts_patrol on carrick_score_doubts (section_id, patrol_id);

-- Links to the live board of a section.
create table carrick_board_links (
  token_digest text primary key check (length(token_digest) = 64),
  section_id   integer not null check (section_id > 0),
  osm_user_id  integer not null,
  created_at   integer not null,
  revoked_at   integer
) strict, without rowid;
create index carrick_board_links_section on carrick_board_links (section_id);

-- Updates, where their entries are, and what is in doubt about them. It asks the engine's tables, not its view of entries, which
-- writes times as text.
create view carrick_score_update_state as
select u.id, u.entry_id, u.submission_id, u.osm_user_id, u.section_id, u.patrol_id, u.patrol_name, u.points, u.undo_of, u.created_at,
       u.applied_at, u.previous_score, u.new_score, u.discarded_at,
       case when x.state is not null then x.state when w.batch_id is not null then 'claimed' when w.seq is not null then 'pending' end
         as state,
       coalesce(x.attempt_count, t.attempt_count, 0) as attempt_count, w.due as next_attempt_at,
       coalesce(x.last_error_code, t.last_error_code) as last_error_code,
       coalesce(x.last_error_message, t.last_error_message) as last_error_message, d.write_id, d.base, d.target, d.found, d.given_up
from carrick_score_updates as u
left join carrick_record as r on r.id = u.entry_id
left join carrick_work as w on w.seq = r.seq
left join carrick_trouble as t on t.seq = w.seq
left join carrick_ended as x on x.seq = r.seq
left join carrick_score_doubts as d on d.entry_id = u.entry_id;
