//! Progress in the files that teams already keep.

use std::fs;
use std::path::PathBuf;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::{env, git_env};

fn at_work() -> TestEnv {
    let env = git_env();
    env.write("src/a.rs", "1");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "first"]);
    env.run("session new --name notification-system --task \"Build notifications\"");
    env.run("task add email-sender --issue TAS-12");
    env.run("task done 001");
    env.run("task add push-notifier");
    env.run("task start 002");
    env.run("decision add \"Use SQS\" --why \"it retries\"");
    env
}

/// Where Claude Code keeps what it remembers of the workspace.
fn memory(env: &TestEnv) -> PathBuf {
    let path = env.work().canonicalize().unwrap().to_string_lossy().into_owned();
    let name: String =
        path.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    env.home().join(".claude/projects").join(name).join("memory")
}

#[test]
fn a_handoff_keeps_every_byte_that_is_not_its_own() {
    let env = at_work();
    env.write("HANDOFF.md", b"# Ours\r\n\xff stays\r\n");
    assert_snapshot!(env.run("export handoff"), @"Wrote [root]/project/HANDOFF.md");
    let written = fs::read(env.path("HANDOFF.md")).unwrap();
    assert!(written.starts_with(b"# Ours\r\n\xff stays\r\n"));
    assert_snapshot!(env.run("export handoff"), @"Nothing changed in [root]/project/HANDOFF.md");
    env.run("task done 002");
    env.run("export handoff");
    let again = fs::read(env.path("HANDOFF.md")).unwrap();
    let text = String::from_utf8_lossy(&again);
    assert_eq!(text.matches("<!-- biv:begin").count(), 1, "{text}");
    assert!(text.contains("- [x] push-notifier"), "{text}");
    env.write("HANDOFF.md", "<!-- biv:begin -->\nno end\n");
    assert_snapshot!(env.run("export handoff"), @"
    exit 1
    error: `[root]/project/HANDOFF.md`, line 1: the block does not end
    hint: nothing was changed; mend the file, or use another
    ");
    assert_eq!(env.read("HANDOFF.md"), "<!-- biv:begin -->\nno end\n");
}

#[test]
fn a_handoff_that_a_project_keeps_elsewhere_is_found() {
    let env = at_work();
    env.write(".agents/HANDOFF.md", "ours\n");
    assert_snapshot!(env.run("export handoff"), @"Wrote [root]/project/.agents/HANDOFF.md");
}

#[test]
fn a_session_checkpoint_is_not_written_over_what_somebody_changed() {
    let env = at_work();
    assert_snapshot!(env.run("export session-checkpoint"), @"Wrote [root]/project/docs/SESSION-CHECKPOINT.md");
    let file = "docs/SESSION-CHECKPOINT.md";
    env.run("task add router");
    assert_snapshot!(env.run("export session-checkpoint"), @"Wrote [root]/project/docs/SESSION-CHECKPOINT.md");
    let edited = env.read(file).replace("| router", "| message router");
    env.write(file, &edited);
    assert_snapshot!(env.run("export session-checkpoint"), @"
    exit 1
    error: `[root]/project/docs/SESSION-CHECKPOINT.md` was changed since it was written
    hint: `biv import` takes in what it says; `--force` keeps it under another name; `--file` writes elsewhere
    ");
    assert_eq!(env.read(file), edited);
    assert_snapshot!(env.run("export session-checkpoint --force"), @"
    Wrote [root]/project/docs/SESSION-CHECKPOINT.md
    note: what somebody else wrote there is in [root]/project/docs/SESSION-CHECKPOINT.md.kept
    ");
    assert_eq!(env.read("docs/SESSION-CHECKPOINT.md.kept"), edited);
}

#[test]
fn what_an_import_did_not_understand_is_kept() {
    let env = at_work();
    env.run("export session-checkpoint");
    let file = "docs/SESSION-CHECKPOINT.md";
    let edited =
        env.read(file).replace("## Current Phase", "Ask Bob about it.\n\n## Current Phase");
    env.write(file, &edited);
    env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md");
    env.run("export session-checkpoint");
    assert!(!env.read(file).contains("Bob"));
    assert_eq!(env.read("docs/SESSION-CHECKPOINT.md.kept"), edited);
}

#[test]
fn a_file_of_somebody_elses_is_no_place_for_a_document() {
    let env = at_work();
    env.write("notes.md", "precious\n");
    for kind in ["checkpoint-md", "session-checkpoint"] {
        let refused = env.run(&format!("export {kind} --file notes.md"));
        assert!(refused.starts_with("exit 1\nerror: `"), "{refused}");
        assert_eq!(env.read("notes.md"), "precious\n");
    }
    // The same moment twice is two files.
    env.set_minute(59);
    let first = env.run("export checkpoint-md --label foo");
    env.set_minute(59);
    let second = env.run("export checkpoint-md --label foo");
    assert!(first.ends_with("-foo.md") && second.ends_with("-foo-2.md"), "{first} {second}");
}

#[test]
fn a_folder_that_leads_elsewhere_is_not_followed() {
    let env = at_work();
    std::fs::create_dir(env.root().join("elsewhere")).unwrap();
    env.link("docs", "../elsewhere");
    let refused = env.run("export session-checkpoint");
    assert!(refused.contains("leads through a link"), "{refused}");
    assert_eq!(std::fs::read_dir(env.root().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_finished_features_file_is_archived_not_deleted() {
    let env = at_work();
    env.run("export session-checkpoint");
    let before = env.read("docs/SESSION-CHECKPOINT.md");
    assert_snapshot!(env.run("export session-checkpoint --archive"), @"Archived as [root]/project/docs/archive/SESSION-CHECKPOINT-2026-01-21-push-notifier.md");
    assert!(!env.exists("docs/SESSION-CHECKPOINT.md"));
    assert_eq!(env.read("docs/archive/SESSION-CHECKPOINT-2026-01-21-push-notifier.md"), before);
    assert_snapshot!(env.run("export session-checkpoint --archive"), @"There is nothing to archive.");
}

#[test]
fn the_memory_is_that_of_this_project_and_of_no_other() {
    let env = at_work();
    let memory = memory(&env);
    fs::create_dir_all(&memory).unwrap();
    fs::write(memory.join("MEMORY.md"), "# Stable Notes\n\nUse uv.\n").unwrap();
    env.run("export memory --label auth-middleware");
    let text = fs::read_to_string(memory.join("MEMORY.md")).unwrap();
    assert!(text.starts_with("## Working State\n- **Branch**: main\n"), "{text}");
    assert!(text.ends_with("# Stable Notes\n\nUse uv.\n"), "{text}");
    assert!(text.contains("- **Checkpoint**: auth-middleware (2026-01-21, SHA: "), "{text}");
    assert!(text.lines().take_while(|line| !line.starts_with("# ")).count() <= 15);
    // Somebody else's notes under the same heading are not ours to replace.
    fs::write(memory.join("MEMORY.md"), "## Working State\nMy own words.\n").unwrap();
    let refused = env.run("export memory");
    assert!(refused.starts_with("exit 1\nerror: `") && refused.contains("line 2"), "{refused}");
    assert_eq!(
        fs::read_to_string(memory.join("MEMORY.md")).unwrap(),
        "## Working State\nMy own words.\n"
    );
    // Another project whose path comes to the same name.
    let record = "{\"type\":\"user\",\"cwd\":\"/code/another\"}\n";
    fs::write(memory.parent().unwrap().join("a.jsonl"), record).unwrap();
    let refused = env.run("export memory");
    assert!(refused.contains("is the memory of another project, `/code/another`"), "{refused}");
}

#[test]
fn a_link_is_never_written_through() {
    let env = at_work();
    env.write("elsewhere.md", "mine\n");
    env.link("HANDOFF.md", "elsewhere.md");
    assert_snapshot!(env.run("export handoff"), @"
    exit 1
    error: `[root]/project/HANDOFF.md` is or leads through a link, is a folder or far too large, so it is left alone
    hint: name another file with `--file`
    ");
    assert_eq!(env.read("elsewhere.md"), "mine\n");
}

#[test]
fn a_checkpoint_file_names_its_label_and_what_the_project_keeps() {
    let env = at_work();
    env.git(&["checkout", "-q", "-b", "PROJ-123_add-auth"]);
    env.write(
        "docs/implementation_plans/PROJ-123/add-auth/pipeline_state.json",
        "{\"stage\": \"review\"}",
    );
    env.write(
        "docs/implementation_plans/PROJ-123/add-auth/progress/m1.json",
        "{\"status\": \"done\"}",
    );
    assert_snapshot!(env.run("export checkpoint-md"), @"Wrote [root]/project/checkpoints/2026-01-21-1436-push-notifier.md");
    assert_snapshot!(env.read("checkpoints/2026-01-21-1436-push-notifier.md"), @r#"
    # Checkpoint: push-notifier
    Created: 2026-01-21T14:36:00.000Z
    Git SHA: d6f32c79
    Branch: PROJ-123_add-auth

    ## Task
    Build notifications

    ## Decisions Made
    1. Use SQS: it retries <!-- d1 -->

    ## Progress
    - [x] email-sender <!-- 001 -->
    - [ ] push-notifier (in-progress) <!-- 002 -->

    Progress spine:

    ```text
    m1.json: done
    ```

    Pipeline state:

    ```json
    {"stage": "review"}
    ```

    ## Key Files
    - `docs/implementation_plans/PROJ-123/add-auth/pipeline_state.json` — new
    - `docs/implementation_plans/PROJ-123/add-auth/progress/m1.json` — new

    ## Approach & Rationale
    None

    ## Blockers / Open Questions
    None

    ## Next Steps
    1. Finish the task: push-notifier <!-- not read back -->

    ## Context for Resumption
    If resuming from this checkpoint, read these files first:
    - `docs/implementation_plans/PROJ-123/add-auth/pipeline_state.json` — new
    - `docs/implementation_plans/PROJ-123/add-auth/progress/m1.json` — new
    "#);
    assert_snapshot!(env.run("export checkpoint-md --label \"Auth Middleware!\" --file -").lines().next().unwrap(), @"# Checkpoint: auth-middleware");
}

#[test]
fn with_every_checkpoint_if_the_configuration_says_so() {
    let env = at_work();
    env.write("bivouac.toml", "[export]\non_checkpoint = [\"handoff\", \"session-checkpoint\"]\n");
    let shown = env.json("checkpoint create");
    let handle = shown["handle"].as_str().unwrap();
    let files = env.run(&format!("checkpoint show {handle} --files"));
    assert!(
        files.contains("HANDOFF.md") && files.contains("docs/SESSION-CHECKPOINT.md"),
        "{files}"
    );
    // Writing them is no reason for another checkpoint.
    assert_eq!(env.json("checkpoint create --trigger turn")["skipped"], true);
    env.run("session complete");
    assert!(!env.exists("docs/SESSION-CHECKPOINT.md"));
    env.write("bivouac.toml", "[export]\non_checkpoint = [\"everything\"]\n");
    assert_snapshot!(env.run("status"), @r#"
    Workspace  [root]/project
    Session    task-00000001 (completed): notification-system
    Last       cp-20260121-002 (MANUAL), 4 minutes ago
    Changes    1 new, 1 modified, 1 deleted since then
    Coverage   4 files, 2.0 KB; nothing left out
    Tasks      1 task completed, 1 in-progress, 0 pending
    note: `bivouac.toml` is not used: `export.on_checkpoint` in `[root]/project/bivouac.toml` is ["everything"], and it must be a list of "handoff", "session-checkpoint", "memory" or "checkpoint-md"; `biv config show --defaults` shows what a value looks like
    "#);
}

#[test]
fn secrets_stay_home() {
    let env = env();
    env.write(".env", "DATABASE_PASSWORD=q7Lm2x9Tz4Rk\n");
    env.run(
        "task add \"use q7Lm2x9Tz4Rk\" --note \"Authorization: Bearer abcdef0123456789abcdef\"",
    );
    env.run("decision add \"token=abcdef0123456789abcdef\" --why q7Lm2x9Tz4Rk");
    for kind in ["handoff", "session-checkpoint", "memory", "checkpoint-md", "events"] {
        let text = env.run(&format!("export {kind} --file -"));
        assert!(
            !text.contains("q7Lm2x9Tz4Rk") && !text.contains("abcdef0123456789"),
            "{kind}: {text}"
        );
    }
    for command in [
        "task list",
        "progress --format tree",
        "rehydrate",
        "log",
        "session show",
        "decision list --json",
    ] {
        let text = env.run(command);
        assert!(
            !text.contains("q7Lm2x9Tz4Rk") && !text.contains("abcdef0123456789"),
            "{command}: {text}"
        );
    }
    // What was blotted is no news when it comes back.
    env.run("export session-checkpoint");
    assert_eq!(
        env.run("import session-checkpoint docs/SESSION-CHECKPOINT.md").lines().next(),
        Some("Nothing in it is new.")
    );
}
