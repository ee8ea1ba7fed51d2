//! What a client can show and attach: the briefing of a session, and its checkpoints.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value;

use super::tools::Typed;

/// Of each kind, the newest.
const MOST: usize = 20;

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("biv://session/{session}/briefing", "briefing")
            .with_description("All a fresh agent needs to go on with a session")
            .with_mime_type("text/markdown"),
        ResourceTemplate::new("biv://session/{session}/checkpoint/{checkpoint}", "checkpoint")
            .with_description("What a checkpoint holds")
            .with_mime_type("application/json"),
    ]
}

/// The commands whose answers the list is made of: the sessions here, and the checkpoints of the one at hand.
pub(super) fn sources() -> [Typed; 2] {
    [Typed::new("session list"), Typed::new("checkpoint list")]
}

pub(super) fn list(sessions: &Value, checkpoints: &Value) -> Vec<Resource> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let newest = |list: &Value| {
        list.as_array().into_iter().flatten().rev().take(MOST).cloned().collect::<Vec<_>>()
    };
    let briefing = |session: &Value| {
        let handle = text(session, "handle");
        Resource::new(format!("biv://session/{handle}/briefing"), format!("{handle} briefing"))
            .with_description(text(session, "task_description"))
            .with_mime_type("text/markdown")
    };
    let checkpoint = |it: &Value| {
        let (session, handle) = (text(it, "session_id"), text(it, "handle"));
        Resource::new(format!("biv://session/{session}/checkpoint/{handle}"), handle)
            .with_description(text(it, "message"))
            .with_mime_type("application/json")
    };
    let sessions = newest(sessions);
    let checkpoints = newest(checkpoints);
    sessions.iter().map(briefing).chain(checkpoints.iter().map(checkpoint)).collect()
}

/// The command that reads a resource, and what its answer is.
pub(super) fn read(uri: &str) -> Option<(Typed, &'static str)> {
    let parts: Vec<&str> = uri.strip_prefix("biv://session/")?.split('/').collect();
    if !parts.iter().all(|part| is_id(part)) {
        return None;
    }
    match parts[..] {
        [session, "briefing"] => {
            let format = Some("markdown".to_owned());
            let command = Typed::new("rehydrate").set("format", format).with(session.to_owned());
            Some((command.in_words(), "text/markdown"))
        }
        [session, "checkpoint", checkpoint] => {
            let session = Some(session.to_owned());
            let command = Typed::new("checkpoint show").set("session", session);
            Some((command.with(checkpoint.to_owned()), "application/json"))
        }
        _ => None,
    }
}

fn is_id(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=128).contains(&part.len()) && !part.starts_with('-') && part.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_a_thing_is_read() {
        let check = |uri: &str, words: Option<&str>| {
            let found = read(uri).map(|(command, _)| command.words().join(" "));
            assert_eq!(found.as_deref(), words, "{uri}");
        };
        check("biv://session/task-1/briefing", Some("rehydrate --format=markdown task-1"));
        check(
            "biv://session/task-1/checkpoint/cp-20260121-001",
            Some("checkpoint show --session=task-1 cp-20260121-001"),
        );
        check("biv://session/task-1/checkpoint/--files", None);
        check("biv://session/../briefing/x", None);
        check("biv://session/a%2Fb/briefing", None);
        check("biv://session//briefing", None);
        check("file:///etc/passwd", None);
    }
}
