//! What can be concluded from what agents do, so that nobody has to write it down: sub-agents are
//! delegations, and some commands are tests.

use super::nouns::{Delegation, Task, TestRun};
use super::status::{TaskStatus, Verdict};
use super::{Item, Work};
use crate::agent::ToolUsed;
use crate::event::Event;
use crate::text::Note;

pub(super) fn conclude(event: &Event) -> Vec<Item> {
    let found = match event {
        Event::SubagentStarted(started) => Some(Item::Delegation(Box::new(Delegation {
            delegation: started.subagent.clone(),
            agent: started.role.clone(),
            status: Some(TaskStatus::InProgress),
            ..Delegation::default()
        }))),
        Event::SubagentStopped(stopped) => Some(Item::Delegation(Box::new(Delegation {
            delegation: stopped.subagent.clone(),
            status: Some(TaskStatus::Completed),
            note: stopped.message.as_ref().map(|words| Note::cut(&words.headline())),
            ..Delegation::default()
        }))),
        Event::ToolUsed(used) => test_run(used).map(|run| Item::TestRun(Box::new(run))),
        _ => None,
    };
    found.into_iter().collect()
}

/// Do these events tell of an agent's own list of tasks?
pub fn is_list(events: &[Event]) -> bool {
    listed(events).next().is_some()
}

/// An agent's list tells of all that is in it at once: what is open and no longer there was given up.
pub fn given_up(known: &Work, events: &[Event]) -> Vec<Event> {
    let is_listed = |task: &Task| {
        listed(events).any(|it| match it.task.is_empty() {
            true => it.subject == task.subject,
            false => it.task == task.task,
        })
    };
    let gone = known.open_tasks().filter(|it| it.listed == Some(true) && !is_listed(it));
    let drop = |task: String| {
        let status = Some(TaskStatus::Dropped);
        Event::TaskChanged(Box::new(Task { task, status, ..Task::default() }))
    };
    gone.map(|it| drop(it.task.clone())).collect()
}

fn listed(events: &[Event]) -> impl Iterator<Item = &Task> {
    events.iter().filter_map(|event| match event {
        Event::TaskChanged(task) if task.listed == Some(true) => Some(&**task),
        _ => None,
    })
}

fn test_run(used: &ToolUsed) -> Option<TestRun> {
    let command = used.command.as_ref()?;
    let part = command.as_str().split(['\n', ';', '|', '&']).find(|part| is_test(part))?;
    let verdict = if used.error.is_some() { Verdict::Fail } else { Verdict::Pass };
    let command = part.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(TestRun { command, verdict: Some(verdict), ..TestRun::default() })
}

/// The programs that run tests, with the word that makes them do so where there is one.
const RUNNERS: [(&str, &[&str]); 24] = [
    ("cargo", &["test", "nextest"]),
    ("go", &["test"]),
    ("npm", &["test", "t"]),
    ("pnpm", &["test"]),
    ("yarn", &["test"]),
    ("bun", &["test"]),
    ("deno", &["test"]),
    ("make", &["test", "check"]),
    ("just", &["test"]),
    ("mvn", &["test", "verify"]),
    ("gradle", &["test", "check"]),
    ("./gradlew", &["test", "check"]),
    ("dotnet", &["test"]),
    ("mix", &["test"]),
    ("swift", &["test"]),
    ("bazel", &["test"]),
    ("pytest", &[]),
    ("jest", &[]),
    ("vitest", &[]),
    ("rspec", &[]),
    ("phpunit", &[]),
    ("ctest", &[]),
    ("tox", &[]),
    ("bats", &[]),
];

fn is_test(part: &str) -> bool {
    // What stands before the program: a runner of programs, or variables.
    const BEFORE: [&str; 10] =
        ["npx", "pnpx", "bunx", "uv", "run", "poetry", "python", "python3", "-m", "time"];
    let mut words =
        part.split_whitespace().skip_while(|word| BEFORE.contains(word) || word.contains('='));
    let Some(program) = words.next() else {
        return false;
    };
    let Some((_, verbs)) = RUNNERS.iter().find(|(name, _)| *name == program) else {
        return false;
    };
    let next = words.find(|word| *word != "run" && !word.starts_with(['-', '+']));
    verbs.is_empty()
        || next.is_some_and(|word| {
            verbs.iter().any(|verb| word == *verb || word.starts_with(&format!("{verb}:")))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_commands() {
        for line in [
            "cargo test",
            "cargo nextest run -p core",
            "npm run test:unit",
            "python -m pytest -q",
            "RUST_LOG=debug cargo test",
            "uv run pytest",
            "npx vitest run",
            "make check",
        ] {
            assert!(is_test(line), "{line}");
        }
        for line in
            ["cargo build", "echo test", "git commit -m test", "npm install", "ls tests", ""]
        {
            assert!(!is_test(line), "{line}");
        }
    }

    #[test]
    fn a_test_inside_a_longer_line_is_found() {
        let used = ToolUsed {
            conversation: "c1".parse().unwrap(),
            tool: "Bash".to_owned(),
            files: Vec::new(),
            n_more_files: 0,
            command: Some("cd app && cargo  test -q | tail -3".parse().unwrap()),
            duration_ms: None,
            error: Some("exit 101".parse().unwrap()),
            subagent: None,
        };
        let run = test_run(&used).unwrap();
        assert_eq!((run.command.as_str(), run.verdict), ("cargo test -q", Some(Verdict::Fail)));
    }
}
