//! The journal on its own: chains, tables that follow, handles

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

use bivouac_core::checkpoint::{Checkpoint, Coverage, Trigger};
use bivouac_core::event::{
    CheckpointDeleted, CheckpointRef, CheckpointTaken, DeletionReason, Event, Level, Noted,
    OperationFinished, SessionRenamed, StatusChange,
};
use bivouac_core::id::{
    CheckpointHandle, CheckpointId, EventId, ObjectId, OperationId, SessionHandle, SessionId,
};
use bivouac_core::operation::{Operation, OperationKind, Outcome};
use bivouac_core::path::WorkspacePath;
use bivouac_core::session::NewSession;
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Blocker, Decision, Phase, Remark, Step, Task, TaskStatus, Work};
use bivouac_journal::Journal;
use bivouac_journal::append::NewEvent;
use bivouac_journal::query::{CheckpointFilter, SessionFilter};
use bivouac_journal::stored::StoredEvent;
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

fn now() -> Timestamp {
    "2026-01-21T14:30:00Z".parse().unwrap()
}

fn session_id(n: u8) -> SessionId {
    SessionId::new(Uuid::from_u128(u128::from(n) + 1))
}

fn checkpoint_id(n: u8) -> CheckpointId {
    CheckpointId::new(Uuid::from_u128(u128::from(n) + 1_000))
}

fn created(n: u8) -> Event {
    let id = session_id(n);
    Event::SessionCreated(Box::new(NewSession {
        id,
        handle: SessionHandle::of(id),
        name: None,
        agent_type: "test".to_owned(),
        task_description: None,
        workspace: WorkspacePath::new("/w"),
        metadata: None,
        created_at: now(),
    }))
}

fn taken(session: u8, checkpoint: u8, number: u32) -> Event {
    let tree = ObjectId::of(b"tree");
    let checkpoint = Checkpoint {
        id: checkpoint_id(checkpoint),
        handle: CheckpointHandle::from(format!("cp-20260121-{number:03}")),
        session_id: session_id(session),
        parent: None,
        trigger: Trigger::Manual,
        name: None,
        message: None,
        taken_at: now(),
        tree,
        coverage: Coverage::default(),
        git: None,
        conversation: None,
        work: None,
        environment: None,
        terminal: None,
        state: None,
        operation: None,
        by: "me@here".to_owned(),
        promise: None,
    };
    Event::CheckpointTaken(Box::new(CheckpointTaken { checkpoint, manifest: tree }))
}

struct Stage {
    folder: TempDir,
    journal: Journal,
    n_events: u128,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("sessions.db")).unwrap();
        Self { folder, journal, n_events: 0 }
    }

    fn append(&mut self, session: u8, event: Event) -> bivouac_journal::Result<Vec<Event>> {
        self.n_events += 1;
        let id = EventId::new(Uuid::from_u128(self.n_events));
        self.journal.append(
            now(),
            vec![NewEvent { id, session_id: session_id(session), event }],
            &[],
        )
    }
}

#[test]
fn two_who_asked_for_the_same_handle_get_two() {
    let mut stage = Stage::new();
    stage.append(0, created(0)).unwrap();
    stage.append(0, taken(0, 1, 1)).unwrap();
    let recorded = stage.append(0, taken(0, 2, 1)).unwrap();
    let Event::CheckpointTaken(second) = &recorded[0] else { panic!("{recorded:?}") };
    assert_eq!(second.checkpoint.handle.as_str(), "cp-20260121-002");
    let deleted = CheckpointDeleted { id: checkpoint_id(2), reason: DeletionReason::Asked };
    stage.append(0, Event::CheckpointDeleted(deleted)).unwrap();
    assert_eq!(stage.journal.next_number("cp-20260121-").unwrap(), 3);
}

#[test]
fn a_failed_batch_leaves_no_trace() {
    let mut stage = Stage::new();
    stage.append(0, created(0)).unwrap();
    stage.append(0, taken(0, 1, 1)).unwrap();
    // The same checkpoint twice cannot be.
    assert!(stage.append(0, taken(0, 1, 2)).is_err());
    assert_eq!(stage.journal.n_events().unwrap(), 2);
    assert_eq!(stage.journal.drifted_tables().unwrap(), Vec::<&str>::new());
    assert_eq!(stage.journal.broken_events().unwrap(), vec![]);
}

#[test]
fn what_is_salvaged_is_what_was_written() {
    let mut stage = Stage::new();
    stage.append(0, created(0)).unwrap();
    for n in 0..30 {
        stage.append(0, taken(0, n, u32::from(n) + 1)).unwrap();
    }
    let path = stage.folder.path().join("sessions.db");
    drop(stage.journal);
    let salvaged = Journal::salvage(&path);
    assert_eq!(salvaged.len(), 31);
    let mut fresh = Journal::open(&stage.folder.path().join("fresh.db")).unwrap();
    fresh.import(salvaged).unwrap();
    fresh.reconcile().unwrap();
    assert_eq!(fresh.checkpoints(&CheckpointFilter::default()).unwrap().len(), 30);
    assert_eq!(fresh.broken_events().unwrap(), vec![]);
}

/// Something about the work: with a key of its own, or without.
fn progress() -> impl Strategy<Value = Event> {
    let key = prop::sample::select(vec!["", "001", "2", "d1", "auth"]);
    let status = prop::sample::select(TaskStatus::ALL.to_vec());
    (0u8..6, key, status, "[a-c ]{0,6}").prop_map(|(which, key, status, words)| {
        let (key, note) = (key.to_owned(), Some(Note::cut(&words)));
        match which {
            0 => Event::TaskChanged(Box::new(Task {
                task: key,
                subject: note,
                status: Some(status),
                ..Task::default()
            })),
            1 => Event::DecisionMade(Box::new(Decision {
                decision: key,
                title: note,
                ..Decision::default()
            })),
            2 => Event::BlockerChanged(Box::new(Blocker {
                blocker: key,
                resolution: note,
                ..Blocker::default()
            })),
            3 => Event::PhaseChanged(Box::new(Phase { name: Some(words), ..Phase::default() })),
            4 => Event::StepChanged(Box::new(Step {
                step: key,
                status: Some(status),
                ..Step::default()
            })),
            _ => Event::RemarkMade(Box::new(Remark { text: note, ..Remark::default() })),
        }
    })
}

/// Any event, sensible or not.
fn any_event() -> impl Strategy<Value = (u8, Event)> {
    let change = prop_oneof![Just(None), Just(Some("why".parse().unwrap()))];
    let status = (0u8..4, change).prop_map(|(which, reason)| {
        let change = StatusChange { reason, until: None };
        match which {
            0 => Event::SessionPaused(change),
            1 => Event::SessionResumed(change),
            2 => Event::SessionCompleted(change),
            _ => Event::SessionFailed(change),
        }
    });
    let operation = (0u8..6, 0u8..8).prop_map(|(n, checkpoint)| {
        Event::OperationStarted(Box::new(Operation {
            id: OperationId::new(Uuid::from_u128(u128::from(n))),
            kind: OperationKind::Rollback,
            workspace: WorkspacePath::new("/w"),
            target: Some(checkpoint_id(checkpoint)),
            safety: checkpoint_id(checkpoint),
            plan: ObjectId::of(b"plan"),
            started_at: now(),
        }))
    });
    let finished = (0u8..6).prop_map(|n| {
        let id = OperationId::new(Uuid::from_u128(u128::from(n)));
        Event::OperationFinished(OperationFinished { id, outcome: Outcome::default() })
    });
    let about = |n: u8| CheckpointRef { id: checkpoint_id(n) };
    let event = prop_oneof![
        2 => (0u8..3).prop_map(created),
        4 => (0u8..3, 0u8..8, 0u32..9).prop_map(|(session, n, number)| taken(session, n, number)),
        2 => (0u8..8).prop_map(|n| Event::CheckpointDeleted(CheckpointDeleted {
            id: checkpoint_id(n), reason: DeletionReason::Thinned })),
        1 => (0u8..8).prop_map(move |n| Event::CheckpointPinned(about(n))),
        1 => (0u8..8).prop_map(move |n| Event::CheckpointUnpinned(about(n))),
        2 => status,
        1 => operation,
        1 => finished,
        1 => Just(Event::SessionRenamed(SessionRenamed { name: "name".parse().unwrap() })),
        1 => Just(Event::Noted(Noted { level: Level::Error, message: "m".parse().unwrap() })),
        6 => progress(),
        1 => Just(Event::Unknown { kind: "later.kind".to_owned(), data: "{\"x\": [1, 2]}".to_owned() }),
    ];
    (0u8..3, event)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is appended, in whatever order: what was taken in is consistent, and rebuilding changes nothing.
    #[test]
    fn tables_always_follow_from_the_events(events in prop::collection::vec(any_event(), 0..60)) {
        let mut stage = Stage::new();
        for (session, event) in events {
            // Nonsense, such as the same session twice, is refused as a whole.
            let _refused = stage.append(session, event);
        }
        prop_assert_eq!(stage.journal.broken_events().unwrap(), vec![]);
        prop_assert_eq!(stage.journal.drifted_tables().unwrap(), Vec::<&str>::new());
        let sessions = stage.journal.sessions(&SessionFilter::default()).unwrap();
        let checkpoints = stage.journal.checkpoints(&CheckpointFilter::default()).unwrap();
        let works: Vec<Work> = (0..3).map(|n| stage.journal.work(session_id(n)).unwrap()).collect();
        // The tables hold what folding the events comes to.
        for (n, work) in works.iter().enumerate() {
            let mut folded = Work::default();
            let events = stage.journal.events(session_id(n as u8)).unwrap();
            // What was said before there was a session is nobody's.
            let own = session_id(n as u8).to_string();
            let is_sensible = |it: &StoredEvent| it.kind == "session.created" && it.data.contains(&own);
            if !events.first().is_some_and(is_sensible) {
                continue;
            }
            for stored in &events {
                folded.apply(&stored.event().unwrap(), stored.recorded_at);
            }
            prop_assert_eq!(&folded, work);
        }
        let rebuilt = stage.journal.reconcile().unwrap();
        let again: Vec<Work> = (0..3).map(|n| stage.journal.work(session_id(n)).unwrap()).collect();
        prop_assert_eq!(again, works);
        prop_assert_eq!(rebuilt.mended, vec![]);
        prop_assert_eq!(stage.journal.sessions(&SessionFilter::default()).unwrap(), sessions);
        prop_assert_eq!(stage.journal.checkpoints(&CheckpointFilter::default()).unwrap(), checkpoints);
    }
}
