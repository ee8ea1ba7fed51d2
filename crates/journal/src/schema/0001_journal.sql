-- The truth: events, never changed and never removed.
CREATE TABLE events (
    sequence         INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL UNIQUE,
    session_id       TEXT    NOT NULL,
    session_sequence INTEGER NOT NULL,
    kind             TEXT    NOT NULL,
    recorded_at      TEXT    NOT NULL,
    data             TEXT    NOT NULL,
    previous_hash    BLOB    NOT NULL,
    hash             BLOB    NOT NULL,
    UNIQUE (session_id, session_sequence)
) STRICT;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events never change'); END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;

-- Where objects are. Rebuilt from the packs when it is lost.
CREATE TABLE packs (
    number     INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    size_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE objects (
    id     BLOB    PRIMARY KEY,
    pack   INTEGER NOT NULL REFERENCES packs (number),
    offset INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
