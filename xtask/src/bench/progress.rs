//! How long it takes to tell, find and record things, in a session of ten events and in one of 100,000.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bivouac_core::agent::{PromptGiven, ToolUsed, TurnEnded};
use bivouac_core::event::Event;
use bivouac_core::id::{EventId, SessionHandle, SessionId};
use bivouac_core::path::WorkspacePath;
use bivouac_core::session::NewSession;
use bivouac_core::text::Note;
use bivouac_core::time::Timestamp;
use bivouac_core::work::{Decision, Remark, Task, TaskStatus};
use bivouac_journal::Journal;
use bivouac_journal::append::NewEvent;
use uuid::Uuid;

use super::table;
use super::workspace::Workspace;
use crate::Result;
use crate::tools::command;

const FILES: usize = 1_000;
const CALLS: usize = 50;
const EVENTS: u64 = 100_000;
const SESSIONS: u64 = 1_000;

struct Bench {
    biv: PathBuf,
    work: PathBuf,
    base: PathBuf,
}

/// Measures, and answers the table.
pub(super) fn run(folder: &Path, biv: &Path) -> Result<String> {
    let base = folder.join("progress");
    let (work, source) = (base.join("work"), base.join("source"));
    Workspace::make(&source, FILES)?;
    Workspace::copy(&source, &work)?;
    let bench = Bench { biv: biv.to_owned(), work, base };
    let session = bench.json(&["session", "new", "--name", "long", "--json"])?;
    let id: SessionId = session["id"].as_str().unwrap_or_default().parse()?;
    bench.json(&["checkpoint", "create", "--json"])?;
    let mut rows = vec![
        ("`rehydrate`, 10 events", bench.times(&["rehydrate", "long"])?),
        ("record a note, 10 events", bench.times(&["note", "a word", "--session", "long"])?),
    ];
    let few = bench.tokens()?;
    bench.fill(id)?;
    rows.push(("`rehydrate`, 100,000 events", bench.times(&["rehydrate", "long"])?));
    let note = ["note", "a word", "--session", "long"];
    rows.push(("record a note, 100,000 events", bench.times(&note)?));
    rows.push(("`search`, 1,000 sessions", bench.times(&["search", "refactor authentication"])?));
    let many = bench.tokens()?;
    let table = table::spread(rows);
    Ok(format!(
        "{table}\nA briefing costs {few} tokens after 10 events, and {many} after 100,000.\n"
    ))
}

impl Bench {
    fn call(&self, words: &[&str]) -> Result<Vec<u8>> {
        let mut call = command(&self.biv);
        call.args(words).current_dir(&self.work).env("HOME", &self.base);
        call.env("BIV_STORE", self.base.join("store")).env("BIV_STORE_AUTO_GC", "false");
        let output = call.output()?;
        if !output.status.success() {
            return Err(
                format!("biv {words:?}: {}", String::from_utf8_lossy(&output.stderr)).into()
            );
        }
        Ok(output.stdout)
    }

    fn json(&self, words: &[&str]) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(&self.call(words)?)?)
    }

    fn times(&self, words: &[&str]) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let started = Instant::now();
            self.call(words)?;
            times.push(started.elapsed());
        }
        Ok(times)
    }

    /// What a briefing says that it costs.
    fn tokens(&self) -> Result<u64> {
        let told = self.json(&["rehydrate", "long", "--json"])?;
        Ok(told["briefing"]["tokens"].as_u64().unwrap_or_default())
    }

    /// A long session, and a thousand short ones beside it.
    fn fill(&self, long: SessionId) -> Result<()> {
        let mut journal = Journal::open(&self.base.join("store/sessions.db"))?;
        let at: Timestamp = "2026-01-21T14:30:00Z".parse()?;
        let new =
            |session_id, event| NewEvent { id: EventId::new(Uuid::now_v7()), session_id, event };
        for start in (0..EVENTS).step_by(5_000) {
            let events = (start..start + 5_000).map(|number| new(long, event(number)));
            journal.append(at, events.collect(), &[])?;
        }
        for number in 0..SESSIONS {
            let id = SessionId::new(Uuid::now_v7());
            let mut events = vec![new(id, created(id, number, at))];
            events.extend((0..30).map(|place| new(id, event(number * 30 + place))));
            journal.append(at, events, &[])?;
        }
        Ok(())
    }
}

fn created(id: SessionId, number: u64, at: Timestamp) -> Event {
    let task = format!("Session {number}: refactor authentication, part {}", number % 50);
    Event::SessionCreated(Box::new(NewSession {
        id,
        handle: SessionHandle::of(id),
        name: None,
        agent_type: "claude-code".to_owned(),
        task_description: Some(Note::cut(&task)),
        workspace: WorkspacePath::new("/code/elsewhere"),
        metadata: None,
        created_at: at,
    }))
}

/// What a session is mostly made of.
fn event(number: u64) -> Event {
    let conversation = "11111111-0000-4000-8000-000000000001".parse().expect("it is an id");
    let words = |what: &str| Note::cut(&format!("{what} {number}, with some words about it"));
    match number % 20 {
        0 => Event::PromptGiven(PromptGiven { conversation, prompt: words("Please do") }),
        1 => {
            let message = Some(words("I have done"));
            Event::TurnEnded(TurnEnded { conversation, message, error: None })
        }
        2 | 3 => Event::TaskChanged(Box::new(Task {
            task: (number / 7 % 300).to_string(),
            subject: Some(words("Task")),
            status: Some(TaskStatus::ALL[(number / 11 % 6) as usize]),
            ..Task::default()
        })),
        4 if number % 200 == 4 => Event::DecisionMade(Box::new(Decision {
            title: Some(words("Decision")),
            why: Some(words("Because of")),
            ..Decision::default()
        })),
        5 if number % 100 == 5 => {
            Event::RemarkMade(Box::new(Remark { text: Some(words("Note")), ..Remark::default() }))
        }
        _ => Event::ToolUsed(Box::new(ToolUsed {
            conversation,
            tool: "Bash".to_owned(),
            files: vec![format!("src/module-{}/file-{}.rs", number % 30, number % 400)],
            n_more_files: 0,
            command: Some(words("cargo build --package part")),
            duration_ms: Some(12),
            error: None,
            subagent: None,
        })),
    }
}
