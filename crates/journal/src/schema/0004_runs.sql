-- What is supervised is told by new kinds of events. How often saving failed of late is found without reading
-- everything else that happened.
CREATE INDEX events_of_saving ON events (session_id, session_sequence)
    WHERE kind IN ('checkpoint.taken', 'checkpoint.failed');
