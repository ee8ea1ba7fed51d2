//! What came of it, as rows that say how to have them again. Each part has its place in `docs/proof.md`, and a line in
//! the README.

use std::fs;
use std::path::Path;

use crate::Result;

/// One promise, how often it was tried, and what broke it.
pub(super) struct Row {
    /// What was done.
    pub(super) what: String,
    /// How often.
    pub(super) n_tried: u64,
    /// What was found, each with the command that shows it again. Empty is what we are after.
    pub(super) broken: Vec<String>,
    /// Other figures, in a few words.
    pub(super) figures: String,
}

impl Row {
    pub(super) fn print(&self) {
        let Self { what, n_tried, broken, figures } = self;
        println!("   {what}: {n_tried} tried, {} broken  {figures}", broken.len());
        for broken in broken.iter().take(20) {
            println!("      {}", broken.trim_end().replace('\n', "\n      "));
        }
    }

    fn line(&self) -> String {
        let Self { what, n_tried, broken, figures } = self;
        format!(
            "| {what} | {} | {} | {} |\n",
            grouped(*n_tried),
            told(broken.len()),
            figures.replace('|', "\\|")
        )
    }
}

/// Puts the rows of a part between its marks, and their sum into the README.
pub(super) fn put(
    root: &Path,
    (part, about): (&str, &str),
    rows: &[Row],
    again: &str,
) -> Result<()> {
    let lines: String = rows.iter().map(Row::line).collect();
    let table = format!("`{again}`\n\n| | tried | broken | |\n|---|---|---|---|\n{lines}");
    let proof = root.join("docs/proof.md");
    let text = fs::read_to_string(&proof)?;
    fs::write(&proof, with_table(&text, part, &table)?)?;
    let n_tried: u64 = rows.iter().map(|row| row.n_tried).sum();
    let n_broken = rows.iter().map(|row| row.broken.len()).sum();
    let line = format!(
        "| [{part}](docs/proof.md#{part}) | {about} | {} | {} |",
        grouped(n_tried),
        told(n_broken)
    );
    let readme = root.join("README.md");
    let text = fs::read_to_string(&readme)?;
    fs::write(&readme, with_line(&text, part, &line)?)?;
    println!("   put into docs/proof.md and README.md");
    Ok(())
}

fn with_table(text: &str, part: &str, table: &str) -> Result<String> {
    let start = format!("<!-- proof {part} -->\n");
    let at =
        text.find(&start).ok_or_else(|| format!("docs/proof.md has no mark `{}`", start.trim()))?;
    let from = at + start.len();
    let to = from + text[from..].find("<!-- end -->").ok_or("docs/proof.md has no end mark")?;
    Ok([&text[..from], table, &text[to..]].concat())
}

fn with_line(text: &str, part: &str, line: &str) -> Result<String> {
    let start = format!("| [{part}]");
    let old = text.lines().find(|it| it.starts_with(&start));
    let old = old.ok_or_else(|| format!("README.md has no line that starts with `{start}`"))?;
    Ok(text.replacen(old, line, 1))
}

/// A number that stands out where it should be nothing.
fn told(n_broken: usize) -> String {
    match n_broken {
        0 => "0".to_owned(),
        n => format!("**{n}**"),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_place() {
        let text = "a\n<!-- proof kills -->\nold\n<!-- end -->\nb\n";
        let put = with_table(text, "kills", "new\n").unwrap();
        assert_eq!(put, "a\n<!-- proof kills -->\nnew\n<!-- end -->\nb\n");
        assert!(with_table(text, "power", "new").is_err());
        let text = "| [kills](x) | old |\n| [power](x) | old |\n";
        assert_eq!(with_line(text, "power", "| new |").unwrap(), "| [kills](x) | old |\n| new |\n");
    }

    #[test]
    fn large_numbers_are_readable() {
        assert_eq!([7, 1_000, 1_234_567].map(grouped), ["7", "1,000", "1,234,567"]);
    }
}
