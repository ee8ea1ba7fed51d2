//! What a person types into the screens of the released agents, set up by `biv setup`: `/checkpoint` and
//! `/rehydrate` (in Codex `$checkpoint` and `$rehydrate`, which are skills), Codex's question whether our hooks may
//! run, and Claude Code's whether a model may roll back. What came of it is proven from the store, from what the
//! model was sent and from the screen.
//!
//! Codex and Copilot CLI run nothing before the model: there it is the scripted model that calls our tools, as the
//! skill tells it to. Copilot CLI starts without a network, once it was told that the folder can be trusted.

use std::fs;

use bivouac_testkit::agents::Lab;
use bivouac_testkit::until;
use serde_json::{Value, json};

use crate::agent;
use crate::screen::{Screen, greet_claude};

/// The pane an agent runs in.
const PANE: &str = "agent";

/// Means something to every shell, and nothing to us.
const SAVE: &str = "checkpoint save it's-a $(touch pwned) label";
const LABEL: &str = "it-s-a-touch-pwned-label";
const CLAUDE: [&str; 3] = ["claude", "--model", "claude-sonnet-4-5"];

/// An agent with all it gets from us, for as long as the test runs.
fn set_up(name: &str) -> Option<Lab> {
    let lab = Lab::bare(agent(name)?);
    let config = lab.home().join(".codex/config.toml");
    match name {
        "claude-code" => greet_claude(&lab),
        "codex" => {
            let settings = fs::read_to_string(&config).unwrap();
            let folder = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", lab.work());
            fs::write(config, settings + &folder).unwrap();
        }
        "opencode" => spare_download(&lab),
        _ => {}
    }
    lab.biv(&["setup", "--agent", name, "--yes"]);
    Some(lab)
}

/// opencode fetches a package that plugins may use before it shows anything, unless it seems to be there.
fn spare_download(lab: &Lab) {
    const PACKAGE: &str = "@opencode-ai/plugin";
    let version = lab.program(&["--version"]).trim().to_owned();
    let wanted = json!({ "dependencies": { PACKAGE: version } });
    let packages = json!({ "": wanted, format!("node_modules/{PACKAGE}"): { "version": version } });
    let locked = json!({ "lockfileVersion": 3, "requires": true, "packages": packages });
    let folder = lab.home().join(".config/opencode");
    let package = folder.join("node_modules").join(PACKAGE);
    fs::create_dir_all(&package).unwrap();
    for (path, text) in [
        (package.join("package.json"), json!({ "name": PACKAGE, "version": version })),
        (folder.join("package.json"), wanted),
        (folder.join("package-lock.json"), locked),
    ] {
        fs::write(path, text.to_string()).unwrap();
    }
}

/// Says something, and waits for the model's answer and for the checkpoint at the end of the turn.
fn say(screen: &Screen<'_>, words: &str, answer: &str) {
    let n_turns = || {
        let turns = screen.lab.json(&["checkpoint", "list", "--trigger", "turn"]);
        turns.as_array().unwrap().len()
    };
    let n_before = n_turns();
    screen.type_in(PANE, words);
    screen.await_words(PANE, answer);
    until("the end of the turn", || n_turns() > n_before);
}

/// A conversation of its own, and another session here that is newer and none of its business.
fn begin(screen: &Screen<'_>) {
    say(screen, "RECALL one", "RECALL-DONE");
    screen.lab.biv(&["session", "new", "--name", "aside", "--task", "Something else"]);
}

/// Asks for all there is. The space at the end closes the list of names some agents show, which takes an Enter.
fn ask_for_all(screen: &Screen<'_>, sign: char, save: &str) {
    say(screen, &format!("{sign}{save}"), "RELAYED-SAVE");
    say(screen, &format!("{sign}checkpoint list"), "RELAYED-LIST");
    say(screen, &format!("{sign}rehydrate "), "RELAYED-REHYDRATE");
}

/// The checkpoint is there once, in the conversation's own session, and nothing else was done.
fn assert_saved(lab: &Lab, name: &str, label: &str) {
    let sessions = lab.json(&["session", "list"]);
    let sessions = sessions.as_array().unwrap();
    let own: Vec<&Value> = sessions.iter().filter(|it| it["name"] != "aside").collect();
    assert_eq!((own.len(), &own[0]["agent_type"]), (1, &Value::from(name)), "{sessions:#?}");
    let list = lab.json(&["checkpoint", "list"]);
    let list = list.as_array().unwrap();
    let named: Vec<&Value> = list.iter().filter(|it| it["name"] == label).collect();
    assert_eq!((named.len(), &named[0]["session_id"]), (1, &own[0]["id"]), "{list:#?}");
    assert_eq!(named[0]["conversation"]["agent"], name, "{list:#?}");
    assert!(list.iter().all(|it| it["session_id"] == own[0]["id"]), "{list:#?}");
    for folder in [lab.work(), lab.home()] {
        assert!(!folder.join("pwned").exists(), "{}", folder.display());
    }
}

/// The model was sent our answers with what the person typed.
fn assert_told(lab: &Lab) {
    let asked = lab.last_request();
    for words in [
        "Saved checkpoint cp-",
        &format!("Label: {LABEL}"),
        &format!("| {LABEL} | main |"),
        "## Session Resumed",
        "user: RECALL one",
    ] {
        assert!(asked.heard(words), "{words}");
    }
}

/// The model asked our tools, and was sent what they answered.
fn assert_told_by_tools(lab: &Lab, label: &str) {
    // Some agents wrap what tools say in JSON of their own.
    let answers = lab.last_request().tool_results();
    let answers: Vec<String> = answers.iter().map(|it| it.replace('\\', "")).collect();
    let [saved, listed, told] = &answers[..] else {
        panic!("{answers:#?}");
    };
    let name = format!("\"name\":\"{label}\"");
    assert!(saved.contains(&name) && listed.contains(&name), "{answers:#?}");
    assert!(told.contains("Rehydrated: ") && told.contains("user: RECALL one"), "{told}");
}

#[test]
fn claude_code_answers_what_is_typed() {
    let Some(lab) = set_up("claude-code") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    screen.start(PANE, &CLAUDE);
    screen.await_words(PANE, "? for shortcuts");
    begin(&screen);
    ask_for_all(&screen, '/', SAVE);
    assert_saved(&lab, "claude-code", LABEL);
    assert_told(&lab);
    // The model does not know the word, but the hooks were called.
    let found = lab.biv(&["doctor", "--live", "--agent", "claude-code"]);
    assert!(found.contains("?   live      its hooks were called; the model did not"), "{found}");
}

#[test]
fn gemini_answers_what_is_typed() {
    let Some(lab) = set_up("gemini") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    screen.start(PANE, &["gemini", "-m", "gemini-2.5-pro"]);
    screen.await_words(PANE, "Type your message");
    // Commands and the prompts of our server do not take names from each other.
    screen.await_words(PANE, "1 MCP server");
    assert!(!screen.shows(PANE, "was renamed to"));
    begin(&screen);
    ask_for_all(&screen, '/', SAVE);
    assert_saved(&lab, "gemini", LABEL);
    assert_told(&lab);
}

#[test]
fn opencode_answers_what_is_typed() {
    let Some(lab) = set_up("opencode") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    screen.start(PANE, &["opencode"]);
    screen.await_words(PANE, "Ask anything");
    screen.await_words(PANE, "1 MCP");
    begin(&screen);
    ask_for_all(&screen, '/', SAVE);
    assert_saved(&lab, "opencode", LABEL);
    assert_told(&lab);
}

#[test]
fn copilot_asks_for_what_is_typed() {
    let Some(lab) = set_up("copilot") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    screen.start(PANE, &["copilot", "--allow-tool=bivouac"]);
    screen.await_words(PANE, "Do you trust the files in this folder?");
    screen.press(PANE, "Enter");
    screen.await_words(PANE, "1 server connected");
    begin(&screen);
    ask_for_all(&screen, '/', SAVE);
    assert!(screen.shows(PANE, "checkpoint_save (MCP: bivouac)"));
    assert_saved(&lab, "copilot", LABEL);
    assert_told_by_tools(&lab, LABEL);
}

#[test]
fn codex_asks_whether_it_may_and_for_what_is_typed() {
    let Some(lab) = set_up("codex") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    // This exits with 3, as not one hook is called yet.
    let found = lab.try_run("biv", &["doctor", "--agent", "codex"]);
    assert!(found.contains("bad trust     codex passes over 12 of 12 hooks"), "{found}");
    screen.start(PANE, &["codex", "--no-daemon"]);
    screen.await_words(PANE, "Hooks need review");
    screen.press(PANE, "Down");
    screen.await_words(PANE, "› 2. Trust all and continue");
    screen.press(PANE, "Enter");
    screen.await_words(PANE, "Ask Codex to do anything");
    let found = lab.biv(&["doctor", "--agent", "codex"]);
    assert!(found.contains("ok  trust     you agreed to these hooks"), "{found}");
    begin(&screen);
    ask_for_all(&screen, '$', "checkpoint save first");
    assert!(screen.shows(PANE, "Called bivouac.checkpoint_save"));
    assert_saved(&lab, "codex", "first");
    assert_told_by_tools(&lab, "first");
    let found = lab.biv(&["doctor", "--agent", "codex"]);
    assert!(found.contains("ok  heard     its last conversation began"), "{found}");
    let found = lab.biv(&["doctor", "--live", "--agent", "codex"]);
    assert!(found.contains("?   live      its hooks were called; the model did not"), "{found}");
}

/// A model asks for a rollback, and the person is asked on the screen: no is no, and yes is yes.
#[test]
fn a_rollback_is_declined_and_confirmed_in_claude_code() {
    let Some(lab) = set_up("claude-code") else {
        return;
    };
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    // Whether the tool may be called at all is Claude Code's own question.
    let allowed = ["--allowedTools", "mcp__bivouac__checkpoint_rollback"];
    screen.start(PANE, &[&CLAUDE[..], &allowed].concat());
    screen.await_words(PANE, "? for shortcuts");
    lab.write("a.txt", "one\n");
    say(&screen, "/checkpoint save before", "RELAYED-SAVE");
    lab.write("a.txt", "two\n");
    let asked_for = |words: &str| {
        screen.type_in(PANE, words);
        screen.await_words(PANE, "An agent wants to roll back to cp-");
        screen.await_words(PANE, "replace `a.txt`");
        screen.await_words(PANE, "❯ * Roll back: ☐");
        assert_eq!(lab.read("a.txt"), "two\n", "nobody has said yes");
    };
    let press = |key: &str, shown: &str| {
        screen.press(PANE, key);
        screen.await_words(PANE, shown);
    };
    let answer = || lab.last_request().tool_results().pop().unwrap();
    asked_for("ROLLBACK once");
    press("Down", "❯ Accept");
    press("Right", "❯ Decline");
    press("Enter", "ROLLBACK-DONE");
    assert!(answer().contains("was not confirmed"), "{}", answer());
    assert_eq!(lab.read("a.txt"), "two\n");
    asked_for("ROLLBACK again");
    press("Space", "Roll back: ☒");
    press("Down", "❯ Accept");
    screen.press(PANE, "Enter");
    until("the file", || lab.read("a.txt") == "one\n");
    until("the answer", || answer().contains("\"operation\":\"rollback\""));
    let list = lab.json(&["checkpoint", "list", "--trigger", "safety"]);
    assert_eq!(list.as_array().unwrap().len(), 1, "what was there is kept: {list:#}");
}
