//! What can happen in a story, and how a story is made up.

use crate::prove::dice::Dice;

/// One thing that happens. Numbers choose among what is there.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Write {
        path: usize,
        contents: u64,
        length: usize,
    },
    Append {
        path: usize,
    },
    Remove {
        path: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Link {
        path: usize,
        target: usize,
    },
    Folder {
        path: usize,
    },
    Mode {
        path: usize,
        mode: u32,
    },
    /// Into a file that git ignores, and checkpoints leave out.
    Ignored {
        contents: u64,
    },
    Checkpoint,
    Rollback {
        checkpoint: usize,
    },
    RollbackPath {
        checkpoint: usize,
        path: usize,
    },
    Undo,
    Redo,
    Fork {
        checkpoint: usize,
    },
    Restore {
        checkpoint: usize,
    },
    Delete {
        checkpoint: usize,
    },
    Gc,
}

/// Few names, so that files become folders and folders become links; some that are no text, or nearly none.
pub(super) const PATHS: [&[u8]; 22] = [
    b"a",
    b"b",
    b"c",
    b"a/x",
    b"a/y",
    b"b/x",
    b"b/x/deep",
    b"c/z",
    b"d/e/f",
    b"d/e",
    b"d",
    "\u{e9}t\u{e9}/\u{f1}".as_bytes(),
    b"not-\xff\xfe-text",
    b"not-\xff\xfe-text/inside",
    b"line\nbreak",
    b" blanks and \"quotes\" ",
    b"-n",
    b"*",
    b".hidden/.x",
    b"back\\slash",
    b"\x1b[31mred",
    LONG,
];

/// As long as a name can be.
const LONG: &[u8] = &[b'n'; 255];

/// Where links lead: inside, to nothing, in a circle, and to what is nobody's business.
pub(super) const TARGETS: [&str; 7] =
    ["a", "../b", "gone", ".", "../outside/mine", "../outside", "/dev/null"];

const MODES: [u32; 7] = [0o600, 0o644, 0o755, 0o700, 0o444, 0o777, 0o500];

/// A story of five to forty acts.
pub(super) fn story(dice: &mut Dice) -> Vec<Act> {
    let length = 5 + dice.below(36);
    (0..length).map(|_| act(dice)).collect()
}

fn act(dice: &mut Dice) -> Act {
    let path = dice.below(PATHS.len());
    let checkpoint = dice.below(20);
    match dice.below(39) {
        0..=6 => {
            let length =
                if dice.below(3) == 0 { 3_000 + dice.below(6_000) } else { dice.below(200) };
            Act::Write { path, contents: dice.roll(), length }
        }
        7..=8 => Act::Append { path },
        9..=11 => Act::Remove { path },
        12..=13 => Act::Rename { from: path, to: dice.below(PATHS.len()) },
        14..=15 => Act::Link { path, target: dice.below(TARGETS.len()) },
        16 => Act::Folder { path },
        17..=18 => Act::Mode { path, mode: *dice.one(&MODES) },
        19 => Act::Ignored { contents: dice.roll() },
        20..=24 => Act::Checkpoint,
        25..=28 => Act::Rollback { checkpoint },
        29..=30 => Act::RollbackPath { checkpoint, path },
        31..=33 => Act::Undo,
        34..=35 => Act::Redo,
        36 => match dice.below(2) {
            0 => Act::Fork { checkpoint },
            _ => Act::Restore { checkpoint },
        },
        37 => Act::Delete { checkpoint },
        _ => Act::Gc,
    }
}
