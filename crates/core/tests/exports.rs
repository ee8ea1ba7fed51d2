//! Files that leave and come back: whole ones to the letter, and whatever anybody may write into them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

#[path = "exports/anything.rs"]
mod anything;
#[path = "exports/properties.rs"]
mod properties;
#[path = "exports/story.rs"]
mod story;

use std::path::PathBuf;

use bivouac_core::event::Event;
use bivouac_core::export::{checkpoint_md, handoff, import, memory, session_checkpoint};
use bivouac_core::text::Note;
use bivouac_core::work::{Blocker, Item, Noun, Outline, Phase, Task, TaskStatus, Work};
use story::{at, every_export, journaled, notification_system, sheet};

fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/exports").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The files are what people are shown: each change of one is looked at before it is made.
fn check_golden(name: &str, text: &str) {
    assert_eq!(golden(name), text, "{name}");
}

#[test]
fn the_whole_story_is_told_to_the_letter() {
    let sheet = notification_system();
    check_golden("SESSION-CHECKPOINT.md", &session_checkpoint::write(&sheet));
    check_golden("checkpoint.md", &checkpoint_md::write(&sheet));
    check_golden("HANDOFF.md", &handoff::write(&sheet));
    check_golden("MEMORY.md", &memory::section(&sheet));
    assert_eq!(checkpoint_md::file_name(&sheet), "2026-03-07-1530-push-notifier.md");
}

#[test]
fn an_empty_session_has_every_section_too() {
    let sheet = sheet(Work::default());
    check_golden("empty-SESSION-CHECKPOINT.md", &session_checkpoint::write(&sheet));
    check_golden("empty-checkpoint.md", &checkpoint_md::write(&sheet));
    assert_eq!(memory::section(&sheet).lines().count(), 9);
}

#[test]
fn what_is_written_is_read_back() {
    let sheet = notification_system();
    let file = session_checkpoint::write(&sheet);
    let parsed = session_checkpoint::parse(&file).unwrap();
    assert_eq!(parsed.feature.as_deref(), Some("notification-system"));
    assert_eq!(parsed.branch.as_deref(), Some("feat/notifications"));
    assert_eq!(parsed.issues, ["TAS-11", "TAS-12", "TAS-13", "TAS-14", "TAS-15", "PROJ-9", "#174"]);
    assert_eq!(parsed.ignored, [""; 0]);
    assert_eq!(import::changes(&sheet.work, parsed.items), [], "nothing of it is new");

    let parsed = checkpoint_md::parse(&checkpoint_md::write(&sheet)).unwrap();
    assert_eq!(parsed.ignored, [""; 0]);
    assert_eq!(import::changes(&sheet.work, parsed.items), [], "nothing of it is new");

    let block = handoff::write(&sheet);
    let file = handoff::merge(b"# Mine\n\nBefore.\n", &block).unwrap();
    let parsed = handoff::parse(&file).unwrap();
    assert_eq!(parsed.branch.as_deref(), Some("feat/notifications"));
    assert_eq!(import::changes(&sheet.work, parsed.items), [], "nothing of it is new");
}

/// What a hand has written, after the format this file comes from.
const BY_HAND: &str = include_str!("exports/by-hand.md");

#[test]
fn a_file_kept_by_hand_is_read() {
    let parsed = session_checkpoint::parse(BY_HAND).unwrap();
    assert_eq!(parsed.feature.as_deref(), Some("Search filters"));
    assert_eq!(parsed.updated.as_deref(), Some("2026-03-01 14:45"));
    assert_eq!(parsed.issues, ["TAS-12", "TAS-13", "TAS-14"]);
    assert_eq!(parsed.ignored, ["line 82: **Mood:** fine", "Scratch Pad"]);
    assert!(parsed.items.iter().all(|item| item.key().is_empty() == needs_key(item)));
    let work = journaled(Work::default(), import::changes(&Work::default(), parsed.items));
    check_golden("by-hand-again.md", &session_checkpoint::write(&sheet(work)));
}

/// Does the journal give out the key of a thing that comes from a hand-written file?
fn needs_key(item: &Item) -> bool {
    !matches!(item.noun(), Noun::Step | Noun::Delegation | Noun::Partition)
}

#[test]
fn a_file_reads_the_same_however_it_was_mangled() {
    let expected = session_checkpoint::parse(BY_HAND).unwrap();
    let broken = BY_HAND
        .replace('✅', "‚úÖ")
        .replace('❌', "‚ùå")
        .replace('🔄', "\u{f8ff}üîÑ")
        .replace('→', "‚Üí")
        .replace('—', "‚Äî");
    assert_ne!(broken, BY_HAND);
    for file in [
        broken,
        BY_HAND.replace('\n', "\r\n"),
        format!("\u{feff}{BY_HAND}"),
        BY_HAND.replace("Phase 2 of 5 —", "Phase 2 of 5 -"),
        BY_HAND.replace("Phase 2 of 5 —", "Phase 2 of 5:"),
        BY_HAND.replace("**Linear Issues:**", "**Issues:**"),
    ] {
        assert_eq!(session_checkpoint::parse(&file).unwrap(), expected);
    }
}

#[test]
fn sections_may_be_missing() {
    let parsed =
        session_checkpoint::parse("# Session Checkpoint\n\n## Current Phase\n\nreview\n").unwrap();
    assert_eq!(parsed.items.len(), 1);
    assert_eq!(session_checkpoint::parse("# Session Checkpoint").unwrap().items, []);
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let check = |from: &str, to: &str, expected: &str| {
        let file = BY_HAND.replacen(from, to, 1);
        assert_ne!(file, BY_HAND, "{from}");
        assert_eq!(session_checkpoint::parse(&file).unwrap_err().to_string(), expected);
    };
    check("# Session Checkpoint", "# Notes", "line 1: the title `# Session Checkpoint` is missing");
    check(
        "| DB Engineer | ✅ Done |",
        "| ✅ Done |",
        "line 17: the row has 4 cells, the table 5 columns",
    );
    check("🔄 In Progress", "who knows", "line 23: `who knows` is no status");
    check("Agent C: docs/\n```", "Agent C: docs/\n", "line 63: the code fence is never closed");
    let huge = format!("**Feature:** {}", "x".repeat(Note::MAX_BYTES + 1));
    check(
        "**Feature:** Search filters",
        &huge,
        "line 4: the text has 65537 bytes; at most 65536 are kept",
    );
    assert_eq!(
        checkpoint_md::parse("# Notes\n").unwrap_err().to_string(),
        "line 1: no heading begins with `checkpoint`"
    );
    assert_eq!(
        handoff::parse(b"## Session Handoff: x\n### Task\n\xff\n").unwrap_err().to_string(),
        "line 3: the line is not UTF-8"
    );
}

#[test]
fn importing_a_file_twice_changes_nothing_the_second_time() {
    for file in [BY_HAND.to_owned(), session_checkpoint::write(&notification_system())] {
        let items = || session_checkpoint::parse(&file).unwrap().items;
        let first = import::changes(&Work::default(), items());
        assert!(!first.is_empty());
        let work = journaled(Work::default(), first);
        assert_eq!(import::changes(&work, items()), []);
    }
}

#[test]
fn a_thing_without_a_key_is_known_by_its_title_or_its_issue() {
    let work = notification_system().work;
    let task = |subject: &str, issue: Option<&str>| {
        Item::Task(Box::new(Task {
            subject: Some(subject.parse().unwrap()),
            issue: issue.map(str::to_owned),
            status: Some(TaskStatus::Dropped),
            ..Task::default()
        }))
    };
    let task_of = |item: Item| match item {
        Item::Task(task) => task,
        other => panic!("{other:?}"),
    };
    let keys = |found: Vec<Item>| -> Vec<String> {
        let events = import::changes(&work, found);
        events.iter().flat_map(Item::all_of).map(|item| item.key().to_owned()).collect()
    };
    assert_eq!(keys(vec![task("push-notifier", None)]), ["002"]);
    assert_eq!(keys(vec![task("Notifier for pushes", Some("TAS-13"))]), ["002"]);
    assert_eq!(keys(vec![task("something else", Some("TAS-99"))]), [""]);
    assert_eq!(keys(vec![task("push-notifier", None), task("push-notifier", None)]), ["002", ""]);
    let twin = Task { task: "007".to_owned(), ..*task_of(task("push-notifier", Some("#7"))) };
    let mut work = work.clone();
    work.apply(&Event::TaskChanged(Box::new(twin)), at(100));
    let found = vec![task("push-notifier", Some("#7")), task("push-notifier", Some("TAS-13"))];
    let events = import::changes(&work, found);
    assert_eq!(events.len(), 1, "the twin is known already: {events:?}");
}

#[test]
fn a_text_that_was_cut_does_not_replace_the_whole() {
    let mut work = Work::default();
    let long = "why it is so ".repeat(2_000);
    let outline = Outline { approach: Some(long.parse().unwrap()), ..Outline::default() };
    work.apply(&Event::SessionDescribed(Box::new(outline)), at(0));
    let sheet = sheet(work);
    let block = handoff::write(&sheet);
    assert!(block.len() <= handoff::MAX_BYTES);
    let found = handoff::parse(block.as_bytes()).unwrap().items;
    let events = import::changes(&sheet.work, found);
    let approaches = events
        .iter()
        .flat_map(Item::all_of)
        .filter(|item| matches!(item, Item::Outline(outline) if outline.approach.is_some()));
    assert_eq!(approaches.count(), 0);
}

#[test]
fn a_handoff_leaves_out_the_oldest_and_says_so() {
    let mut work = Work::default();
    for number in 0..900 {
        let task = Task {
            task: format!("{number:03}"),
            subject: Some(format!("A piece of work with number {number}").parse().unwrap()),
            status: Some(TaskStatus::Completed),
            ..Task::default()
        };
        work.apply(&Event::TaskChanged(Box::new(task)), at(number));
    }
    let block = handoff::write(&sheet(work));
    assert!(block.len() <= handoff::MAX_BYTES && block.len() > handoff::MAX_BYTES - 200);
    assert!(block.contains(" earlier done tasks left out\n"));
    assert!(block.contains("number 899") && !block.contains("number 12 "));
    let crowd = (0..60).map(|number| Blocker {
        blocker: format!("b{number}"),
        what: Some("🚧".repeat(9_000).parse().unwrap()),
        ..Blocker::default()
    });
    let mut work = Work::default();
    crowd.for_each(|it| work.apply(&Event::BlockerChanged(Box::new(it)), at(0)));
    assert!(handoff::write(&sheet(work)).len() <= handoff::MAX_BYTES);
}

#[test]
fn a_handoff_keeps_what_is_not_ours() {
    let block = handoff::write(&notification_system());
    let check = |before: &[u8], after: &[u8]| {
        let old = [before, b"<!-- biv:begin -->\nold\n<!-- biv:end -->", after].concat();
        let new = handoff::merge(&old, &block).unwrap();
        assert!(new.starts_with(before) && new.ends_with(after));
        assert_eq!(handoff::merge(&new, &block).unwrap(), new);
    };
    check(b"", b"");
    check(b"caf\xe9\n\n", b"\n\nmore \xff");
    check(b"windows\r\n", b"\r\n");
    check(b"```\n<!-- biv:begin -->\n```\n", b"\n~~~\n<!-- biv:end -->\n~~~\n");
    assert_eq!(handoff::merge(b"", &block).unwrap(), block.as_bytes());
    assert_eq!(handoff::merge(b"a", &block).unwrap(), [b"a\n\n", block.as_bytes()].concat());
    let windows = handoff::merge(b"a\r\n", &block).unwrap();
    assert!(!String::from_utf8(windows).unwrap().replace("\r\n", "").contains('\n'));
}

#[test]
fn a_handoff_whose_block_is_unclear_is_left_alone() {
    let check = |file: &str, expected: &str| {
        assert_eq!(handoff::merge(file.as_bytes(), "x\n").unwrap_err().to_string(), expected);
    };
    let (begin, end) = ("<!-- biv:begin -->\n", "<!-- biv:end -->\n");
    check(&format!("a\n{begin}"), "line 2: the block does not end");
    check(&format!("a\n{end}{begin}"), "line 2: the block ends before it begins");
    check(&format!("{begin}{end}{begin}{end}"), "line 3: there is a second block");
    check(&format!("{begin}{begin}{end}"), "line 2: the block before this one does not end");
    check(&format!("{begin}{end}{end}"), "line 3: the block ends a second time");
    check("a\n```\n", "line 2: the code fence is never closed");
}

#[test]
fn memory_is_changed_in_one_place_only() {
    let section = memory::section(&notification_system());
    let check = |before: &[u8], old: &[u8], after: &[u8]| {
        let new = memory::merge(&[before, old, after].concat(), &section).unwrap();
        let windows = section.replace('\n', "\r\n");
        let ours = if before.contains(&b'\r') { &windows } else { &section };
        let expected = [before, ours.trim_end().as_bytes(), after].concat();
        assert_eq!(String::from_utf8_lossy(&new), String::from_utf8_lossy(&expected));
        assert_eq!(memory::merge(&new, &section).unwrap(), new);
    };
    let old = b"## Working State\n- **Branch**: x\n\n- **Task**: y\n  goes on";
    check(b"# Notes\n\n", old, b"\n\n## Stable Notes\n- caf\xe9\n");
    check(b"", old, b"\n# Next");
    check(b"", b"## working state ##", b"");
    check(b"windows\r\n", b"## Working State\r\n- **Task**: b", b"\r\n\r\n## B\r\n");
    check(b"```\n## Working State\n```\n", old, b"\n");
    check("\u{feff}".as_bytes(), old, b"");
}

#[test]
fn memory_without_a_section_gets_it_at_the_top() {
    let section = memory::section(&notification_system());
    let check = |top: &str, rest: &str| {
        let new = memory::merge(format!("{top}{rest}").as_bytes(), &section).unwrap();
        let gap = match rest.is_empty() || rest.starts_with('#') {
            true if rest.is_empty() => "",
            true => "\n",
            false => "<!-- end of Working State -->\n\n",
        };
        assert_eq!(String::from_utf8(new.clone()).unwrap(), format!("{top}{section}{gap}{rest}"));
        assert_eq!(memory::merge(&new, &section).unwrap(), new);
    };
    check("", "");
    check("", "# Notes\n");
    check("\u{feff}", "# Notes\n");
    check("---\nname: x\n---\n", "# Notes\n");
    check("\u{feff}---\nname: x\n---\n", "");
    check("", "---\nno front matter\n");
    check("", "```\n## Working State\n");
}

#[test]
fn memory_that_holds_notes_is_left_alone() {
    let check = |file: &str, expected: &str| {
        assert_eq!(memory::merge(file.as_bytes(), "x\n").unwrap_err().to_string(), expected);
    };
    check(
        "## Working State\n- **Branch**: x\nRemember the milk\n",
        "line 3: the section `Working State` holds notes that are not ours",
    );
    check(
        "## Working State\n### Deeper\n",
        "line 2: the section `Working State` holds notes that are not ours",
    );
    check(
        "## Working State\n\n## Working State\n",
        "line 3: there is a second section `Working State`",
    );
}

#[test]
fn labels_are_short_and_safe() {
    let work = notification_system().work;
    let mut session = sheet(Work::default()).session;
    let label = checkpoint_md::label;
    assert_eq!(label(&session, &work), "push-notifier");
    assert_eq!(label(&session, &Work::default()), "notification-system");
    session.name = None;
    assert_eq!(label(&session, &Work::default()), "build-notification-system");
    session.task_description = None;
    assert_eq!(label(&session, &Work::default()), "checkpoint");
    let mut phase = Work::default();
    let review = Phase { name: Some("code review".to_owned()), ..Phase::default() };
    phase.apply(&Event::PhaseChanged(Box::new(review)), at(0));
    assert_eq!(label(&session, &phase), "code-review");
    for (text, expected) in [
        ("Auth Middleware!", "auth-middleware"),
        ("../../etc/passwd", "etc-passwd"),
        ("Größe ändern", "größe-ändern"),
        ("", "checkpoint"),
        ("--- ", "checkpoint"),
        ("CON", "checkpoint-con"),
        ("com1", "checkpoint-com1"),
        ("a\u{202e}b\n", "a-b"),
    ] {
        assert_eq!(checkpoint_md::kebab(text), expected);
    }
}

#[test]
fn secrets_do_not_leave() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let mut sheet = notification_system();
    for item in sheet.work.items() {
        let data = item.into_event();
        let told = data.data().replace("Redis", secret).replace("provider", secret);
        if let Ok(event) = Event::parse(data.kind(), &told) {
            sheet.work.apply(&event, at(1_000));
        }
    }
    sheet.pipeline = Some(format!("{{\"token\": \"{secret}\"}}"));
    sheet.spine = vec![secret.to_owned()];
    sheet.branch = Some(secret.to_owned());
    sheet.label = secret.to_owned();
    for text in every_export(&sheet) {
        assert!(!text.contains(secret) && !text.contains(&secret.replace('_', "-")), "{text}");
    }
}
