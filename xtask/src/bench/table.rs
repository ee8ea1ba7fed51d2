//! What was measured, as a table for people.

use std::path::Path;
use std::time::Duration;

use super::BenchArgs;
use super::measure::Measured;
use super::workspace::Made;
use crate::Result;

/// One thing that was done, by several.
pub(super) struct Row {
    what: String,
    names: Vec<String>,
    pub(super) cells: Vec<Option<Measured>>,
}

impl Row {
    pub(super) fn new(what: &str, names: Vec<String>) -> Self {
        let cells = vec![None; names.len()];
        Self { what: what.to_owned(), names, cells }
    }
}

/// What was done often, by how long it took.
pub(super) fn spread<'w>(rows: impl IntoIterator<Item = (&'w str, Vec<Duration>)>) -> String {
    let row = |(what, mut times): (&str, Vec<Duration>)| {
        times.sort_unstable();
        let at = |share: f64| {
            times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3
        };
        format!("| {what} | {:.1} ms | {:.1} ms | {:.1} ms |\n", at(0.5), at(0.9), at(0.99))
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!("| | p50 | p90 | p99 |\n|---|---|---|---|\n{rows}")
}

/// Our own figure first, then each other's with how many times ours it is.
pub(super) fn render(rows: &[Row], made: Made, args: &BenchArgs) -> String {
    let megabytes = made.bytes / 1_000_000;
    let mut text = format!(
        "{} files, {} folders, {megabytes} MB; medians of {} rounds; × is how many times ours.\n\n",
        grouped(made.n_files as u64),
        grouped(made.n_folders as u64),
        args.rounds,
    );
    text.push_str("| | biv | others |\n|---|---|---|\n");
    rows.iter().filter_map(render_row).for_each(|line| text.push_str(&line));
    text
}

fn render_row(row: &Row) -> Option<String> {
    let ours = row.cells.first().copied().flatten()?;
    let exactness = |it: &Measured| if it.is_exact { "" } else { ", **not exact**" };
    let others = row.names.iter().zip(&row.cells).skip(1).filter_map(|(name, cell)| {
        let theirs = (*cell)?;
        Some(format!(
            "{name} {} ({}{})",
            figure(&theirs),
            ratio(&ours, &theirs),
            exactness(&theirs)
        ))
    });
    let others = others.collect::<Vec<_>>().join("; ");
    let memory = match ours.peak_bytes {
        0 => String::new(),
        bytes => format!(", {} MB of memory", bytes / 1_000_000),
    };
    Some(format!("| {} | {}{memory}{} | {others} |\n", row.what, figure(&ours), exactness(&ours)))
}

fn figure(it: &Measured) -> String {
    if it.disk_bytes > 0 {
        return format!("{:.1} MB", it.disk_bytes as f64 / 1e6);
    }
    let milliseconds = it.time.as_secs_f64() * 1e3;
    if milliseconds < 1_000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", milliseconds / 1e3)
    }
}

fn ratio(ours: &Measured, theirs: &Measured) -> String {
    let ratio = match ours.disk_bytes {
        0 => theirs.time.as_secs_f64() / ours.time.as_secs_f64(),
        bytes => theirs.disk_bytes as f64 / bytes as f64,
    };
    format!("{ratio:.2} ×")
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// Replaces what stands between the marks for this number of files.
pub(super) fn put_into_readme(readme: &Path, table: &str, mark: &str) -> Result<()> {
    let text = std::fs::read_to_string(readme)?;
    let (start, end) = (format!("<!-- bench {mark} -->\n"), "<!-- end -->".to_owned());
    let from =
        text.find(&start).ok_or_else(|| format!("README.md has no mark `{}`", start.trim()))?
            + start.len();
    let to = from + text[from..].find(&end).ok_or("README.md has no end mark")?;
    std::fs::write(readme, [&text[..from], table, &text[to..]].concat())?;
    println!("put into README.md");
    Ok(())
}
