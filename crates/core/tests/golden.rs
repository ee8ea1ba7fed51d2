//! Every kind of event as it is stored, for ever. A file here never changes: what an old version wrote
//! must read, and must be written back to the letter.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bivouac_core::event::Event;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn every_kind_has_its_file() {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> =
        files.map(|name| name.trim_end_matches(".json").to_owned()).collect();
    let known: BTreeSet<String> = Event::KINDS.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(found, known);
}

#[test]
fn what_was_written_reads_and_is_written_back_to_the_letter() {
    for kind in Event::KINDS {
        let golden = std::fs::read_to_string(folder().join(format!("{kind}.json"))).unwrap();
        let event = Event::parse(kind, golden.trim_end()).unwrap();
        assert!(!matches!(event, Event::Unknown { .. }), "{kind}");
        assert_eq!(event.data(), golden.trim_end(), "{kind}");
    }
}

/// The files themselves are held by their hashes, so that a test and its file cannot change together.
/// A new kind adds a line; no line ever changes.
const AGREED: &[(&str, &str)] = &[
    ("session.created", "ca3f6f06968284e8"),
    ("session.renamed", "6b38dd5a60ebcfef"),
    ("session.paused", "71ed04a2716ab7d2"),
    ("session.resumed", "4bddada1d0a80d4b"),
    ("session.completed", "4bddada1d0a80d4b"),
    ("session.failed", "af9d9e7cdaabb48c"),
    ("checkpoint.taken", "3a072215c9914085"),
    ("checkpoint.skipped", "91dc19f3ff401de3"),
    ("checkpoint.failed", "a7a39b06e29d1b13"),
    ("checkpoint.deleted", "fb1014a504135d9f"),
    ("checkpoint.pinned", "43513f8e74881653"),
    ("checkpoint.unpinned", "43513f8e74881653"),
    ("operation.started", "15a2b6b4c9643725"),
    ("operation.finished", "5ca89a066cb1cef3"),
    ("log.noted", "063ac8c7084f584f"),
    ("conversation.started", "184c077f9c8af99a"),
    ("conversation.ended", "32f91643470f12bc"),
    ("conversation.compacted", "2b1c2bff69c9da8d"),
    ("conversation.rewound", "9aaaeac5b41daac8"),
    ("prompt.given", "870cbf64fe4daaae"),
    ("turn.ended", "5ce5da990c08158a"),
    ("tool.used", "0ecb3adb11514010"),
    ("subagent.started", "d259803f3d912678"),
    ("subagent.stopped", "434437f42472ca18"),
    ("approval.asked", "0c0e3e40edb47452"),
    ("task.changed", "ad49b76915644cc4"),
    ("session.described", "f964fb09ec003b97"),
    ("phase.changed", "37a0076143e86830"),
    ("artifact.changed", "6cc3d747d7ed51a4"),
    ("decision.made", "58daad06439b1436"),
    ("blocker.changed", "4c5dd0f667d25800"),
    ("approval.changed", "e58548e72b1cab12"),
    ("gate.executed", "3d567bf60b698b08"),
    ("step.changed", "17440b49772b7e68"),
    ("delegation.changed", "e6b8b3c920ffe099"),
    ("fork_point.changed", "4f5467087cfe9cc9"),
    ("partition.changed", "86c9a289c7cc7296"),
    ("worktree.changed", "1d60ce264dec96fa"),
    ("note.added", "c9f321bace20e6b8"),
    ("commit.seen", "7c2423d1f1b17fe1"),
    ("tests.run", "eff3826dd183ddb5"),
    ("session.interrupted", "7acf26d29485c7a3"),
    ("run.started", "f657cb51db7c5d24"),
    ("run.ended", "5bc8dd04f89093da"),
    ("session.moved", "fc16f0c763419433"),
];

#[test]
fn the_files_are_the_ones_that_were_agreed_on() {
    for (kind, agreed) in AGREED {
        let golden = std::fs::read(folder().join(format!("{kind}.json"))).unwrap();
        assert_eq!(&blake3::hash(&golden).to_hex()[..16], *agreed, "{kind}");
    }
    assert_eq!(AGREED.len(), Event::KINDS.len());
}
