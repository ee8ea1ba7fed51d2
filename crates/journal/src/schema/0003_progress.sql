-- What was said, and what was done, is found without reading everything else that happened.
CREATE INDEX events_said ON events (session_id, session_sequence)
    WHERE kind IN ('prompt.given', 'turn.ended');
CREATE INDEX events_of_progress ON events (session_id, session_sequence)
    WHERE kind IN ('task.changed', 'session.described', 'phase.changed', 'artifact.changed', 'decision.made',
                   'blocker.changed', 'approval.changed', 'gate.executed', 'step.changed', 'delegation.changed',
                   'fork_point.changed', 'partition.changed', 'worktree.changed', 'note.added', 'commit.seen',
                   'tests.run');
