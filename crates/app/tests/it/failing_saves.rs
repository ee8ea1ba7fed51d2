//! An automatic save that fails is never silent

use std::fs;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::hook::Claude;

/// Makes saving impossible without touching the journal, until it is mended.
fn broken(env: &TestEnv) -> impl FnOnce() {
    let (packs, away) = (env.store().join("packs"), env.store().join("packs.away"));
    fs::rename(&packs, &away).unwrap();
    fs::write(&packs, "").unwrap();
    move || {
        fs::remove_file(&packs).unwrap();
        fs::rename(away, packs).unwrap();
    }
}

#[test]
fn five_saves_that_fail_in_a_row_are_told_to_model_and_person() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    let mend = broken(&claude.env);
    let fail = |number: u32| {
        claude.env.write("a", format!("changed {number}"));
        claude.tell("Stop", &json!({}));
    };
    let prompt = || claude.tell("UserPromptSubmit", &json!({ "prompt": "go on" }));
    (1..5).for_each(fail);
    assert_eq!(prompt(), "");
    fail(5);
    let warned: Value = serde_json::from_str(&prompt()).unwrap();
    let words = warned["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let start = "Warning: Bivouac could not save this work, 5 times in a row: could not read `";
    assert!(words.starts_with(start), "{words}");
    assert!(words.ends_with(". Tell the person; `biv status` says more."), "{words}");
    // Once is enough, until it gets worse.
    assert_eq!(prompt(), "");
    assert_snapshot!(claude.env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (active): one
    Warning    the last 5 saves failed: could not read `[root]/home/.local/share/bivouac/packs/id-1.pack`: Not a directory (os error 20); next try at the next change
    Last       cp-20260121-001 (TURN), 9 minutes ago
    Changes    cannot be told: could not read `[root]/home/.local/share/bivouac/packs/id-1.pack`
    Coverage   1 file, 9 B; nothing left out
    error      2026-01-21 14:37 a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-1.pack`: Not a directory (os error 20)
    error      2026-01-21 14:35 a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-1.pack`: Not a directory (os error 20)
    error      2026-01-21 14:34 a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-1.pack`: Not a directory (os error 20)
    ");
    assert_snapshot!(claude.env.run("session log"), @"
    When              Level    What
    2026-01-21 14:30  info     session created for claude-code: one
    2026-01-21 14:30  info     Claude Code conversation id-1 (seen)
    2026-01-21 14:31  info     saved cp-20260121-001 (TURN)
    2026-01-21 14:32  error    a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-2.pack`: Not a directory (os error 20)
    2026-01-21 14:33  error    a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-2.pack`: Not a directory (os error 20)
    2026-01-21 14:34  error    a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-2.pack`: Not a directory (os error 20)
    2026-01-21 14:35  error    a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-2.pack`: Not a directory (os error 20)
    2026-01-21 14:37  error    a TURN checkpoint failed: could not read `[root]/home/.local/share/bivouac/packs/id-2.pack`: Not a directory (os error 20)
    ");
    mend();
    claude.tell("Stop", &json!({}));
    assert_eq!(prompt(), "");
    assert_eq!(claude.env.json("status")["failed_saves"], 0);
}

/// Whoever saves is kept waiting by us; the hook does not wait that long.
#[test]
fn a_save_that_the_hook_had_no_time_for_is_on_record() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    claude.env.write("a", "2");
    let index = fs::read_dir(claude.env.store().join("index")).unwrap();
    let lock =
        index.map(|it| it.unwrap().path()).find(|it| it.extension() == Some("lock".as_ref()));
    let lock = fs::File::options().write(true).open(lock.unwrap()).unwrap();
    lock.lock().unwrap();
    assert_eq!(claude.tell("SessionEnd", &json!({ "reason": "other" })), "");
    drop(lock);
    assert_snapshot!(claude.env.run("status"), @"
    Workspace  [root]/project
    Session    task-00000001 (active): one
    Last       cp-20260121-001 (TURN), 2 minutes ago
    Changes    0 new, 1 modified, 0 deleted since then
    Coverage   1 file, 1 B; nothing left out
    error      2026-01-21 14:33 a END checkpoint failed: the agent's hook ran out of time
    ");
}

/// On a disk without a byte left, the name of a file can still be written, and nothing into it.
#[test]
fn what_a_full_disk_took_is_told_once() {
    let claude = Claude::new();
    claude.env.write("a", "1");
    claude.turn(1, "one", "One.");
    let spool = claude.env.store().join("spool");
    fs::create_dir_all(&spool).unwrap();
    let torn = fs::File::create(spool.join("01990000-0000-7000-8000-000000000001-0.part")).unwrap();
    torn.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let told = claude.env.biv(&["session", "list"]).ok().stderr;
    let start = "note: what an agent told ";
    let end = " ago could not be kept; most likely the disk was full, or a limit (`ulimit`) was reached\n";
    assert!(told.starts_with(start) && told.ends_with(end), "{told}");
    assert_eq!(claude.env.biv(&["session", "list"]).ok().stderr, "");
}
