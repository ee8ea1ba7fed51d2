//! What is true of every file, whatever was written into it.

use bivouac_core::event::Event;
use bivouac_core::export::{Sheet, checkpoint_md, handoff, import, memory, session_checkpoint};
use bivouac_core::text::Note;
use bivouac_core::work::{Outline, Work};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, prop_assert_eq, proptest};

use crate::anything::{any_work, bytes, folded, nasty};
use crate::story::{at, every_export, journaled, sheet};

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_that_was_read_is_written_to_the_letter(work in any_work()) {
        let first = sheet(work);
        let text = session_checkpoint::write(&first);
        let parsed = session_checkpoint::parse(&text);
        let parsed = parsed.map_err(|bad| TestCaseError::fail(format!("{bad}\n{text}")))?;
        prop_assert_eq!(&parsed.ignored, &Vec::<String>::new());
        let again = Sheet { work: folded(&parsed.items), ..first.clone() };
        prop_assert_eq!(session_checkpoint::write(&again), text);
        let events = import::changes(&first.work, parsed.items);
        // The one thing a file says and the work may not: the name of the session as its feature.
        let is_feature = |event: &Event| {
            matches!(event, Event::SessionDescribed(it) if **it == Outline {
                feature: it.feature.clone(), by: it.by, ..Outline::default()
            })
        };
        prop_assert!(events.iter().all(is_feature), "{:?}", events);
        let work = journaled(first.work.clone(), events);
        let items = session_checkpoint::parse(&session_checkpoint::write(&again)).unwrap().items;
        prop_assert_eq!(import::changes(&work, items), vec![]);
    }

    #[test]
    fn the_other_files_are_written_to_the_letter_too(work in any_work()) {
        let first = sheet(work);
        for write in [checkpoint_md::write, handoff::write] {
            let text = write(&first);
            let parsed = match text.starts_with("# Checkpoint") {
                true => checkpoint_md::parse(&text).unwrap(),
                false => handoff::parse(text.as_bytes()).unwrap(),
            };
            prop_assert_eq!(&parsed.ignored, &Vec::<String>::new());
            // What these files do not hold is taken from the first work, as an import would leave it.
            let mut work = first.work.clone();
            work.tasks.clear();
            work.decisions.clear();
            work.blockers.clear();
            for item in &parsed.items {
                work.apply(&item.clone().into_event(), at(9_000));
            }
            prop_assert_eq!(write(&Sheet { work, ..first.clone() }), text);
        }
    }

    #[test]
    fn no_text_changes_the_shape_of_a_document(text in nasty(), work in any_work()) {
        let empty = sheet(Work::default());
        let mut full = sheet(work);
        full.branch = Some(text.clone());
        full.label = text.clone();
        full.pipeline = Some(text.clone());
        full.spine = vec![text.clone()];
        full.session.task_description = Some(Note::cut(&text));
        let of = |sheet: &Sheet| headings(&checkpoint_md::write(sheet));
        prop_assert_eq!(of(&full), of(&empty));
        prop_assert_eq!(headings(&handoff::write(&full)), headings(&handoff::write(&empty)));
        let is_fork = |it: &String| it.starts_with("## Fork Point") || it.starts_with("###") || it == "## Step Output Log";
        let mut found = headings(&session_checkpoint::write(&full));
        found.retain(|it| !is_fork(it));
        prop_assert_eq!(found, headings(&session_checkpoint::write(&empty)));
        prop_assert_eq!(memory::section(&full).lines().count(), 9);
        for text in every_export(&full) {
            let is_safe = |it: char| it == '\n' || bivouac_core::text::printable(it.encode_utf8(&mut [0; 4])).chars().eq([it]);
            prop_assert!(text.chars().all(is_safe));
        }
        for text in &every_export(&full)[..4] {
            prop_assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
        }
    }

    #[test]
    fn every_other_byte_of_a_handoff_is_kept(before in bytes(), after in bytes()) {
        let block = "<!-- biv:begin -->\nnew\n<!-- biv:end -->\n";
        if let Ok(new) = handoff::merge(&before, block) {
            let has_block = before.windows(4).any(|it| it == b"biv:");
            prop_assert!(has_block || new.starts_with(&before));
            prop_assert_eq!(handoff::merge(&new, block).unwrap(), new);
        }
        let (before, after) = (plain(&before), plain(&after));
        let old = [&before[..], b"\n<!-- biv:begin x -->\nold\n<!-- biv:end --> \n", &after].concat();
        let new = handoff::merge(&old, block).unwrap();
        let ending = ending(&old);
        let block = block.trim_end().replace('\n', ending);
        prop_assert_eq!(new, [&before[..], b"\n", block.as_bytes(), b" \n", &after].concat());
    }

    #[test]
    fn every_other_byte_of_a_memory_is_kept(before in bytes(), after in bytes()) {
        let section = "## Working State\n- **Branch**: new\n";
        if let Ok(new) = memory::merge(&before, section) {
            prop_assert_eq!(memory::merge(&new, section).unwrap(), new);
        }
        let (before, after) = (plain(&before), plain(&after));
        let new = memory::merge(&before, section).unwrap();
        let start = new.windows(16).position(|it| it == b"## Working State").unwrap();
        let end = start + new[start..].windows(3).position(|it| it == b"new").unwrap() + 3;
        let closing: &[u8] = b"<!-- end of Working State -->";
        let rest = new[end..].trim_ascii_start();
        let rest = rest.strip_prefix(closing).unwrap_or(rest).trim_ascii_start();
        prop_assert!(before.starts_with(new[..start].trim_ascii_end()) && before.ends_with(rest));
        let n_kept = new[..start].trim_ascii_end().len() + rest.len();
        prop_assert!(before.len() - n_kept <= before.iter().filter(|it| it.is_ascii_whitespace()).count());
        let old = [&before[..], b"\n## Working State\n- **Branch**: old \n\n# Next\n", &after].concat();
        let new = memory::merge(&old, section).unwrap();
        let ending = ending(&old);
        let section = section.trim_end().replace('\n', ending);
        prop_assert_eq!(new, [&before[..], b"\n", section.as_bytes(), b" \n\n# Next\n", &after].concat());
    }

    #[test]
    fn no_file_makes_a_reader_fall_over(file in bytes(), lines in vec(nasty(), 0..12)) {
        let text = format!("# Session Checkpoint\n{}", lines.join("\n"));
        let all = [&text, &text.replace("Session ", ""), &String::from_utf8_lossy(&file).into_owned()];
        for text in all {
            session_checkpoint::parse(text).ok();
            checkpoint_md::parse(text).ok();
            handoff::parse(text.as_bytes()).ok();
        }
    }

    #[test]
    fn a_label_is_a_file_name(text in nasty(), more in ".{0,90}") {
        let label = checkpoint_md::kebab(&format!("{text}{more}"));
        prop_assert!(!label.is_empty() && label.chars().count() <= 60 && label.len() <= 180);
        prop_assert!(!label.starts_with('-') && !label.ends_with('-'));
        prop_assert!(label.chars().all(|it| it.is_alphanumeric() || it == '-'));
    }
}

/// The same lines with every text of ours taken out: what is left is the shape of the document.
fn headings(text: &str) -> Vec<String> {
    let mut fence: Option<String> = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let ticks: String = line.chars().take_while(|it| *it == '`').collect();
        match &fence {
            Some(open) if ticks.len() >= open.len() && ticks == line => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            None if is_heading(line) || line.starts_with("<!--") => {
                found.push(line.split(':').next().unwrap().to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(fence, None);
    found
}

/// Markdown wants a blank, or the end of the line, after the signs: `#: text` is not a heading.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.len() < line.len() && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// How the first line of a file ends.
fn ending(file: &[u8]) -> &'static str {
    let first = file.split(|byte| *byte == b'\n').next().unwrap();
    if first.ends_with(b"\r") { "\r\n" } else { "\n" }
}

/// The same bytes without what could be taken for a fence or for something of ours.
fn plain(file: &[u8]) -> Vec<u8> {
    let is_plain = |line: &&[u8]| {
        !line.contains(&b'`')
            && !line.contains(&b'~')
            && *line != b"---"
            && !line.windows(4).any(|it| it == b"biv:" || it == b"Work")
    };
    file.split(|byte| *byte == b'\n').filter(is_plain).collect::<Vec<_>>().join(&b'\n')
}
