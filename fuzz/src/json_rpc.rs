//! What a client says to the MCP server: its lines. Every answer is one line of JSON-RPC, there are no more answers
//! than questions, and each is to something that was asked.

use std::fs::{self, File};

use bivouac::mcp::serve_between;
use bivouac_engine::home::Wishes;
use serde_json::Value;

pub fn try_one(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (said, heard) = (folder.path().join("said"), folder.path().join("heard"));
    fs::write(&said, bytes).expect("a new folder takes a file");
    // Nowhere: every command is understood, and refused where it would open a store.
    let nowhere = Some(folder.path().join("nowhere"));
    let wishes = Wishes { folder: nowhere.clone(), store: nowhere, workspace: None };
    let input = File::open(&said).expect("it was just written");
    let output = File::create(&heard).expect("a new folder takes a file");
    serve_between(&wishes, input, output).expect("it ends when the client does");
    let heard = fs::read_to_string(&heard).expect("answers are text");
    assert!(heard.is_empty() || heard.ends_with('\n'), "an answer is a whole line");
    let lines = bytes.split(|byte| *byte == b'\n');
    let asked: Vec<Value> = lines.filter_map(id_of).collect();
    let answers: Vec<Value> = heard.lines().filter_map(answered).collect();
    assert!(answers.len() <= bytes.split(|byte| *byte == b'\n').count());
    for id in answers.iter().filter(|id| **id != Value::Null) {
        assert!(asked.contains(id), "nobody asked {id}");
    }
}

/// The id of a line that has one.
fn id_of(line: &[u8]) -> Option<Value> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    serde_json::from_slice::<Value>(line).ok()?.get("id").cloned()
}

/// Which question a line answers; `None` for a question of the server's own.
fn answered(line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).expect("an answer is JSON");
    assert_eq!(message["jsonrpc"], "2.0");
    let is_answer = [message.get("result"), message.get("error")].iter().flatten().count();
    match message.get("method") {
        Some(_) => assert_eq!(is_answer, 0, "{line}"),
        None => assert_eq!(is_answer, 1, "{line}"),
    }
    (is_answer == 1).then(|| message.get("id").cloned().unwrap_or_default())
}
