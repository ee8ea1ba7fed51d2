//! What people and other tools wrote down: a line that says which kind of file, then the file. What is taken in,
//! written out and read again says nothing new, and a file of somebody's keeps every byte that is not ours.

use bivouac_core::event::Event;
use bivouac_core::export::{
    Parsed, Sheet, checkpoint_md, handoff, import, memory, session_checkpoint,
};
use bivouac_core::id::{SessionHandle, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::redact::Redactor;
use bivouac_core::session::{Session, Status};
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Noun, Outline, Work, key_of};

pub fn try_one(bytes: &[u8]) {
    let (kind, file) = super::first_line(bytes);
    let text = std::str::from_utf8(file);
    match (kind, text) {
        (b"session-checkpoint", Ok(text)) => {
            check(session_checkpoint::parse(text).ok(), &|sheet| {
                let text = session_checkpoint::write(sheet);
                session_checkpoint::parse(&text).map_err(|bad| format!("{bad}\n{text}"))
            });
        }
        (b"checkpoint-md", Ok(text)) => check(checkpoint_md::parse(text).ok(), &|sheet| {
            let text = checkpoint_md::write(sheet);
            checkpoint_md::parse(&text).map_err(|bad| format!("{bad}\n{text}"))
        }),
        (b"handoff", _) => {
            check(handoff::parse(file).ok(), &|sheet| {
                let text = handoff::write(sheet);
                handoff::parse(text.as_bytes()).map_err(|bad| format!("{bad}\n{text}"))
            });
            check_merge(file, &|file| {
                handoff::merge(file, &handoff::write(&sheet(Work::default()))).ok()
            });
        }
        (b"memory", _) => check_merge(file, &|file| {
            memory::merge(file, &memory::section(&sheet(Work::default()))).ok()
        }),
        _ => {}
    }
}

/// Takes in what a file says, and looks at what comes out.
fn check(parsed: Option<Parsed>, again: &dyn Fn(&Sheet) -> Result<Parsed, String>) {
    let Some(parsed) = parsed else { return };
    let work = journaled(import::changes(&Work::default(), parsed.items));
    let sheet = sheet(work);
    let parsed = again(&sheet).expect("what was written is read");
    assert_eq!(parsed.ignored, [""; 0]);
    let news = import::changes(&sheet.work, parsed.items);
    // The one thing a file says and the work may not: the name of the session as its feature.
    let is_feature = |event: &Event| {
        matches!(event, Event::SessionDescribed(it) if **it == Outline {
            feature: it.feature.clone(), by: it.by, ..Outline::default()
        })
    };
    assert!(news.iter().all(is_feature), "{news:?}");
}

/// Written twice is written once.
fn check_merge(file: &[u8], merge: &dyn Fn(&[u8]) -> Option<Vec<u8>>) {
    let Some(merged) = merge(file) else { return };
    assert_eq!(merge(&merged), Some(merged.clone()));
}

fn moment(number: i64) -> Timestamp {
    let millis = 1_772_877_600_000 + number * 60_000;
    Timestamp::new(jiff::Timestamp::from_millisecond(millis).expect("within this age"))
}

/// The work as the journal has it after these events: it gives out the keys that nobody chose.
fn journaled(events: Vec<Event>) -> Work {
    // Far from any that a file may name.
    const FIRST: u64 = 1_000_000;
    let mut work = Work::default();
    for (number, mut event) in events.into_iter().enumerate() {
        if let Some((noun, set_key)) = key_of(&mut event)
            && !matches!(noun, Noun::Outline | Noun::Phase)
        {
            set_key(noun.numbered_key(FIRST + number as u64));
        }
        work.apply(&event, moment(number as i64));
    }
    work
}

fn sheet(work: Work) -> Sheet {
    let id: SessionId = "01956c3e-7d11-7b43-8405-f076b5f4de90".parse().expect("an id");
    Sheet {
        session: Session {
            id,
            handle: SessionHandle::of(id),
            name: None,
            agent_type: "claude-code".to_owned(),
            task_description: None,
            workspace: WorkspacePath::new("/project"),
            metadata: None,
            status: Status::Active,
            status_at: moment(0),
            until: None,
            reason: None,
            created_at: moment(0),
            updated_at: moment(90),
        },
        work,
        branch: Some("feat/notifications".to_owned()),
        sha: Some("4f1c2ab".to_owned()),
        label: "push-notifier".to_owned(),
        created_at: moment(330),
        updated: "2026-03-07 15:30".to_owned(),
        date: "2026-03-07".to_owned(),
        stamp: "2026-03-07-1530".to_owned(),
        key_files: Vec::new(),
        pipeline: None,
        spine: Vec::new(),
        redactor: Redactor::default(),
    }
}
