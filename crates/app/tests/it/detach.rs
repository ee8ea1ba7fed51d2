//! `biv detach`

use bivouac_testkit::until;
use insta::assert_snapshot;

use crate::attach::{handle, with_agent};

#[test]
fn everyone_is_sent_away_and_a_checkpoint_is_saved() {
    let env = with_agent();
    let Some(server) = env.tmux_server() else { return };
    env.biv(&["resume", "auth", "--tmux"]).ok();
    assert_snapshot!(env.run("detach auth"), @"Nobody looks at tmux session task-00000001");
    env.write("a", "2");
    server.run_aside(&format!("tmux attach -t {}", handle(&env)));
    until("someone who looks", || !server.ask(&["list-clients"]).is_empty());
    assert_snapshot!(env.run("detach auth"), @"Detached 1 terminal from tmux session task-00000001");
    until("the checkpoint", || env.run("checkpoint list").contains("DETACH"));
}

#[test]
fn outside_of_tmux_there_is_nothing_to_leave() {
    let env = with_agent();
    let Some(_server) = env.tmux_server() else { return };
    assert_snapshot!(env.run("detach auth"), @"
    exit 1
    error: session task-00000001 is not in tmux
    hint: `biv resume task-00000001 --tmux` goes on with it there
    ");
    assert_snapshot!(env.run("detach nobody"), @"
    exit 1
    error: there is no session `nobody`
    hint: `biv session list --all` shows all sessions
    ");
}
