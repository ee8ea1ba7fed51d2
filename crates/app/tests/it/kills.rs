//! Killed at any moment, agent, supervisor or both: what was said to be saved comes back, files and conversation

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use bivouac_testkit::{TestEnv, kill};
use serde_json::Value;

use crate::env;

const ROUNDS: u32 = 105;
const ID: &str = "11111111-0000-4000-8000-000000000001";

/// Plays an agent: works on five files, each changed in one step as editors do, writes down what is said, and calls the hook at the end of each turn.
/// What the hook has answered is noted outside.
const AGENT: &str = r#"
hook() { printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s"%s}' "$ID" "$TRANSCRIPT" "$PWD" "$2" \
    | "$BIV" hook claude-code "$1" > /dev/null; }
hook UserPromptSubmit ',"prompt":"count"'
k=0
while :; do
    k=$((k + 1))
    for n in 1 2 3 4 5; do echo "state $k" > part; mv part "f$n"; done
    printf '{"type":"user","uuid":"u%s","message":{"content":"count"}}\n' $k >> "$TRANSCRIPT"
    printf '{"type":"assistant","uuid":"a%s","parentUuid":"u%s","message":{"id":"m%s","content":[{"type":"text","text":"state %s"}]}}\n' \
        $k $k $k $k >> "$TRANSCRIPT"
    hook Stop ',"last_assistant_message":"state '$k'"'
    echo $k >> "$ACKED"
done
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Agent,
    Supervisor,
    Both,
}

struct Round {
    env: TestEnv,
    number: u32,
    transcript: PathBuf,
    acked: PathBuf,
}

impl Round {
    fn new(number: u32) -> Self {
        let mut env = env();
        let transcript = env.home().join(format!(".claude/projects/-w/{ID}.jsonl"));
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        let acked = env.root().join("acked");
        env.set("ID", ID).set("BIV", env!("CARGO_BIN_EXE_biv"));
        env.set("TRANSCRIPT", &transcript).set("ACKED", &acked).set("BIV_HOOK_WAITS", "1");
        fs::write(env.root().join("agent.sh"), AGENT).unwrap();
        Self { env, number, transcript, acked }
    }

    /// The same moments in every run of the tests, spread over the first turns.
    fn moment(&self) -> Duration {
        let mixed = (self.number + 1).wrapping_mul(2_654_435_761) >> 8;
        Duration::from_millis(20 + u64::from(mixed % 500))
    }

    fn start(&self) -> Child {
        let log = self.env.root().join("log");
        let mut words = vec!["run", "--task", "Count", "--interval", "1s"];
        // Every other one on a terminal of its own, at which nobody looks.
        if self.number.is_multiple_of(2) {
            words.extend(["--log", log.to_str().unwrap()]);
        }
        let script = self.env.root().join("agent.sh");
        words.extend(["--", "sh", script.to_str().unwrap()]);
        self.env.start_live(&words)
    }

    fn n_acked(&self) -> u64 {
        let text = fs::read_to_string(&self.acked).unwrap_or_default();
        // A line without its end was not written to its end.
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        whole.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0)
    }
}

#[test]
fn whoever_dies_and_whenever_what_was_saved_comes_back() {
    let mut n_acked = 0;
    for number in 0..ROUNDS {
        let victim = [Victim::Agent, Victim::Supervisor, Victim::Both][number as usize % 3];
        let round = Round::new(number);
        let mut child = round.start();
        // The moments are about the work, not about how long it takes to begin.
        let started = Instant::now();
        while !round.transcript.exists() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(round.moment());
        let agents = round.env.processes();
        // The supervisor first: otherwise it has time to notice that the agent is gone.
        if victim != Victim::Agent {
            child.kill().unwrap();
        }
        if victim != Victim::Supervisor {
            let agents = agents.iter().filter(|(_, words)| words.starts_with("sh "));
            agents.for_each(|(pid, _)| kill(*pid));
        }
        let code = child.wait().unwrap().code();
        if victim == Victim::Agent {
            assert_eq!(code, Some(137), "round {number}");
        }
        // Whatever lives on without its supervisor is done with now, in the middle of what it does.
        round.env.kill_all();
        n_acked += u64::from(round.n_acked() > 0);
        check(&round, victim);
    }
    // A test in which nothing was ever saved would prove nothing.
    assert!(n_acked > u64::from(ROUNDS) / 2, "only {n_acked} rounds had something to lose");
}

fn check(round: &Round, victim: Victim) {
    let (env, acked) = (&round.env, round.n_acked());
    let about = format!("round {}, {victim:?} killed, {acked} turns saved", round.number);
    let session = env.json("session list")[0].clone();
    let status = session["status"].as_str().unwrap().to_owned();
    match victim {
        Victim::Agent => assert_eq!(status, "failed", "{about}"),
        Victim::Supervisor | Victim::Both => assert_eq!(status, "interrupted", "{about}"),
    }
    if acked == 0 {
        return;
    }
    let out = env.root().join("out");
    env.biv(&["checkpoint", "restore", "latest", "--into", out.to_str().unwrap()]).ok();
    for n in 1..=5 {
        let state = state_of(&out.join(format!("f{n}")));
        assert!(state >= acked, "{about}: f{n} is of turn {state}");
    }
    let print = env.json(&format!("resume {} --print", session["handle"].as_str().unwrap()));
    let turns = turns_given_back(&print);
    assert!(turns >= acked, "{about}: the agent is given back {turns} turns");
    assert!(env.run("verify").contains("All is as it was written"), "{about}");
}

fn state_of(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.strip_prefix("state ").and_then(|it| it.trim_end().parse().ok()).unwrap_or(0)
}

/// How many answers are in the file that the agent is to be started with.
fn turns_given_back(print: &Value) -> u64 {
    let words = print["command"].as_array().unwrap();
    let file = words.iter().filter_map(Value::as_str).find(|word| word.ends_with(".jsonl"));
    let text = fs::read_to_string(file.expect("a conversation to go on with")).unwrap();
    text.lines().filter(|line| line.contains(r#""type":"assistant""#)).count() as u64
}
