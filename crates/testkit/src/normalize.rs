//! Makes two runs of the same story read the same.

use std::path::Path;

/// Names random things by the order in which they appear: `task-00000001`, `id-1`, `hash-1`.
pub struct Normalizer {
    root: String,
    seen: Vec<(String, String)>,
    counts: [usize; 3],
}

impl Normalizer {
    pub fn new(root: &Path) -> Self {
        Self { root: root.display().to_string(), seen: Vec::new(), counts: [0; 3] }
    }

    pub fn apply(mut self, text: &str) -> String {
        let machine = rustix::system::uname();
        let own = format!("tester@{}", machine.nodename().to_string_lossy());
        let text = text.replace(&self.root, "[root]").replace(&own, "tester@here");
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphanumeric()) {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
            out.push_str(&self.name(word));
            rest = behind;
        }
        out.push_str(rest);
        without_costs(&out)
    }

    fn name(&mut self, word: &str) -> String {
        let (kind, which): (&str, usize) = match word {
            _ if word.len() == 13 && word.starts_with("task-") => ("task-", 0),
            _ if word.len() == 36 && word.matches('-').count() == 4 => ("id-", 1),
            _ if word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                ("hash-", 2)
            }
            _ => return word.to_owned(),
        };
        if let Some((_, name)) = self.seen.iter().find(|(own, _)| own == word) {
            return name.clone();
        }
        self.counts[which] += 1;
        // A handle keeps its length, so that columns stay in line.
        let name = match kind {
            "task-" => format!("task-{:08}", self.counts[which]),
            _ => format!("{kind}{}", self.counts[which]),
        };
        self.seen.push((word.to_owned(), name.clone()));
        name
    }
}

/// Costs depend on the letters of random ids.
pub fn without_costs(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in ["Context cost: ~", "the least that is possible is "] {
        let mut from = 0;
        while let Some(place) = text[from..].find(mark) {
            let start = from + place + mark.len();
            let rest = &text[start..];
            let length = rest.find([' ', '\n']).unwrap_or(rest.len());
            text.replace_range(start..start + length, "N");
            from = start;
        }
    }
    text
}
