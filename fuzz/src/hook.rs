//! What a hook is told: a line with the event, then the agent's JSON. What is understood can be stored and read
//! again, and an answer is in the agent's own form.

use std::sync::LazyLock;

use bivouac_capture::agents;
use bivouac_core::agent::AgentKind;
use bivouac_core::event::Event;
use bivouac_core::observation::respond;
use bivouac_core::redact::Redactor;
use bivouac_engine::config::Config;
use bivouac_engine::observe::Hook;
use serde_json::Value;

static CONFIG: LazyLock<Config> = LazyLock::new(Config::defaults);

pub fn try_one(agent: AgentKind, bytes: &[u8]) {
    // The command line lets nothing else through.
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (event, input) = text.split_once('\n').unwrap_or((text, ""));
    check_answer(agent, event, input);
    let hook = Hook::new(agent, event.to_owned(), input.to_owned());
    let Some(observation) = hook.observation() else { return };
    assert_eq!(observation.agent, agent);
    for event in respond(&observation, &CONFIG.risks).events {
        check_event(&event);
    }
}

/// An event is stored as text, and what it says is shown without its secrets: it is the same kind of thing still.
fn check_event(event: &Event) {
    let stored = event.data();
    let read = Event::parse(event.kind(), &stored).expect("what was stored is read again");
    assert_eq!(read, *event);
    let mut shown: Value = serde_json::from_str(&stored).expect("an event is stored as JSON");
    Redactor::default().redact_json(&mut shown);
    let safe = shown.to_string();
    Event::parse(event.kind(), &safe).expect("what was redacted is still an event");
}

fn check_answer(agent: AgentKind, event: &str, words: &str) {
    let answer = agents::of(agent).answer(event, words);
    // Its plugin hands the words on as they are.
    if agent == AgentKind::Opencode {
        return assert_eq!(answer, words);
    }
    assert!(!answer.contains('\n'), "an answer is one line");
    let answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
    let said = answer.get("hookSpecificOutput").unwrap_or(&answer);
    assert_eq!(said["additionalContext"], words);
}
