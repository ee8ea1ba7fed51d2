//! A session half way through a notification system, and an empty one.

use bivouac_core::event::Event;
use bivouac_core::export::{KeyFile, Sheet, checkpoint_md, handoff, memory, session_checkpoint};
use bivouac_core::id::{SessionHandle, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::Redactor;
use bivouac_core::session::{Session, Status};
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Item, Noun, Work, key_of};

/// So many minutes into the work.
pub(crate) fn at(minute: u32) -> Timestamp {
    let start: Timestamp = "2026-03-07T10:00:00Z".parse().unwrap();
    let millis = start.as_millis() + i64::from(minute) * 60_000;
    Timestamp::new(jiff::Timestamp::from_millisecond(millis).unwrap())
}

pub(crate) fn sheet(work: Work) -> Sheet {
    let id: SessionId = "01956c3e-7d11-7b43-8405-f076b5f4de90".parse().unwrap();
    Sheet {
        session: Session {
            id,
            handle: SessionHandle::of(id),
            name: Some("notification-system".parse().unwrap()),
            agent_type: "claude-code".to_owned(),
            task_description: Some("Build the notification system of the shop".parse().unwrap()),
            workspace: WorkspacePath::new("/project"),
            metadata: None,
            status: Status::Active,
            status_at: "2026-01-21T14:30:00Z".parse().unwrap(),
            until: None,
            reason: None,
            created_at: at(0),
            updated_at: at(90),
        },
        work,
        branch: Some("feat/notifications".to_owned()),
        sha: Some("4f1c2ab".to_owned()),
        label: "push-notifier".to_owned(),
        created_at: at(330),
        updated: "2026-03-07 15:30".to_owned(),
        date: "2026-03-07".to_owned(),
        stamp: "2026-03-07-1530".to_owned(),
        key_files: Vec::new(),
        pipeline: None,
        spine: Vec::new(),
        redactor: Redactor::default(),
    }
}

/// Everything there can be, in one session.
pub(crate) fn notification_system() -> Sheet {
    let mut work = Work::default();
    for (minute, line) in include_str!("story.txt").lines().enumerate() {
        let (kind, data) = line.split_once(' ').unwrap();
        let event = Event::parse(kind, data).unwrap();
        assert!(!Item::all_of(&event).is_empty(), "{line}");
        work.apply(&event, at(minute as u32));
    }
    let file = |path: &str, about: &str| KeyFile { path: path.to_owned(), about: about.to_owned() };
    Sheet {
        key_files: vec![
            file("src/push/notifier.ts", "sends to devices; the retry loop is half done"),
            file("src/router.ts", "decides who gets what"),
            file("src/email/sender.ts", "done and merged"),
        ],
        pipeline: Some("{\n  \"stage\": \"delegate\",\n  \"done\": 2\n}\n".to_owned()),
        spine: vec!["M1 senders: done".to_owned(), "M2 routing: in progress".to_owned()],
        ..sheet(work)
    }
}

/// Everything that leaves, and the name it has.
pub(crate) fn every_export(sheet: &Sheet) -> [String; 5] {
    [
        session_checkpoint::write(sheet),
        checkpoint_md::write(sheet),
        handoff::write(sheet),
        memory::section(sheet),
        checkpoint_md::file_name(sheet),
    ]
}

/// The work as the journal has it after these events: it gives out the keys that nobody chose.
pub(crate) fn journaled(mut work: Work, events: Vec<Event>) -> Work {
    for (number, mut event) in events.into_iter().enumerate() {
        if let Some((noun, set_key)) = key_of(&mut event)
            && !matches!(noun, Noun::Outline | Noun::Phase)
        {
            set_key(noun.numbered_key(number as u64 + 1));
        }
        work.apply(&event, at(number as u32));
    }
    work
}
