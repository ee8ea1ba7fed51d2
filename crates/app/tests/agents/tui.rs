//! A released agent as people see it: its screen in tmux, under supervision; left, killed, and brought back

use bivouac_testkit::agents::Lab;
use bivouac_testkit::until;

use crate::agent;
use crate::screen::{Screen, greet_claude};

#[test]
fn the_screen_of_an_agent_is_left_killed_and_brought_back() {
    let Some(agent) = agent("claude-code") else {
        return;
    };
    let lab = Lab::new(agent);
    let Some(screen) = Screen::of(&lab) else {
        return;
    };
    greet_claude(&lab);
    let claude = ["claude", "--model", "claude-sonnet-4-5", "--allowedTools", "Write,Bash,Edit"];
    let words = ["run", "--detach", "--task", "BUILD it", "--interval", "60s", "--"];
    lab.biv(&[&words[..], &claude].concat());
    let session = lab.json(&["session", "list"])[0]["handle"].as_str().unwrap().to_owned();
    let triggers = || {
        let list = lab.json(&["checkpoint", "list"]);
        let list = list.as_array().unwrap().iter();
        list.map(|it| it["trigger"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    screen.await_words(&session, "? for shortcuts");
    screen.type_in(&session, "BUILD it");
    screen.await_words(&session, "BUILD-DONE");
    until("the end of the turn", || triggers().iter().any(|it| it == "TURN"));
    assert_eq!(lab.read("hello.txt"), "hello two\n");
    // Someone looks at it, and leaves it as tmux is left.
    let look = format!("env -u TMUX tmux attach-session -t ={session}");
    screen.ask(&["-L", "aside", "new-session", "-d", "-s", "aside", &look]);
    until("a client", || screen.ask(&["list-clients", "-t", &session]).contains("attached"));
    lab.write("by-hand.txt", "written while looking\n");
    screen.ask(&["-L", "aside", "send-keys", "-t", "aside", "C-b"]);
    screen.ask(&["-L", "aside", "send-keys", "-t", "aside", "d"]);
    until("a checkpoint at detach", || triggers().iter().any(|it| it == "DETACH"));
    // The agent goes on.
    screen.await_words(&session, "? for shortcuts");
    // All of it dies at once, as with the machine.
    screen.ask(&["kill-server"]);
    lab.end_orphans();
    until("the end", || lab.json(&["session", "list"])[0]["status"] != "active");
    let status = lab.json(&["session", "show", &session])["status"].clone();
    assert!(status == "interrupted" || status == "failed", "{status}");
    lab.biv(&["resume", &session, "--tmux", "--", "--model", "claude-sonnet-4-5"]);
    screen.await_words(&session, "BUILD-DONE");
    screen.type_in(&session, "RECALL one");
    until("the next request", || {
        lab.last_request().conversation().last().is_some_and(|it| it == "user: RECALL one")
    });
    let said = lab.last_request().conversation();
    assert_eq!(said[..5], crate::BUILD, "{said:#?}");
    lab.biv(&["verify"]);
}
