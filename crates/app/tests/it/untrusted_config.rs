//! A workspace's `bivouac.toml` comes from whoever wrote the workspace. Without the user's consent it may only
//! widen protection

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;
use serde_json::json;

use crate::env;
use crate::hook::Claude;

pub(crate) const CONFIG: &str = "bivouac.toml";

pub(crate) fn own_config(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/bivouac");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// Takes automatic checkpoints, each with another content.
pub(crate) fn turns(env: &TestEnv, numbers: std::ops::Range<u32>) {
    for number in numbers {
        env.write("a", number.to_string());
        env.biv(&["checkpoint", "create", "--trigger", "turn"]).ok();
    }
}

fn n_checkpoints(env: &TestEnv) -> usize {
    env.json("checkpoint list").as_array().unwrap().len()
}

fn trust(env: &TestEnv) {
    env.biv(&["config", "trust", "--yes"]).ok();
}

/// The files that hold the user's consents.
fn consents(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.home().join(".config/bivouac/trusted")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn it_thins_nothing_that_was_saved() {
    let env = env();
    turns(&env, 0..8);
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 1\nretention_days = 0\n");
    turns(&env, 8..10);
    env.biv(&["session", "complete"]).ok();
    env.biv(&["gc"]).ok();
    assert_eq!(n_checkpoints(&env), 10);
}

#[test]
fn it_stops_no_save() {
    let claude = Claude::new();
    let env = &claude.env;
    env.write("src/a.rs", "work");
    env.write(
        CONFIG,
        "[checkpoint]\ntriggers = []\nmax_file_size = \"0\"\n[workspace]\nexclude = [\"*\"]\n",
    );
    claude.turn(1, "begin", "done");
    let saved = env.json("checkpoint show latest --files --coverage");
    assert_eq!(saved["trigger"], "TURN");
    assert!(saved["files"].to_string().contains("src/a.rs"), "{}", saved["files"]);
    assert_eq!(saved["not_covered"], json!([]));
}

#[test]
fn it_writes_nothing_outside_the_workspace() {
    let env = env();
    let name: String = env.work().canonicalize().unwrap().to_string_lossy().into_owned();
    let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let memory = env.home().join(".claude/projects").join(name).join("memory");
    fs::create_dir_all(&memory).unwrap();
    fs::write(memory.join("MEMORY.md"), "# Mine\n").unwrap();
    env.write(CONFIG, "[export]\non_checkpoint = [\"memory\", \"checkpoint-md\", \"handoff\"]\n");
    env.biv(&["task", "add", "Do it"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    assert_eq!(fs::read_to_string(memory.join("MEMORY.md")).unwrap(), "# Mine\n");
    assert_eq!(fs::read_dir(&memory).unwrap().count(), 1);
    // What stays inside is written.
    assert!(env.exists("HANDOFF.md"));
    trust(&env);
    env.biv(&["checkpoint", "create"]).ok();
    assert!(fs::read_to_string(memory.join("MEMORY.md")).unwrap().contains("Do it"));
}

#[test]
fn what_is_ignored_is_said_with_its_remedy() {
    let env = env();
    env.write(CONFIG, "[checkpoint]\nauto_interval_minutes = 5\n[workspace]\nexclude = [\"*\"]\n");
    let said = |words: &[&str]| {
        let run = env.biv(words).ok();
        run.stderr.matches("ignored in").count()
    };
    assert_snapshot!(env.run("checkpoint create"), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 1 file
    note: ignored in `[root]/project/bivouac.toml`: checkpoint.auto_interval_seconds, workspace.exclude; these would save or keep less, or act outside the workspace; `biv config trust` shows and allows them
    ");
    for words in [&["status"][..], &["config", "show"], &["checkpoint", "rollback", "latest"]] {
        assert_eq!(said(words), 1, "{words:?}");
    }
    // Not where nobody looks, or where it does not matter.
    for words in [&["checkpoint", "create", "--trigger", "turn"][..], &["task", "add", "Do it"]] {
        assert_eq!(said(words), 0, "{words:?}");
    }
    let doctor = env.biv(&["doctor"]);
    assert!(doctor.stdout.contains("?   settings  ignored in `"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("`biv config trust`"), "{}", doctor.stdout);
    let shown = env.json("config show");
    assert_eq!(shown["workspace.exclude"]["value"], json!([]));
    assert_eq!(shown["workspace.exclude"]["ignored"], json!(["*"]));
    assert_eq!(
        env.json("status")["ignored_settings"],
        json!(["checkpoint.auto_interval_seconds", "workspace.exclude"])
    );
}

#[test]
fn trust_is_given_to_one_file_as_it_is() {
    let env = env();
    env.write("a", "1").write("b.mp4", "1");
    assert_snapshot!(env.run("config trust"), @"There is no `bivouac.toml` in this workspace");
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 30\n");
    assert_snapshot!(env.run("config trust"), @"`[root]/project/bivouac.toml` has no setting that needs your consent");
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n[workspace]\nexclude = [\"*.mp4\"]\n");
    assert_snapshot!(env.run("config trust"), @r#"
    exit 2
    `[root]/project/bivouac.toml` would change these settings:
      checkpoint.max_per_session: keeps fewer checkpoints
        from 20
        to   3
      workspace.exclude: changes which files are left out
        from []
        to   ["*.mp4"]
    error: trusting this file needs a confirmation, and there is no terminal to ask on
    hint: look at what it would do, then pass `--yes`
    "#);
    assert!(consents(&env).is_empty());
    assert_snapshot!(env.run("config trust --yes"), @r#"
    `[root]/project/bivouac.toml` would change these settings:
      checkpoint.max_per_session: keeps fewer checkpoints
        from 20
        to   3
      workspace.exclude: changes which files are left out
        from []
        to   ["*.mp4"]
    `[root]/project/bivouac.toml` is trusted until it changes
    "#);
    assert_snapshot!(env.run("config trust"), @"`[root]/project/bivouac.toml` is trusted already");
    assert_snapshot!(env.run("checkpoint create"), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 2 files
    note: left out: 1 path by `workspace.exclude` (`*.mp4`)
    ");
    // Another byte, another file.
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n[workspace]\nexclude = [\"*.mp3\"]\n");
    assert_eq!(env.json("config show")["checkpoint.max_per_session"]["value"], 20);
    // As it was, as it is trusted.
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n[workspace]\nexclude = [\"*.mp4\"]\n");
    assert_eq!(env.json("config show")["checkpoint.max_per_session"]["value"], 3);
    // The same bytes elsewhere are not the file that was read.
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(env.path(CONFIG), other.join(CONFIG)).unwrap();
    let shown = env.biv_in(&other, &["config", "show"]).ok();
    assert!(shown.stdout.contains("max_per_session = 20"), "{}", shown.stdout);
    assert_snapshot!(env.run("config distrust"), @"No configuration file of this workspace is trusted any more");
    assert_snapshot!(env.run("config distrust"), @"No configuration file of this workspace was trusted");
    assert_eq!(env.json("config show")["checkpoint.max_per_session"]["value"], 20);
}

#[test]
fn a_person_is_shown_the_file_and_asked() {
    let env = env();
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n");
    let (code, shown) = env.live_dialog(&["config", "trust"], &[("[y/N]", "n\n")]);
    assert!(code == 1 && shown.contains("keeps fewer checkpoints"), "{shown}");
    assert!(consents(&env).is_empty());
    let (code, shown) = env.live_dialog(&["config", "trust"], &[("[y/N]", "y\n")]);
    assert!(code == 0 && shown.contains("is trusted until it changes"), "{shown}");
    assert_eq!(consents(&env).len(), 1);
}

#[test]
fn the_consent_is_private_and_a_forged_one_is_not_believed() {
    let env = env();
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n");
    let value = || env.json("config show")["checkpoint.max_per_session"]["value"].clone();
    trust(&env);
    let record = consents(&env).pop().unwrap();
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = fs::metadata(record.parent().unwrap()).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    assert_eq!(value(), 3);
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(value(), 20, "others can write it");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    let moved = env.path("moved");
    fs::rename(&record, &moved).unwrap();
    symlink(&moved, &record).unwrap();
    assert_eq!(value(), 20, "it is behind a link");
}

#[test]
fn an_agent_trusts_nothing() {
    let mut env = env();
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 3\n");
    env.set("CLAUDECODE", "1");
    assert_snapshot!(env.run("config trust --yes"), @"
    exit 1
    error: an agent cannot decide which configuration file is trusted
    hint: run the command yourself, in a terminal of your own
    ");
    assert_snapshot!(env.run("config distrust"), @"
    exit 1
    error: an agent cannot decide which configuration file is trusted
    hint: run the command yourself, in a terminal of your own
    ");
    assert!(consents(&env).is_empty());
}

#[test]
fn consent_is_never_kept_in_a_workspace() {
    let env = env();
    let folder = env.home().join(".config");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(CONFIG), "[checkpoint]\nmax_per_session = 3\n").unwrap();
    let run = env.biv_in(&folder, &["--root", ".", "config", "trust", "--yes"]);
    assert_snapshot!(run.text(), @"
    exit 1
    `[root]/home/.config/bivouac.toml` would change these settings:
      checkpoint.max_per_session: keeps fewer checkpoints
        from 20
        to   3
    error: consent cannot be recorded, because this workspace holds your own configuration
    hint: put the settings into your own configuration: `biv config path` says where it is
    ");
    assert!(consents(&env).is_empty());
}

#[test]
fn a_trusted_file_only_lowers_what_comes_after() {
    let env = env();
    turns(&env, 0..8);
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 1\n");
    trust(&env);
    turns(&env, 8..14);
    env.biv(&["gc"]).ok();
    let handles = env.json("checkpoint list");
    let handles: Vec<&str> = handles
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["handle"].as_str().unwrap()[12..])
        .collect();
    assert_eq!(handles, ["001", "002", "003", "004", "005", "006", "007", "008", "014"]);
    // Whoever lowers their own configuration wants the space.
    env.remove(CONFIG);
    own_config(&env, "[checkpoint]\nmax_per_session = 2\n");
    env.biv(&["gc"]).ok();
    assert_eq!(n_checkpoints(&env), 2);
}

#[test]
fn what_a_workspace_promised_outlives_its_file() {
    let mut env = env();
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 100\n");
    turns(&env, 0..22);
    env.remove(CONFIG);
    turns(&env, 22..24);
    env.biv(&["gc"]).ok();
    assert!(n_checkpoints(&env) >= 22, "{}", n_checkpoints(&env));
    // A variable is the user's word for this command.
    env.set("BIV_CHECKPOINT_MAX_PER_SESSION", "5");
    env.biv(&["gc"]).ok();
    assert_eq!(n_checkpoints(&env), 5);
}

#[test]
fn over_the_budget_what_a_workspace_asked_for_goes_first() {
    let mut env = env();
    own_config(&env, "[checkpoint]\nmax_per_session = 2\n");
    let noise = |seed: u32| -> Vec<u8> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()
        };
        (0..25_000).flat_map(|_| next()).collect()
    };
    let save = |env: &TestEnv, folder: &str, seed: u32| {
        let folder = env.root().join(folder);
        fs::write(folder.join("a"), noise(seed)).unwrap();
        env.biv_in(&folder, &["checkpoint", "create", "--trigger", "turn"]).ok();
    };
    fs::create_dir(env.root().join("modest")).unwrap();
    (1..3).for_each(|seed| save(&env, "modest", seed));
    env.write(CONFIG, "[checkpoint]\nmax_per_session = 100\n");
    (10..14).for_each(|seed| save(&env, "project", seed));
    let used = env.json("du")["pack_bytes"].as_u64().unwrap();
    env.set("BIV_STORE_BUDGET", (used - 150_000).to_string());
    save(&env, "project", 20);
    let modest = env.root().join("modest").canonicalize().unwrap();
    let all = env.json("checkpoint list --all");
    let sessions = env.json("session list --all");
    let is_modest = |id: &serde_json::Value| {
        let sessions = sessions.as_array().unwrap();
        let session = sessions.iter().find(|it| it["id"] == *id).unwrap();
        session["workspace"] == modest.to_str().unwrap()
    };
    let all = all.as_array().unwrap();
    let n_modest = all.iter().filter(|it| is_modest(&it["session_id"])).count();
    assert_eq!((n_modest, all.len() - n_modest), (2, 3));
}

#[test]
fn what_is_excluded_is_said_with_every_save() {
    let env = env();
    own_config(&env, "[workspace]\nexclude = [\"*.mp4\", \"/vendor/\"]\n");
    env.write("a", "1").write("b.mp4", "1").write("vendor/x", "1").write("vendor/y", "1");
    assert_snapshot!(env.run("checkpoint create"), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 1 file
    note: left out: 2 paths by `workspace.exclude` (`*.mp4`, `/vendor/`)
    ");
    let saved = env.json("checkpoint create");
    assert_eq!(saved["coverage"]["not_covered"]["excluded"], 2);
    assert_eq!(saved["excluded_by"], json!(["*.mp4", "/vendor/"]));
    let status = env.run("status");
    let line = status.lines().find(|line| line.starts_with("Excluded")).unwrap();
    assert_snapshot!(line, @"Excluded   2 paths by `workspace.exclude` (`*.mp4`, `/vendor/`)");
    env.remove("b.mp4").remove("vendor");
    assert_eq!(env.json("checkpoint create")["excluded_by"], json!([]));
}

#[test]
fn a_rollback_over_an_excluded_tree_says_so() {
    let env = env();
    own_config(&env, "[workspace]\nexclude = [\"src/\"]\n");
    env.write("a", "1").write("src/main.rs", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("src/main.rs", "ruined");
    assert_snapshot!(env.run("checkpoint rollback latest --yes"), @"Nothing to do for the paths that cp-20260121-001 covers; `src/` is excluded by `workspace.exclude` (`src/`), so it is not restored");
    let shown = env.json("checkpoint rollback latest --dry-run");
    assert_eq!(shown["excluded"], json!({ "n_paths": 1, "paths": ["src"], "patterns": ["src/"] }));
    assert_snapshot!(env.run("checkpoint rollback latest src --yes"), @"
    exit 1
    error: `src` is not covered: excluded
    hint: `biv config show` says where `workspace.exclude` leaves it out
    ");
    // The settings of now do not change what the checkpoint lacks.
    own_config(&env, "");
    assert_snapshot!(env.run("checkpoint rollback latest --yes"), @"Nothing to do for the paths that cp-20260121-001 covers; cp-20260121-001 does not hold `src/` (excluded when it was taken, or withheld from the bundle it came in)");
    own_config(&env, "[workspace]\nexclude = [\"src/\"]\n");
    env.write("a", "2");
    assert_snapshot!(env.run("checkpoint rollback latest --dry-run"), @"
    Rollback to cp-20260121-001 (2026-01-21 14:30)

      M a

    Not covered and not touched: 1 excluded
    `src/` is excluded by `workspace.exclude` (`src/`), so it is not restored
    Everything is saved first; `biv undo` takes it back
    ");
    assert_snapshot!(env.run("checkpoint rollback latest --yes"), @"
    Rolled back to cp-20260121-001: 1 file written, 0 removed
    Everything as it was before is in cp-20260121-002
    note: `src/` is excluded by `workspace.exclude` (`src/`), so it is not restored
    ");
    assert_eq!((env.read("a").as_str(), env.read("src/main.rs").as_str()), ("1", "ruined"));
}
