//! Real conversations of every agent: each record is read, each answer counted once.

#![expect(clippy::unwrap_used, reason = "a sample that cannot be read has failed")]

use std::path::PathBuf;

use bivouac_capture::agents;
use bivouac_capture::agents::reading::{Part, Reading, Source, read_on};
use bivouac_capture::agents::restore::{Kept, Order};
use bivouac_core::agent::AgentKind;

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../app/tests/agents/samples").join(name)
}

fn read(agent: AgentKind, name: &str) -> Reading {
    let source = match agent {
        AgentKind::Opencode => Source::Bytes(std::fs::read(sample(name)).unwrap()),
        _ => Source::File(sample(name).canonicalize().unwrap()),
    };
    let part = Part { name: "main".to_owned(), source };
    let mut reading = Reading::default();
    read_on(agents::of(agent), &part, &mut reading).unwrap();
    let once = reading.clone();
    read_on(agents::of(agent), &part, &mut reading).unwrap();
    assert_eq!(reading, once, "reading on where nothing came changes nothing");
    reading
}

#[test]
fn every_sample_is_read() {
    let check = |agent, name: &str, turns: u64, models: &[(&str, u64)]| {
        let reading = read(agent, name);
        assert_eq!((reading.n_bad, reading.torn_bytes), (0, 0), "{name}");
        let by_model = reading.usage.by_model.iter();
        let found: Vec<(&str, u64)> =
            by_model.map(|(model, tokens)| (model.as_str(), tokens.total())).collect();
        assert_eq!((reading.usage.n_turns, found.as_slice()), (turns, models), "{name}");
    };
    check(AgentKind::ClaudeCode, "claude/transcript.jsonl", 5, &[("claude-sonnet-4-5", 84_420)]);
    check(
        AgentKind::ClaudeCode,
        "claude/transcript.subagent.jsonl",
        0,
        &[("claude-sonnet-4-5", 6_925)],
    );
    check(AgentKind::Codex, "codex/rollout.jsonl", 5, &[("gpt-5-codex", 40_577)]);
    check(AgentKind::Codex, "codex/rollout.fork.jsonl", 1, &[("gpt-5-codex", 5_694)]);
    check(AgentKind::Codex, "codex/rollout.subagent.jsonl", 1, &[("gpt-5-codex", 10_420)]);
    check(AgentKind::Gemini, "gemini/session.jsonl", 2, &[("gemini-2.5-pro", 33_859)]);
    check(AgentKind::Copilot, "copilot/events.jsonl", 2, &[("gpt-5", 30_234)]);
    check(AgentKind::Opencode, "opencode/export.json", 2, &[("fake-model", 13_205)]);
}

/// A fork holds only its own records: with the file it continues, it becomes one file that needs no other.
#[test]
fn a_chain_of_files_becomes_one() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let line = |ordinal: u32, kind: &str, payload: &str| {
        format!("{{\"ordinal\":{ordinal},\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let base = line(0, "session_meta", r#"{"id":"old-1","cwd":"/code/app"}"#)
        + &line(1, "response_item", r#"{"text":"one in /code/app/src"}"#)
        + &line(2, "response_item", r#"{"text":"two, which was taken back"}"#);
    let head = r#"{"id":"old-2","history_base":{"thread_id":"old-1","end_ordinal_exclusive":2}}"#;
    let main = line(2, "session_meta", head) + &line(3, "response_item", r#"{"text":"three"}"#);
    std::fs::write(kept.join("base-1.jsonl"), base).unwrap();
    std::fs::write(kept.join("main.jsonl"), main).unwrap();
    let order = Order {
        home: folder.path().join("home"),
        workspace: "/else/where".to_owned(),
        new_id: "new-1".to_owned(),
        now: "2026-01-21T14-30-00".to_owned(),
        scratch: folder.path().join("scratch"),
        extra: vec!["-p".to_owned(), "go on".to_owned()],
    };
    let kept = Kept {
        id: "old-2".parse().unwrap(),
        folder: kept,
        parts: vec!["main.jsonl".to_owned(), "base-1.jsonl".to_owned()],
        workspace: "/code/app".to_owned(),
    };
    let launch = agents::of(AgentKind::Codex).restore(&kept, &order).unwrap();
    assert_eq!(launch.command, ["codex", "exec", "resume", "new-1", "go on"]);
    let path =
        order.home.join(".codex/sessions/2026/01/21/rollout-2026-01-21T14-30-00-new-1.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let expected = line(0, "session_meta", r#"{"id":"new-1","cwd":"/else/where"}"#)
        + &line(1, "response_item", r#"{"text":"one in /else/where/src"}"#)
        + &line(2, "response_item", r#"{"text":"three"}"#);
    assert_eq!(text, expected);
}

/// Ten thousand real inputs with bytes changed, cut or doubled: none is worth more than a shrug.
#[test]
fn hostile_input_is_no_trouble() {
    let folders = ["claude", "codex", "gemini", "opencode", "copilot"];
    let mut inputs = Vec::new();
    for (agent, folder) in AgentKind::ALL.into_iter().zip(folders) {
        for entry in std::fs::read_dir(sample(folder)).unwrap() {
            let path = entry.unwrap().path();
            let event = path.file_stem().unwrap().to_str().unwrap().to_owned();
            inputs.push((agent, event, std::fs::read(&path).unwrap()));
        }
    }
    // The same numbers every time: a failure can be looked at again.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut n_understood = 0;
    for _ in 0..10_000 {
        let (agent, event, input) = &inputs[next(inputs.len())];
        let mut bytes = input.clone();
        for _ in 0..next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_within(at..),
                _ => bytes[at] = next(256) as u8,
            }
            if bytes.is_empty() {
                break;
            }
        }
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(&bytes) {
            let agent = agents::of(*agent);
            let event = event.split('.').next().unwrap_or_default();
            n_understood += usize::from(agent.observe(event, agents::Input::new(&value)).is_some());
            agent.read(&value, &mut Reading::default());
        }
    }
    assert!(n_understood > 1_000, "{n_understood}");
}
