//! `--json`: one document on stdout, whatever the command does

use std::collections::BTreeSet;

use bivouac::cli::Cli;
use bivouac_testkit::{Run, TestEnv, terminate, until};
use clap::CommandFactory;
use serde_json::Value;

use crate::git_env;

/// Every command, in an order in which most of them have something to do. What follows `!` fails.
pub(crate) const STORY: &str = r#"
init
setup --dry-run --agent claude-code
setup --yes --agent claude-code
setup --yes --remove --agent claude-code
! doctor --agent claude-code
! hooks install --agent claude-code
hooks install --agent claude-code --yes
hooks status
hooks remove --yes
config show
config show --defaults
config path
config trust --yes
config distrust
completions bash
! completions nonsense
session new --task "the task"
session list
session list --all
session show
session rename latest renamed
session describe --next "the next thing"
checkpoint create -m first --name first
checkpoint create
checkpoint save label
checkpoint list
checkpoint list --all
checkpoint show first --files --coverage
checkpoint diff first
checkpoint diff first latest
run -- sh -c "echo 3 > a"
checkpoint pin first
checkpoint unpin first
! checkpoint show nonsense
! checkpoint rollback first
checkpoint rollback first --dry-run
checkpoint rollback first --yes
undo --dry-run
undo --yes
redo --yes
undo --yes
! checkpoint delete label
checkpoint delete label --yes
checkpoint restore first --into ../restored
fork first --into ../forked
status
du
verify
gc
reconcile
run -- echo "words of the command"
! run -- sh -c "exit 3"
! run -- no-such-program
! submit "do it" --agent gemini
watch --status
! watch --stop
! attach
! detach
pause
resume --dry-run
resume --print --brief
resume --brief --force
session pause
session resume
session log
rehydrate
rehydrate --budget 500
progress
task add "a task"
task start 001
task block 001
task update 001 --title "another title"
task fail 001
task done 001
task add "a second"
task drop 002
task list
phase set build
gate pass tests
gate fail lint
gate list
decision add "take it" --why "it is there"
decision list
blocker add "no key"
blocker resolve "no key"
blocker list
artifact add file a
artifact list
artifact remove a
approval request "may I?"
approval list
! approval check
approval resolve "may I?" --answer no
step start 1
step fail 1 --error "it broke"
replay
replay --print
step finish 1
step list
delegation start helper
delegation finish helper
delegation list
fork-point open "which way" --option "a: left" --option "b: right"
fork-point decide "which way" --option a
fork-point list
partition set helper src
partition list
worktree set main
worktree list
note "a remark"
context --issue none
export handoff
export handoff --file -
export session-checkpoint --file ../sheet.md
export checkpoint-md --file ../checkpoint.md
export memory
export events
export events --file ../events.ndjson
export bundle first --file ../bundle.tar.gz
! export bundle first --file -
import bundle ../bundle.tar.gz
import handoff HANDOFF.md
import session-checkpoint ../sheet.md
import checkpoint-md ../checkpoint.md
search remark
log
log -n 2
confirm
environment
slash claude-code checkpoint list
slash claude-code checkpoint nonsense
slash claude-code rehydrate
session recover
session recover --action cancel
session complete
session new
session fail
! nonsense
! checkpoint
"#;

/// Commands that speak a protocol of their own on stdout.
const PROTOCOLS: [&str; 2] = ["hook", "mcp"];

fn stage() -> TestEnv {
    let mut env = git_env();
    env.program(
        "claude",
        "case $1 in --version) echo '2.1.325 (Claude Code)';; *) echo words of the agent;; esac",
    );
    env.write("a", "1").write("src/b", "2");
    env
}

fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(n, part)| match n % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// The lines of the story, each with whether it fails.
pub(crate) fn story() -> impl Iterator<Item = (Vec<String>, bool)> {
    STORY.lines().filter(|line| !line.is_empty()).map(|line| match line.strip_prefix("! ") {
        Some(line) => (words(line), true),
        None => (words(line), false),
    })
}

/// With `--json` in front, since some commands pass on what is behind them.
pub(crate) fn as_json(words: &[String]) -> Vec<String> {
    [&["--json".to_owned()], words].concat()
}

fn documents(run: &Run) -> Vec<Value> {
    let all = serde_json::Deserializer::from_str(&run.stdout).into_iter::<Value>();
    all.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

#[test]
fn every_command_prints_exactly_one_document() {
    let env = stage();
    let mut wrong = Vec::new();
    for (words, fails) in story() {
        let run = env.biv(&as_json(&words));
        let documents = documents(&run);
        if documents.len() != 1 || (run.code != 0) != fails {
            wrong.push(format!("{words:?}: {} {}{}", run.code, run.stdout, run.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a command or an agent prints that we start is not in the way of the document.
#[test]
fn what_others_print_goes_to_stderr() {
    let env = stage();
    env.biv(&["checkpoint", "create"]).ok();
    let run = env.biv(&["run", "--json", "--", "echo", "words of the command"]).ok();
    assert_eq!(documents(&run)[0]["exit_code"], 0);
    assert!(run.stderr.contains("words of the command"), "{}", run.stderr);
    let run = env.biv(&["resume", "--brief", "--force", "--json"]).ok();
    assert_eq!(documents(&run)[0]["command"][0], "claude");
    assert!(run.stderr.contains("words of the agent"), "{}", run.stderr);
}

/// An agent that cannot be started comes after the document.
#[test]
fn an_error_takes_the_place_of_the_document() {
    let env = git_env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let run = env.biv(&["session", "complete", "--json"]);
    assert_eq!((run.code, documents(&run).len()), (0, 1));
    let run = env.biv(&["session", "complete", "--json"]);
    let error = &documents(&run)[0]["error"]["message"];
    assert!(run.code == 1 && error.as_str().unwrap().contains("already completed"), "{error}");
}

#[test]
fn a_watcher_prints_its_document_when_it_ends() {
    let env = stage();
    let watcher = env.start_live(&["watch", "--json"]);
    until("it watches", || env.json("watch --status")["watcher"].is_object());
    terminate(i32::try_from(watcher.id()).unwrap());
    let run = env.finish(watcher);
    assert_eq!(documents(&run).len(), 1, "{}{}", run.stdout, run.stderr);
}

/// Lines are printed where lines are asked for: by the command, and by nothing else.
#[test]
fn events_are_lines_or_one_list() {
    let env = stage();
    env.biv(&["checkpoint", "create"]).ok();
    let lines = documents(&env.biv(&["export", "events"]).ok());
    assert!(lines.len() > 1 && lines.iter().all(Value::is_object));
    assert_eq!(env.json("export events"), Value::Array(lines));
}

/// A command that is added is added to the story.
#[test]
fn the_story_knows_every_command() {
    let told: BTreeSet<String> = story().map(|(words, _)| words.join(" ")).collect();
    let cli = Cli::command();
    for command in cli.get_subcommands().filter(|it| !PROTOCOLS.contains(&it.get_name())) {
        let verbs: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        let names = match verbs.is_empty() {
            true => vec![command.get_name().to_owned()],
            false => verbs.iter().map(|verb| format!("{} {verb}", command.get_name())).collect(),
        };
        for name in names {
            let is_told = |line: &String| *line == name || line.starts_with(&format!("{name} "));
            assert!(told.iter().any(is_told), "`{name}` is not in the story");
        }
    }
}

/// A hook and the server for models speak to programs that expect nothing else.
#[test]
fn a_protocol_stays_as_it_is() {
    let env = stage();
    for words in [&["--json", "hook", "claude-code", "Stop"][..], &["mcp", "--json"]] {
        let mut command = env.biv_command(&env.work(), words);
        let run = env.run_command(command.stdin(std::process::Stdio::null()));
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{words:?}: {}", run.stderr);
    }
}
