-- Leaders and the points they give.

alter table carrick.user_credentials
  add column can_write boolean not null default false,
  add column osm_sections jsonb not null default '[]' check (jsonb_typeof(osm_sections) = 'array');
comment on column carrick.user_credentials.osm_sections is
  'The sections where the tokens may write: checked before anything is taken, without asking OSM.';

create table carrick.web_sessions (
  session_digest      text collate "C" primary key check (char_length(session_digest) = 64),
  osm_user_id         bigint not null references carrick.user_credentials (osm_user_id) on delete cascade,
  selected_section_id bigint,
  created_at          timestamptz not null default carrick.clock(),
  expires_at          timestamptz not null
);
create index web_sessions_user on carrick.web_sessions (osm_user_id);
create index web_sessions_expires on carrick.web_sessions (expires_at);

create table carrick.score_submissions (
  id          bigint generated always as identity primary key,
  osm_user_id bigint not null,
  key         text collate "C" not null check (char_length(key) between 1 and 255),
  body_digest text collate "C" not null check (char_length(body_digest) = 64),
  section_id  bigint not null check (section_id > 0),
  batch_id    uuid not null unique,
  created_at  timestamptz not null default carrick.clock(),
  unique (osm_user_id, key)
);
comment on table carrick.score_submissions is 'What a leader sent at once; the same key of the same user is the same submission.';
create index score_submissions_created on carrick.score_submissions (created_at);

create table carrick.score_updates (
  id             bigint generated always as identity primary key,
  entry_id       uuid not null unique,
  submission_id  bigint references carrick.score_submissions (id) on delete set null,
  osm_user_id    bigint not null,
  section_id     bigint not null,
  patrol_id      text collate "C" not null check (char_length(patrol_id) between 1 and 16),
  patrol_name    text not null default '',
  points         int not null check (points <> 0 and points between -1000 and 1000),
  undo_of        bigint references carrick.score_updates (id) on delete set null,
  created_at     timestamptz not null default carrick.clock(),
  applied_at     timestamptz,
  previous_score bigint,
  new_score      bigint,
  discarded_at   timestamptz,
  check ((applied_at is null) = (previous_score is null)),
  check ((applied_at is null) = (new_score is null)),
  check (applied_at is null or discarded_at is null)
);
comment on table carrick.score_updates is 'One row per entry of the outbox, and what became of it in OSM: written once, when it was applied.';
create index score_updates_submission on carrick.score_updates (submission_id);
create index score_updates_open on carrick.score_updates (section_id, patrol_id) where applied_at is null and discarded_at is null;
create index score_updates_open_user on carrick.score_updates (osm_user_id) where applied_at is null and discarded_at is null;
create index score_updates_history on carrick.score_updates (section_id, id) where applied_at is not null;
create unique index score_updates_undo on carrick.score_updates (undo_of) where undo_of is not null and discarded_at is null;

create table carrick.score_doubts (
  entry_id   uuid primary key references carrick.score_updates (entry_id) on delete cascade,
  write_id   uuid not null,
  section_id bigint not null,
  patrol_id  text collate "C" not null,
  base       bigint not null,
  target     bigint not null,
  found      bigint,
  given_up   boolean not null default false,
  noted_at   timestamptz not null default carrick.clock(),
  check (base <> target)
);
comment on table carrick.score_doubts is 'Writes to OSM of which nobody knows yet whether they happened: written before the call, gone when it is known.';
comment on column carrick.score_doubts.given_up is 'To be discarded when OSM turns out not to have it.';
create index score_doubts_patrol on carrick.score_doubts (section_id, patrol_id);

create table carrick.board_links (
  token_digest text collate "C" primary key check (char_length(token_digest) = 64),
  section_id   bigint not null check (section_id > 0),
  osm_user_id  bigint not null,
  created_at   timestamptz not null default carrick.clock(),
  revoked_at   timestamptz
);
comment on table carrick.board_links is 'Links to the live board of a section.';
create index board_links_section on carrick.board_links (section_id);

create view carrick.score_update_state as
select u.id, u.entry_id::text as entry_id, u.submission_id, u.osm_user_id, u.section_id, u.patrol_id, u.patrol_name, u.points, u.undo_of, u.created_at,
       u.applied_at, u.previous_score, u.new_score, u.discarded_at,
       e.state, e.attempt_count, e.next_attempt_at, e.last_error_code, e.last_error_message, d.write_id::text as write_id,
       d.base, d.target, d.found, d.given_up
from carrick.score_updates as u
-- One look per update, by its id: joined plainly, the whole outbox would be read.
left join lateral (select * from carrick.entry where id = u.entry_id limit 1) as e on true
left join carrick.score_doubts as d on d.entry_id = u.entry_id;
comment on view carrick.score_update_state is 'Updates, where their entries are, and what is in doubt about them.';
