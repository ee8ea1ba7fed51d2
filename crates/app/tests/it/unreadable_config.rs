//! A configuration file that cannot be read: commands, hooks and automatic saves go on without it, and say so

use std::fs;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::env;
use crate::hook::Claude;
use crate::untrusted_config::{CONFIG, own_config, turns};

fn fifo(env: &TestEnv, path: &std::path::Path) {
    let made = env.command("mkfifo", env.root()).arg(path).status().unwrap();
    assert!(made.success());
}

/// What a hostile repository may have at the file's place.
const HOSTILE: [&str; 12] = [
    "a device without an end",
    "a FIFO",
    "a huge file",
    "a folder",
    "a link that leads out",
    "a link to itself",
    "no TOML",
    "no text",
    "a key that is not its own",
    "a long key",
    "a key that commands the terminal",
    "deep nesting",
];

fn put(env: &TestEnv, what: &str) {
    match what {
        "a device without an end" => env.link(CONFIG, "/dev/zero"),
        "a FIFO" => {
            fifo(env, &env.path(CONFIG));
            env
        }
        "a huge file" => env.write(CONFIG, vec![b'#'; 2 << 20]),
        "a folder" => env.folder(CONFIG),
        "a link that leads out" => env.link(CONFIG, "../home/secret"),
        "a link to itself" => env.link(CONFIG, CONFIG),
        "no TOML" => env.write(CONFIG, "[checkpoint"),
        "no text" => env.write(CONFIG, [0xff, 0xfe]),
        "a key that is not its own" => env.write(CONFIG, "[store]\nbudget = \"1GB\"\n"),
        "a long key" => env.write(CONFIG, format!("{} = 1", "k".repeat(1_000_000))),
        "a key that commands the terminal" => env.write(CONFIG, "\"\\u001b[2J\" = 1"),
        "deep nesting" => env.write(CONFIG, format!("a = {}", "[".repeat(1_000_000))),
        other => panic!("{other}"),
    };
}

#[test]
fn whatever_it_is_commands_go_on_and_say_so() {
    let env = env();
    fs::write(env.home().join("secret"), "password = 1\n").unwrap();
    env.write("a", "1").biv(&["checkpoint", "create", "--name", "one"]).ok();
    let mut said = Vec::new();
    for what in HOSTILE {
        put(&env, what);
        env.write("a", what).biv(&["checkpoint", "create"]).ok();
        env.biv(&["checkpoint", "rollback", "one", "a", "--yes"]).ok();
        assert_eq!(env.read("a"), "1", "{what}");
        env.biv(&["undo", "--yes"]).ok();
        assert_eq!(env.read("a"), what);
        let status = env.run("status");
        said.push(format!("{what}: {}\n", status.lines().last().unwrap()));
        env.remove(CONFIG);
    }
    assert_snapshot!(said.join(""), @r"
    a device without an end: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is a link that leads out of the workspace or in a circle, so it is not followed; put the file itself there, or move its settings to your own configuration (`biv config path`)
    a FIFO: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is not a regular file, so it is not read as configuration; remove it, or put a configuration file in its place
    a huge file: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is larger than 1 MiB, so it is not read as configuration; remove it, or put a configuration file in its place
    a folder: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is not a regular file, so it is not read as configuration; remove it, or put a configuration file in its place
    a link that leads out: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is a link that leads out of the workspace or in a circle, so it is not followed; put the file itself there, or move its settings to your own configuration (`biv config path`)
    a link to itself: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is a link that leads out of the workspace or in a circle, so it is not followed; put the file itself there, or move its settings to your own configuration (`biv config path`)
    no TOML: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is not valid TOML: line 1: unclosed table, expected `]`; correct it, or remove it
    no text: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is not valid TOML: it is not UTF-8; correct it, or remove it
    a key that is not its own: note: `bivouac.toml` is not used: `store.budget` is for your own configuration, so a workspace cannot set it; remove it from `bivouac.toml`; if you want it, put it into `[root]/home/.config/bivouac/config.toml`
    a long key: note: `bivouac.toml` is not used: unknown key `kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…` in `[root]/project/bivouac.toml`; `biv config show --defaults` lists all keys
    a key that commands the terminal: note: `bivouac.toml` is not used: unknown key `\u{1b}[2J` in `[root]/project/bivouac.toml`; `biv config show --defaults` lists all keys
    deep nesting: note: `bivouac.toml` is not used: `[root]/project/bivouac.toml` is not valid TOML: line 1: cannot recurse further; max recursion depth met; correct it, or remove it
    ");
}

#[test]
fn whatever_it_is_hooks_record_and_save() {
    let claude = Claude::new();
    let env = &claude.env;
    claude.turn(1, "begin", "done");
    for (number, what) in (2..).zip(HOSTILE) {
        put(env, what);
        env.write("a", what);
        claude.turn(number, what, "done");
        let saved = env.biv(&["checkpoint", "create", "--trigger", "detach"]).ok();
        assert!(saved.stdout.contains("nothing changed since"), "{what}: {}", saved.stdout);
        env.remove(CONFIG);
        let prompts = env.sql_text(&format!(
            "SELECT '' || count(*) FROM events WHERE kind = 'prompt.given' AND data LIKE '%{what}%'"
        ));
        assert_eq!(prompts, "1", "{what}");
        assert_eq!(env.json("checkpoint list").as_array().unwrap().len(), number as usize);
    }
    let log = env.run("session log");
    // The same twice in a row is said once.
    assert_eq!(log.matches("the configuration was not used").count(), 11, "{log}");
    let status = env.run("status");
    assert!(status.contains("the configuration was not used: `"), "{status}");
}

#[test]
fn a_broken_file_of_the_user_stops_no_hook_and_lets_nothing_go() {
    let claude = Claude::new();
    let env = &claude.env;
    own_config(env, "[checkpoint]\nmax_per_session = 50\n");
    turns(env, 0..22);
    let file = env.home().join(".config/bivouac/config.toml");
    fs::remove_file(&file).unwrap();
    fifo(env, &file);
    env.write("a", "by the agent");
    claude.turn(1, "go on", "done");
    assert_snapshot!(env.run("status"), @"
    exit 1
    error: `[root]/home/.config/bivouac/config.toml` is not a regular file, so it is not read as configuration
    hint: remove it, or put a configuration file in its place
    ");
    fs::remove_file(&file).unwrap();
    own_config(env, "[checkpoint]\nmax_per_session = 50\n");
    assert_eq!(env.json("checkpoint list --all").as_array().unwrap().len(), 23);
}

#[test]
fn a_link_inside_the_workspace_is_followed() {
    let env = env();
    env.write("config/biv.toml", "[checkpoint]\nmax_per_session = 77\n");
    env.link(CONFIG, "config/biv.toml");
    assert_eq!(env.json("config show")["checkpoint.max_per_session"]["value"], 77);
}

#[test]
fn init_writes_through_no_link() {
    let env = env();
    let outside = env.root().join("outside.toml");
    env.link(CONFIG, &outside);
    env.biv(&["init"]);
    assert!(!outside.exists());
}

#[test]
fn the_end_of_a_run_is_recorded_although_the_command_broke_the_file() {
    let env = env();
    let script = "echo work > made; printf '[checkpoint' > bivouac.toml";
    env.live(&["run", "--", "sh", "-c", script]).ok();
    env.remove(CONFIG);
    let sessions = env.json("session list");
    assert_eq!(sessions[0]["status"], "completed");
    let saved = env.json("checkpoint show latest --files");
    assert!(saved["files"].to_string().contains("made"), "{}", saved["files"]);
}
