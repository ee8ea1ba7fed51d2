//! What an agent keeps of a conversation: a line with the workspace it speaks of, then its file. Reading on from
//! anywhere finds what reading at once finds, and what is given back is whole and where it belongs.

use std::fs;
use std::path::Path;

use bivouac_capture::agents::reading::{Part, Reading, Source, read_on};
use bivouac_capture::agents::restore::{Kept, Order};
use bivouac_capture::agents::{self, Agent};
use bivouac_core::agent::AgentKind;

pub fn try_one(kind: AgentKind, bytes: &[u8]) {
    let agent = agents::of(kind);
    let (workspace, records) = super::first_line(bytes);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let kept = folder.path().join("kept");
    fs::create_dir(&kept).expect("a new folder takes one");
    // opencode tells its conversations as one document, all others as lines.
    let (name, is_file) = match kind {
        AgentKind::Opencode => ("session.json", false),
        _ => ("main.jsonl", true),
    };
    let whole = match is_file {
        true => check_reading_on(agent, &kept.join(name), records),
        false => {
            fs::write(kept.join(name), records).expect("a new folder takes a file");
            read(agent, Source::Bytes(records.to_vec()), Reading::default())
        }
    };
    let stored = serde_json::to_string(&whole).expect("what was read can be stored");
    let again: Reading = serde_json::from_str(&stored).expect("and read again");
    assert_eq!(again, whole);
    check_restore(agent, folder.path(), name, &String::from_utf8_lossy(workspace));
}

fn read(agent: &dyn Agent, source: Source, mut reading: Reading) -> Reading {
    let part = Part { name: "main".to_owned(), source };
    // As a save does: what was taken back is told once.
    reading.rewound_to = None;
    read_on(agent, &part, &mut reading).expect("the file is there, and ours");
    reading
}

/// Reads a file that grows, and then the same at once. Leaves it whole.
fn check_reading_on(agent: &dyn Agent, path: &Path, records: &[u8]) -> Reading {
    let file = || Source::File(path.to_owned());
    // Anywhere, and the same place every time.
    let sum: usize = records.iter().map(|byte| usize::from(*byte)).sum();
    let cut = sum % (records.len() + 1);
    fs::write(path, &records[..cut]).expect("a new folder takes a file");
    let first = read(agent, file(), Reading::default());
    fs::write(path, records).expect("a file can grow");
    let mut second = read(agent, file(), first);
    let mut whole = read(agent, file(), Reading::default());
    (second.rewound_to, whole.rewound_to) = (None, None);
    assert_eq!(second, whole, "cut at {cut}");
    assert!(whole.offset + whole.torn_bytes == records.len() as u64);
    whole
}

/// Gives the conversation back, elsewhere.
fn check_restore(agent: &dyn Agent, folder: &Path, name: &str, workspace: &str) {
    let kept = Kept {
        id: "0199-old".parse().expect("a plain id"),
        folder: folder.join("kept"),
        parts: vec![name.to_owned()],
        workspace: workspace.to_owned(),
    };
    let order = Order {
        home: folder.join("home"),
        workspace: "/else/where".to_owned(),
        new_id: "0199a1b2-7d11-7b43-8405-f076b5f4de90".to_owned(),
        now: "2026-01-21T14-30-00".to_owned(),
        scratch: folder.join("scratch"),
        extra: Vec::new(),
    };
    let Ok(launch) = agent.restore(&kept, &order) else { return };
    assert_eq!(launch.command.first().map(String::as_str), Some(agent.program()));
    for entry in fs::read_dir(folder).expect("it is ours") {
        let name = entry.expect("it is ours").file_name();
        assert!(["kept", "home", "scratch"].iter().any(|it| name == *it), "{name:?} is new");
    }
    check_whole(&order.home);
    check_whole(&order.scratch);
}

/// Every file that an agent gets is JSON, to the last line.
fn check_whole(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("it is ours").path();
        if path.is_dir() {
            check_whole(&path);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a conversation is text");
        // Half a character, as some agents write it, is given back as it was.
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let is_whole = is_json(&text) || text.lines().all(is_json);
        assert!(is_whole, "{}: {text}", path.display());
    }
}
