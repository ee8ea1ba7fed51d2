//! A Markdown file as headings, fences and lines; lines as tables and lists. Only as much Markdown as the
//! files of this kind have, and lenient where people write them by hand.

use super::BadMarkdown;
use super::fence::{Fence, heading};
use super::inline::{marked, split};

/// A piece of a file, and the number of its first line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub line: usize,
    pub kind: Kind<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Heading {
        level: usize,
        title: &'a str,
    },
    /// The lines between the fences.
    Fence(Vec<&'a str>),
    /// A line without the blanks at its end. It may be empty.
    Text(&'a str),
}

/// Takes a file apart. Comments that have lines to themselves are nobody's text.
pub(super) fn pieces(text: &str, first_line: usize) -> Result<Vec<Piece<'_>>, BadMarkdown> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split('\n').map(str::trim_end).zip(first_line..);
    let mut found = Vec::new();
    while let Some((text, line)) = lines.next() {
        let kind = if let Some(fence) = Fence::opened_by(text.as_bytes()) {
            let is_inside = |it: &(&str, usize)| !fence.is_closed_by(it.0.as_bytes());
            let mut inside = Vec::new();
            let mut is_closed = false;
            for next in lines.by_ref() {
                if !is_inside(&next) {
                    is_closed = true;
                    break;
                }
                inside.push(next.0);
            }
            if !is_closed {
                return Err(BadMarkdown::new(line, "the code fence is never closed"));
            }
            Kind::Fence(inside)
        } else if text.starts_with("<!--") {
            if !text.contains("-->") && !lines.any(|(text, _)| text.contains("-->")) {
                return Err(BadMarkdown::new(line, "the comment is never closed"));
            }
            Kind::Text("")
        } else if let Some((level, title)) = heading(text.as_bytes()) {
            let title = std::str::from_utf8(title).unwrap_or_default();
            Kind::Heading { level, title }
        } else {
            Kind::Text(text)
        };
        found.push(Piece { line, kind });
    }
    Ok(found)
}

/// A heading and what stands below it, up to the next one of its level or above.
#[derive(Debug)]
pub(super) struct Section<'a, 'b> {
    pub line: usize,
    pub title: &'a str,
    pub pieces: &'b [Piece<'a>],
}

/// The sections of a level, up to the first heading above it. What stands before them is left out.
pub(super) fn sections<'a, 'b>(pieces: &'b [Piece<'a>], level: usize) -> Vec<Section<'a, 'b>> {
    let headings = pieces.iter().enumerate().filter_map(|(place, piece)| match piece.kind {
        Kind::Heading { level: found, title } if found <= level => {
            Some((place, piece.line, found, title))
        }
        _ => None,
    });
    let headings: Vec<_> = headings.collect();
    let ends = headings.iter().skip(1).map(|it| it.0).chain([pieces.len()]);
    let all = headings.iter().zip(ends);
    let ours = all.take_while(|((_, _, found, _), _)| *found == level);
    ours.map(|((place, line, _, title), end)| Section {
        line: *line,
        title,
        pieces: &pieces[place + 1..end],
    })
    .collect()
}

/// What stands before the first heading.
pub(super) fn preamble<'a, 'b>(pieces: &'b [Piece<'a>]) -> &'b [Piece<'a>] {
    let end = pieces.iter().position(|it| matches!(it.kind, Kind::Heading { .. }));
    &pieces[..end.unwrap_or(pieces.len())]
}

/// A heading in the words it is known by: `Blockers & Issues` is `blockers issues`.
pub(super) fn known_by(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|it: char| !it.is_alphanumeric());
    let words: Vec<&str> = words.filter(|it| !it.is_empty() && *it != "and").collect();
    words.join(" ")
}

/// `**Name:** value`, `**Name**: value` or `Name: value`, with the name in the words it is known by.
pub(super) fn labelled(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let (name, value) = match line.strip_prefix("**") {
        Some(rest) => {
            let (name, value) = rest.split_once("**")?;
            match name.strip_suffix(':') {
                Some(name) => (name, value),
                None => (name, value.trim_start().strip_prefix(':')?),
            }
        }
        None => line.split_once(':')?,
    };
    Some((known_by(name), value.trim()))
}

/// The lines of a section that are text, with their numbers.
fn texts<'a>(pieces: &[Piece<'a>]) -> impl Iterator<Item = (usize, &'a str)> {
    pieces.iter().filter_map(|piece| match piece.kind {
        Kind::Text(text) => Some((piece.line, text)),
        _ => None,
    })
}

/// The text of a section, line by line, without what is empty.
pub(super) fn paragraphs<'a>(pieces: &[Piece<'a>]) -> Vec<(usize, &'a str)> {
    texts(pieces).map(|(line, text)| (line, text.trim())).filter(|it| !it.1.is_empty()).collect()
}

/// The columns of a table, by the names they are known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub names: &'static [&'static str],
    /// The one that people forget.
    pub may_lack: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct Row<'a> {
    pub line: usize,
    cells: Vec<(String, &'a str)>,
}

impl<'a> Row<'a> {
    /// A cell as it is written. One that is not there is empty.
    pub(super) fn cell(&self, name: &str) -> &'a str {
        let found = self.cells.iter().find(|(column, _)| column == name);
        found.map(|(_, cell)| *cell).filter(|cell| !matches!(*cell, "-" | "—" | "–")).unwrap_or("")
    }

    fn says_nothing(&self) -> bool {
        let said: Vec<&str> = self.cells.iter().map(|(column, _)| self.cell(column)).collect();
        let rest = said.iter().filter(|cell| !cell.is_empty());
        let words: Vec<String> = rest.map(|cell| known_by(cell)).collect();
        words.is_empty() || words.len() == 1 && matches!(words[0].as_str(), "none" | "n a")
    }
}

/// The rows of all tables in a section.
pub(super) fn rows<'a>(
    pieces: &[Piece<'a>],
    columns: Columns,
) -> Result<Vec<Row<'a>>, BadMarkdown> {
    let mut found = Vec::new();
    let mut header: Option<Vec<String>> = None;
    let lines: Vec<(usize, &str)> = texts(pieces).collect();
    for (place, (line, text)) in lines.iter().enumerate() {
        let Some(cells) = cells(text) else {
            header = None;
            continue;
        };
        if is_rule(&cells) {
            continue;
        }
        if header.is_none() {
            let next = lines.get(place + 1).and_then(|(_, next)| self::cells(next));
            let is_header = next.is_some_and(|next| is_rule(&next));
            let own = is_header.then(|| titles(&cells, columns)).flatten();
            let names = || columns.names.iter().map(|name| (*name).to_owned()).collect();
            header = Some(own.unwrap_or_else(names));
            if is_header {
                continue;
            }
        }
        let titles = header.as_deref().unwrap_or_default();
        let row = row(*line, cells, titles, columns)?;
        if !row.says_nothing() {
            found.push(row);
        }
    }
    Ok(found)
}

/// What stands between the pipes of a line.
fn cells(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim().strip_prefix('|')?;
    let mut cells: Vec<&str> = split(inner, '|').into_iter().map(str::trim).collect();
    if cells.len() > 1 && cells.last().is_some_and(|last| last.is_empty()) {
        cells.pop();
    }
    Some(cells)
}

fn is_rule(cells: &[&str]) -> bool {
    let is_dashes = |cell: &&str| cell.contains('-') && cell.chars().all(|it| "-: ".contains(it));
    cells.iter().all(is_dashes) && cells.iter().any(|cell| cell.contains("--"))
}

/// The columns a table has by its own words, if any of them is known.
fn titles(cells: &[&str], columns: Columns) -> Option<Vec<String>> {
    let own: Vec<String> = cells.iter().map(|cell| column(cell)).collect();
    own.iter().any(|name| columns.names.contains(&name.as_str())).then_some(own)
}

/// What other trackers and hands call a column.
fn column(title: &str) -> String {
    let name = match title.trim() {
        "#" => "#".to_owned(),
        title => known_by(title),
    };
    let known = match name.as_str() {
        "issue" | "issues" | "jira" | "ticket" | "github" | "linear issue" => "linear",
        "note" => "notes",
        "depends on" | "deps" => "dependencies",
        "tokens" => "est tokens",
        "tier" | "model" => "model tier",
        "thread" => "thread id",
        "posted" => "posted at",
        "no" | "nr" => "#",
        _ => return name,
    };
    known.to_owned()
}

fn row<'a>(
    line: usize,
    mut cells: Vec<&'a str>,
    titles: &[String],
    columns: Columns,
) -> Result<Row<'a>, BadMarkdown> {
    if cells.len() + 1 == titles.len() {
        let lacking = columns.may_lack.and_then(|name| titles.iter().position(|it| it == name));
        if let Some(place) = lacking {
            cells.insert(place, "");
        }
    }
    if cells.len() != titles.len() {
        let reason =
            format!("the row has {} cells, the table {} columns", cells.len(), titles.len());
        return Err(BadMarkdown::new(line, reason));
    }
    Ok(Row { line, cells: titles.iter().cloned().zip(cells).collect() })
}

/// A line of a list, with what is indented below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bullet {
    pub line: usize,
    /// As it is written, continued lines joined.
    pub text: String,
    pub nested: Vec<(usize, String)>,
}

impl Bullet {
    /// All of it as one text: nested lines become lines of it.
    pub(super) fn whole(&self) -> String {
        let nested = self.nested.iter().map(|(_, text)| format!("<br>{text}"));
        let whole = marked(&self.text);
        // The key stays at the end, where it is looked for.
        let comments =
            self.text.get(whole.text.len()..).filter(|_| self.text.starts_with(&whole.text));
        match comments {
            Some(comments) if !self.nested.is_empty() => {
                format!("{}{}{comments}", whole.text, nested.collect::<String>())
            }
            _ => format!("{}{}", self.text, nested.collect::<String>()),
        }
    }
}

/// The items of every list in a section.
pub(super) fn bullets(pieces: &[Piece<'_>]) -> Vec<Bullet> {
    let mut found: Vec<Bullet> = Vec::new();
    // Whether the line before belongs to a list, so that this one can go on with it.
    let mut is_open = false;
    for (line, text) in texts(pieces) {
        let indent = text.len() - text.trim_start().len();
        match (item(text.trim_start()), found.last_mut()) {
            (Some(text), Some(last)) if indent >= 2 => last.nested.push((line, text.to_owned())),
            (Some(text), _) => {
                found.push(Bullet { line, text: text.to_owned(), nested: Vec::new() });
            }
            (None, _) if text.is_empty() => {
                is_open = false;
                continue;
            }
            (None, Some(last)) if is_open || indent >= 2 => {
                let open = last.nested.last_mut().map_or(&mut last.text, |(_, text)| text);
                open.push(' ');
                open.push_str(text.trim());
            }
            (None, _) => continue,
        }
        is_open = true;
    }
    found
}

/// What stands behind `-`, `*`, `+`, `1.` or `1)`.
fn item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|it: char| it.is_ascii_digit());
    let rest = match digits.len() < text.len() && text.len() - digits.len() <= 9 {
        true => digits.strip_prefix(['.', ')'])?,
        false => text.strip_prefix(['-', '*', '+'])?,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_headings_fences_and_lines() {
        let file = "# One\r\ntext\r\n```\n# no heading\n```\n<!-- a\n# comment -->\n## Two\n";
        let found = pieces(file, 1).unwrap();
        let headings: Vec<_> = found
            .iter()
            .filter_map(|it| match it.kind {
                Kind::Heading { level, title } => Some((it.line, level, title)),
                _ => None,
            })
            .collect();
        assert_eq!(headings, [(1, 1, "One"), (8, 2, "Two")]);
        assert_eq!(
            pieces("a\n```\nb", 10).unwrap_err().to_string(),
            "line 11: the code fence is never closed"
        );
        assert_eq!(
            pieces("<!-- a", 1).unwrap_err().to_string(),
            "line 1: the comment is never closed"
        );
    }

    #[test]
    fn lists_are_read_as_people_write_them() {
        let file = "Prose.\n- one\n  goes on\n* two\nlazily\n  - below\n\nprose\n3) three\n-\n";
        let found = pieces(file, 1).unwrap();
        let texts: Vec<String> = bullets(&found).iter().map(Bullet::whole).collect();
        assert_eq!(texts, ["one goes on", "two lazily<br>below", "three", ""]);
    }

    #[test]
    fn a_table_is_read_by_the_names_of_its_columns() {
        const COLUMNS: Columns = Columns { names: &["task", "linear"], may_lack: None };
        let file = "| Issue | Task |\n|---|:--|\n| T-1 | a \\| b |\n| - | None |\n\n| c | T-2 |\n";
        let found = pieces(file, 1).unwrap();
        let found = rows(&found, COLUMNS).unwrap();
        let cells: Vec<_> =
            found.iter().map(|row| (row.cell("task"), row.cell("linear"))).collect();
        assert_eq!(cells, [("a \\| b", "T-1"), ("c", "T-2")]);
        let short = pieces("| Task | Linear |\n|---|---|\n| a |\n", 1).unwrap();
        let error = rows(&short, COLUMNS).unwrap_err();
        assert_eq!(error.to_string(), "line 3: the row has 1 cells, the table 2 columns");
    }
}
