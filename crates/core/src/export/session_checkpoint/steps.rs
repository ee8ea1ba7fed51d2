//! The step output log: what each step produced, so that a later one can be tried again alone.

use super::write::push;
use crate::export::BadMarkdown;
use crate::export::blocks::{Bullet, Section, bullets, labelled, sections};
use crate::export::entry::{at_colon, read_output, write_output};
use crate::export::inline::{marked, split, unescape};
use crate::export::pen::Pen;
use crate::export::words::{minutes, read_seconds};
use crate::text::{Note, count};
use crate::work::{Author, Check, Entry, Output, Step, TaskStatus, Verdict};

pub(super) fn write_steps(text: &mut String, pen: &Pen<'_>, steps: &[Entry<Step>]) {
    push(text, format_args!("\n## Step Output Log"));
    for (place, step) in steps.iter().enumerate() {
        let number = number(place, step);
        let key = if number == step.step { String::new() } else { pen.key(&step.step) };
        let title = format!("{}{key}", pen.note(step.title.as_ref()));
        push(text, format_args!("\n{}", format!("### Step {number}: {title}").trim_end()));
        push_said(text, "Agent", &pen.word(step.agent.as_ref()));
        push_said(text, "Linear", &pen.word(step.issue.as_ref()));
        push_said(text, "Status", &status(step));
        let minutes = step.seconds.map(minutes).map(|it| format!("~{}", count(it, "minute")));
        push_said(text, "Duration", &minutes.unwrap_or_default());
        let outputs = step.outputs.iter().flatten().filter_map(|it| write_output(pen, it));
        let outputs: Vec<String> = outputs.collect();
        if !outputs.is_empty() {
            push(text, format_args!("- **Key Outputs:**"));
            outputs.iter().for_each(|line| push(text, format_args!("  - {line}")));
        }
        let checks = step.checks.iter().flatten().filter_map(|it| {
            let name = pen.text(&it.name);
            (!name.is_empty()).then(|| format!("{name} {}", it.verdict.sign()))
        });
        push_said(text, "Verification", &checks.collect::<Vec<_>>().join(" | "));
        push_said(text, "Cached Context", &pen.note(step.cached.as_ref()));
        push_said(text, "Error", &pen.note(step.error.as_ref()));
        if step.status() == TaskStatus::Failed {
            for (place, earlier) in steps[..place].iter().enumerate() {
                let cached = pen.note(earlier.cached.as_ref());
                if earlier.status() == TaskStatus::Completed {
                    let number = self::number(place, earlier);
                    push_said(text, &format!("Cached Context from Step {number}"), &cached);
                }
            }
        }
    }
}

/// The number of a step: its key where that is one, else its place.
fn number(place: usize, step: &Step) -> String {
    let own = step.number().map(|number| number.to_string());
    own.filter(|number| *number == step.step).unwrap_or_else(|| (place + 1).to_string())
}

fn status(step: &Step) -> String {
    let badge = match step.status() {
        TaskStatus::Completed => "✅ Completed",
        other => other.badge(),
    };
    match (step.status(), step.attempt) {
        (TaskStatus::Failed, Some(attempt)) | (_, Some(attempt @ 2..)) => {
            format!("{badge} (attempt {attempt})")
        }
        _ => badge.to_owned(),
    }
}

fn push_said(text: &mut String, label: &str, value: &str) {
    if !value.is_empty() {
        push(text, format_args!("- **{label}:** {value}"));
    }
}

/// Reads the log. What it cannot make use of goes to `ignored`.
pub(super) fn read_steps(
    section: &Section<'_, '_>,
    ignored: &mut Vec<String>,
) -> Result<Vec<Step>, BadMarkdown> {
    let mut steps = Vec::new();
    for section in sections(section.pieces, 3) {
        let title = marked(section.title);
        let Some(rest) = title.text.get(..4).filter(|it| it.eq_ignore_ascii_case("step")) else {
            ignored.push(section.title.to_owned());
            continue;
        };
        let (number, said) = at_colon(title.text[rest.len()..].trim());
        let key = if title.key.is_empty() { unescape(number.trim()) } else { title.key };
        let mut step = Step { step: key, by: Some(Author::Import), ..Step::default() };
        step.title = note(section.line, said)?;
        for bullet in bullets(section.pieces) {
            if read_bullet(&mut step, &bullet)?.is_none() {
                ignored.push(format!("line {}: {}", bullet.line, bullet.text));
            }
        }
        steps.push(step);
    }
    Ok(steps)
}

/// Takes on what a line says; none when it says nothing that is known.
fn read_bullet(step: &mut Step, bullet: &Bullet) -> Result<Option<()>, BadMarkdown> {
    let Some((label, value)) = labelled(&bullet.text) else {
        return Ok(None);
    };
    let word = || Some(unescape(value)).filter(|it| !it.is_empty());
    match label.as_str() {
        "agent" => step.agent = word(),
        "linear" | "issue" | "issues" | "jira" => step.issue = word(),
        "status" => {
            let status = TaskStatus::from_word(value);
            let bad = || BadMarkdown::new(bullet.line, format!("`{value}` is no status"));
            step.status = Some(status.ok_or_else(bad)?);
            let attempt = value.split_once("attempt ").map(|(_, rest)| rest);
            let digits =
                |rest: &str| rest.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok();
            step.attempt = attempt.and_then(digits);
        }
        "duration" => step.seconds = read_seconds(value),
        "key outputs" | "outputs" => step.outputs = outputs(value, bullet),
        "verification" | "checks" => {
            let checks: Option<Vec<Check>> = split(value, '|').into_iter().map(check).collect();
            step.checks = checks;
            return Ok(step.checks.is_some().then_some(()));
        }
        "cached context" => step.cached = note(bullet.line, &continued(value, bullet))?,
        "error" => step.error = note(bullet.line, &continued(value, bullet))?,
        derived if derived.starts_with("cached context from") => {}
        _ => return Ok(None),
    }
    let is_lost = label == "duration" && step.seconds.is_none() && !value.is_empty();
    Ok((!is_lost).then_some(()))
}

/// A value with the lines that are indented below it.
fn continued(value: &str, bullet: &Bullet) -> String {
    let nested = bullet.nested.iter().map(|(_, text)| format!("<br>{text}"));
    format!("{value}{}", nested.collect::<String>())
}

fn outputs(value: &str, bullet: &Bullet) -> Option<Vec<Output>> {
    let lines = bullet.nested.iter().map(|(_, text)| text.as_str());
    let found: Vec<Output> = [value].into_iter().chain(lines).filter_map(read_output).collect();
    (!found.is_empty()).then_some(found)
}

/// `Lint ✅`, with or without words behind the sign, or `lint=pass`.
fn check(part: &str) -> Option<Check> {
    let part = part.trim();
    let sign = |it: char| matches!(it, '✅' | '❌' | '✓' | '✗');
    if let Some(place) = part.rfind(sign) {
        let (name, rest) = part.split_at(place);
        let verdict: Verdict = rest.chars().next()?.to_string().parse().ok()?;
        let name = unescape(name.trim());
        return (!name.is_empty()).then_some(Check { name, verdict });
    }
    part.parse().ok()
}

/// A text as it is written, as a note.
pub(super) fn note(line: usize, text: &str) -> Result<Option<Note>, BadMarkdown> {
    let text = unescape(text.trim());
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|bad: crate::text::BadNote| BadMarkdown::new(line, bad.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_as_people_write_them() {
        let read = |text: &str| check(text).map(|it| (it.name, it.verdict));
        assert_eq!(read("Lint ✅"), Some(("Lint".to_owned(), Verdict::Pass)));
        assert_eq!(read("Tests ❌ (3 failed)"), Some(("Tests".to_owned(), Verdict::Fail)));
        assert_eq!(read("build=pass"), Some(("build".to_owned(), Verdict::Pass)));
        assert_eq!(read("not run yet"), None);
    }
}
