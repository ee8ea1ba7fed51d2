//! Hooks where files may not grow and memory is short: they succeed, and what is missing is told

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use bivouac_testkit::{Run, TestEnv};
use serde_json::json;

use crate::env;

/// Calls a hook from a shell that sets a limit first.
fn hook_within(env: &TestEnv, limit: &str, prompt: &str) -> Run {
    let input = json!({ "session_id": "s1", "cwd": env.work(), "prompt": prompt }).to_string();
    hook_told(env, limit, &input)
}

fn hook_told(env: &TestEnv, limit: &str, input: &str) -> Run {
    let file = env.root().join("input");
    fs::write(&file, input).unwrap();
    let shell = ["sh", "-c", "ulimit -c 0 && eval \"$0\" && exec \"$@\"", limit];
    let words = ["hook", "claude-code", "UserPromptSubmit"];
    let mut command = env.biv_under(&shell.map(str::to_owned), &words);
    command.env("BIV_HOOK_WAITS", "1").stdin(fs::File::open(file).unwrap());
    let started = Instant::now();
    let run = env.run_command(&mut command);
    assert!(started.elapsed() < Duration::from_secs(30), "{limit}");
    run
}

/// How much address space the program needs to start at all, in kilobytes: what it is itself, and some.
fn least_memory(env: &TestEnv) -> u64 {
    let starts = |kilobytes: u64| {
        let limit = format!("ulimit -c 0; ulimit -v {kilobytes}; exec \"$0\" hook nobody nothing");
        let before = ["sh", "-c", &limit].map(str::to_owned);
        let mut command = env.biv_under(&before, &[] as &[&str]);
        env.run_command(command.stdin(std::process::Stdio::null())).code == 0
    };
    (10_000..400_000).step_by(2_000).find(|it| starts(*it)).unwrap()
}

#[test]
fn a_hook_succeeds_where_files_may_not_grow() {
    for limit in ["ulimit -f 0", "ulimit -f 1", "ulimit -f 8", "ulimit -f 64"] {
        let env = env();
        env.write("a", "1");
        let run = hook_within(&env, limit, "do it");
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{limit}: {}", run.stderr);
        let what_is_left = fs::read_dir(env.store().join("spool")).unwrap().count();
        assert_eq!(what_is_left, 1, "{limit}: a note, or at least the name of one");
    }
}

/// A note of a few hundred bytes has room where a database has none.
#[test]
fn what_did_not_fit_is_on_record_with_the_next_command() {
    let env = env();
    env.write("a", "1");
    hook_within(&env, "ulimit -f 8", "do it").ok();
    env.biv(&["checkpoint", "create"]).ok();
    assert!(env.run("session list").contains("do it"));
}

#[test]
fn what_could_not_be_kept_at_all_is_told_by_the_next_command() {
    let env = env();
    env.write("a", "1");
    let run = hook_within(&env, "ulimit -f 0", "do it").ok();
    assert!(run.stderr.contains("what the agent told could not be kept"), "{}", run.stderr);
    let note = fs::read_dir(env.store().join("spool")).unwrap().next().unwrap().unwrap().path();
    let long_ago = SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(note).unwrap().set_modified(long_ago).unwrap();
    let text = env.run("checkpoint create");
    assert!(
        text.contains("could not be kept; most likely the disk was full, or a limit"),
        "{text}"
    );
}

/// From the least that lets the program start at all, up to where everything fits.
#[test]
fn a_hook_succeeds_where_memory_is_short() {
    let env = env();
    env.write("a", "1");
    let least = least_memory(&env);
    for more in [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 200_000] {
        let limit = format!("ulimit -v {}", least + more);
        let run = hook_within(&env, &limit, "do it");
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{limit}: {}", run.stderr);
    }
    let data = hook_within(&env, "ulimit -d 4000", "do it");
    assert_eq!((data.code, data.stdout.as_str()), (0, ""), "{}", data.stderr);
}

/// Where there is enough for the work, it is done, and the answer is the agent's.
#[test]
fn a_hook_does_its_work_where_memory_is_limited_and_enough() {
    let env = env();
    env.write("a", "1");
    hook_within(&env, "ulimit -v 4000000", "do it").ok();
    assert!(env.run("session list").contains("do it"));
    assert!(!env.store().join("spool").exists());
}

/// Much more is told than there is memory for.
#[test]
fn a_hook_succeeds_where_what_it_is_told_does_not_fit() {
    let env = env();
    env.write("a", "1");
    let limit = format!("ulimit -v {}", least_memory(&env) + 12_000);
    let input = json!({ "session_id": "s1", "cwd": env.work(), "prompt": "x".repeat(24 << 20) });
    let run = hook_told(&env, &limit, &input.to_string());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    // The name of a note says that something is missing.
    let notes = fs::read_dir(env.store().join("spool")).unwrap();
    let names = notes.map(|note| note.unwrap().path().extension().unwrap().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), ["part"]);
}

/// Other commands say what is wrong instead of being killed.
#[test]
fn a_command_says_that_a_file_may_not_grow() {
    let env = env();
    env.write("a", "1");
    let shell = ["sh", "-c", "ulimit -f 1 && exec \"$0\" \"$@\""].map(str::to_owned);
    let run = env.run_command(&mut env.biv_under(&shell, &["checkpoint", "create"]));
    assert!(run.code == 1 && run.stderr.starts_with("error: "), "{} {}", run.code, run.stderr);
}
