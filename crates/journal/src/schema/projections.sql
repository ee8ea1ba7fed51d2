-- What follows from the events. Dropped and rebuilt at will.
DROP TABLE IF EXISTS session_logs;
DROP TABLE IF EXISTS conversations;
DROP TABLE IF EXISTS tasks;
DROP TABLE IF EXISTS progress;
DROP TABLE IF EXISTS key_numbers;
DROP TABLE IF EXISTS touched_files;
DROP TABLE IF EXISTS search;
DROP TABLE IF EXISTS approvals;
DROP TABLE IF EXISTS operations;
DROP TABLE IF EXISTS runs;
DROP TABLE IF EXISTS session_checkpoints;
DROP TABLE IF EXISTS handle_days;
DROP TABLE IF EXISTS sessions;

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    handle           TEXT NOT NULL UNIQUE,
    name             TEXT,
    agent_type       TEXT NOT NULL,
    task_description TEXT,
    status           TEXT NOT NULL DEFAULT 'active',
    reason           TEXT,
    -- When it came to be in this status, and until when it is paused.
    status_at        TEXT NOT NULL,
    until            TEXT,
    -- Text, or a blob where the path is not UTF-8.
    workspace        ANY  NOT NULL,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    metadata         TEXT,
    -- The last event about it.
    sequence         INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_workspace ON sessions (workspace, sequence);
-- Those every command looks at, so that a thousand others cost nothing.
CREATE INDEX sessions_at_work ON sessions (id) WHERE status = 'active';

CREATE TABLE session_checkpoints (
    id              TEXT    PRIMARY KEY,
    handle          TEXT    NOT NULL UNIQUE,
    session_id      TEXT    NOT NULL REFERENCES sessions (id),
    -- What someone called it, else its handle.
    name            TEXT    NOT NULL,
    is_named        INTEGER NOT NULL,
    "trigger"       TEXT    NOT NULL,
    message         TEXT,
    checkpoint_data TEXT    NOT NULL,
    git_branch      TEXT,
    git_uncommitted INTEGER DEFAULT 0,
    is_pinned       INTEGER NOT NULL DEFAULT 0,
    workspace       ANY     NOT NULL,
    created_at      TEXT    NOT NULL,
    sequence        INTEGER NOT NULL,
    UNIQUE (session_id, name)
) STRICT;
CREATE INDEX checkpoints_by_session ON session_checkpoints (session_id, sequence);
-- Those retention has to think about, so that a thousand others cost nothing.
CREATE INDEX checkpoints_nobody_asked_for ON session_checkpoints (session_id, sequence)
    WHERE "trigger" NOT IN ('MANUAL', 'SAFETY');
CREATE INDEX checkpoints_by_workspace ON session_checkpoints (workspace, sequence);

-- The highest number each day has given out, so that a handle is never used twice.
CREATE TABLE handle_days (
    prefix TEXT    PRIMARY KEY,
    last   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session_logs (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    level      TEXT NOT NULL,
    message    TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX logs_by_session ON session_logs (session_id, id);

CREATE TABLE operations (
    id         TEXT    PRIMARY KEY,
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    workspace  ANY     NOT NULL,
    data       TEXT    NOT NULL,
    -- How it ended; NULL while it has not.
    outcome    TEXT,
    sequence   INTEGER NOT NULL
) STRICT;
CREATE INDEX operations_by_workspace ON operations (workspace, sequence);

-- The last supervised run of each session.
CREATE TABLE runs (
    session_id TEXT    PRIMARY KEY REFERENCES sessions (id),
    -- `run.started` as it was recorded.
    data       TEXT    NOT NULL,
    started_at TEXT    NOT NULL,
    -- `run.ended`; NULL while it has not.
    ending     TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_under_way ON runs (started_at) WHERE ending IS NULL;

-- The agents' own conversations, and the sessions they belong to.
CREATE TABLE conversations (
    agent      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    -- `conversation.started` as it was recorded last.
    data       TEXT    NOT NULL,
    -- The process number, for finding what the same process did before.
    pid        INTEGER,
    -- What the model has not been told yet: how the conversation came to be.
    untold     TEXT,
    ended_at   TEXT,
    -- The last event that began it or went on with it.
    sequence   INTEGER NOT NULL,
    PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_session ON conversations (session_id, sequence);

-- What progress is made of, thing by thing: tasks, decisions, steps and all the others.
CREATE TABLE progress (
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    noun       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    -- The thing as it is now.
    data       TEXT    NOT NULL,
    -- May it be left out where there are very many?
    is_past    INTEGER NOT NULL,
    -- The event that first spoke of it.
    sequence   INTEGER NOT NULL,
    PRIMARY KEY (session_id, noun, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX progress_in_order ON progress (session_id, noun, is_past, sequence);

-- The highest number in the keys of a noun, so that none is given out twice.
CREATE TABLE key_numbers (
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    noun       TEXT    NOT NULL,
    last       INTEGER NOT NULL,
    PRIMARY KEY (session_id, noun)
) STRICT, WITHOUT ROWID;

-- Files that tools were seen to change.
CREATE TABLE touched_files (
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    path       TEXT    NOT NULL,
    n_times    INTEGER NOT NULL,
    -- The last event about it.
    sequence   INTEGER NOT NULL,
    PRIMARY KEY (session_id, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX touched_files_in_order ON touched_files (session_id, sequence);

-- Words to find events by, without the secrets in them. The row is the event's sequence.
CREATE VIRTUAL TABLE search USING fts5 (
    words,
    session_id UNINDEXED,
    kind UNINDEXED,
    tokenize = 'unicode61 remove_diacritics 2'
);

-- What an agent waits for a person's leave for.
CREATE TABLE approvals (
    sequence   INTEGER PRIMARY KEY,
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    tool       TEXT    NOT NULL,
    what       TEXT
) STRICT;
CREATE INDEX approvals_by_session ON approvals (session_id, sequence);
