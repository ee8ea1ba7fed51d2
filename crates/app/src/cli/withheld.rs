//! Files that stay behind when a bundle is shared: how they are shown, on both sides.

use bivouac_core::text::count;
use bivouac_engine::bundle::{Reason, Withheld};
use serde_json::{Value, json};

use crate::contract;

/// Longer lists are cut on the screen; the manifest and `--json` have all.
const MANY: usize = 20;

/// As in "2 files: `.env` (by name), `src/a.py` (a secret in it)".
///
/// The word "secrets" may not stand before the colon: the redactor would take the paths for some.
pub fn sentence(withheld: &[Withheld]) -> String {
    let shown: Vec<String> = withheld.iter().take(MANY).map(one).collect();
    let rest = match withheld.len().saturating_sub(MANY) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let n_files = count(withheld.len() as u64, "file");
    format!("{n_files}: {}{rest}", shown.join(", "))
}

fn one(it: &Withheld) -> String {
    match it.reason {
        Some(reason) => format!("`{}` ({})", it.path, word(reason)),
        None => format!("`{}`", it.path),
    }
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Name => "by name",
        Reason::Contents => "a secret in it",
        Reason::Include => "in `workspace.include`",
        Reason::Other => "another reason",
    }
}

pub fn documents(withheld: &[Withheld]) -> Vec<Value> {
    let document = |it: &Withheld| {
        json!({
            "path": contract::path_bytes(it.path.as_bytes()),
            "reason": it.reason.map(Reason::as_str),
        })
    };
    withheld.iter().map(document).collect()
}
