//! The line to the client: one message on each, in and out. What is no message is answered here and goes no
//! further, so that nothing a client says can end the server. A thread reads and one writes, because both wait.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::thread;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::answer::quoted;

/// Longer lines are answered without being kept.
const MAX_LINE: usize = 4 << 20;
/// Where the id of such a line is looked for, at both ends.
const EDGE: usize = 256;
/// So many answers may wait for a client that does not read.
const WAITING: usize = 64;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Wire {
    incoming: Receiver<ClientJsonRpcMessage>,
    outgoing: Sender<ServerJsonRpcMessage>,
}

/// Says when everything is written.
pub(super) struct Written(std::sync::mpsc::Receiver<()>);

impl Wire {
    pub(super) fn open(input: File, output: File) -> (Self, Written) {
        let (to_us, incoming) = mpsc::channel(WAITING);
        let (outgoing, to_them) = mpsc::channel(WAITING);
        let answers = outgoing.clone();
        thread::spawn(move || read(BufReader::new(input), &to_us, &answers));
        let (done, written) = std::sync::mpsc::channel();
        thread::spawn(move || {
            write(output, to_them);
            let _nobody_waits = done.send(());
        });
        (Self { incoming, outgoing }, Written(written))
    }
}

impl Written {
    /// A client that reads no more is not waited for.
    pub(super) fn wait(&self, within: Duration) {
        let _it_wrote_what_it_could = self.0.recv_timeout(within);
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move { outgoing.send(message).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close();
        Ok(())
    }
}

fn read(
    mut input: BufReader<File>,
    to_us: &Sender<ClientJsonRpcMessage>,
    answers: &Sender<ServerJsonRpcMessage>,
) {
    let mut has_begun = false;
    while let Ok(Some(line)) = next_line(&mut input) {
        // Who does not read the answers gets to ask no more questions.
        while answers.capacity() == 0 && !answers.is_closed() {
            if has_hung_up(input.get_ref()) {
                return;
            }
            thread::sleep(PAUSE);
        }
        let is_heard = match judge(&line, &mut has_begun) {
            Verdict::Pass(message) => to_us.blocking_send(*message).is_ok(),
            Verdict::Answer(error, id) => {
                answers.blocking_send(JsonRpcMessage::error(error, id)).is_ok()
            }
            Verdict::Ignore => true,
        };
        if !is_heard {
            return;
        }
    }
}

/// Will nobody ever write there again?
fn has_hung_up(input: &File) -> bool {
    let mut line = [PollFd::new(input, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut line, Some(&at_once)).is_ok_and(|n_said| n_said > 0)
}

fn write(mut output: File, mut to_them: Receiver<ServerJsonRpcMessage>) {
    while let Some(message) = to_them.blocking_recv() {
        let Ok(mut line) = serde_json::to_vec(&message) else {
            continue;
        };
        line.push(b'\n');
        if output.write_all(&line).is_err() {
            return;
        }
    }
}

/// A line as it came in.
enum Line {
    Whole(Vec<u8>),
    /// Its beginning and its end.
    TooLong(Vec<u8>, Vec<u8>),
}

/// `None` at the end. A last line without an end is no message.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut end, mut is_too_long) = (Vec::new(), Vec::new(), false);
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..newline.unwrap_or(bytes.len())];
        is_too_long |= line.len() + part.len() > MAX_LINE;
        match is_too_long {
            false => line.extend_from_slice(part),
            true => {
                let missing = EDGE.saturating_sub(line.len()).min(part.len());
                line.extend_from_slice(&part[..missing]);
                line.truncate(EDGE);
                end.extend_from_slice(&part[part.len().saturating_sub(EDGE)..]);
                end.drain(..end.len().saturating_sub(EDGE));
            }
        }
        let n_taken = part.len() + usize::from(newline.is_some());
        input.consume(n_taken);
        if newline.is_some() {
            let line = if is_too_long { Line::TooLong(line, end) } else { Line::Whole(line) };
            return Ok(Some(line));
        }
    }
}

enum Verdict {
    Pass(Box<ClientJsonRpcMessage>),
    Answer(ErrorData, Option<RequestId>),
    Ignore,
}

fn judge(line: &Line, has_begun: &mut bool) -> Verdict {
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong(start, end) => {
            let words = format!("a message has at most {} MiB", MAX_LINE >> 20);
            let error = ErrorData::invalid_request(words, None);
            return Verdict::Answer(error, id_within(start, end));
        }
    };
    if bytes.trim_ascii().is_empty() {
        return Verdict::Ignore;
    }
    match serde_json::from_slice(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)) {
        Ok(message) => judge_message(message, has_begun),
        Err(error) => {
            let words = format!("this is not JSON: {error}");
            Verdict::Answer(ErrorData::new(ErrorCode::PARSE_ERROR, words, None), None)
        }
    }
}

fn judge_message(message: Value, has_begun: &mut bool) -> Verdict {
    let id = message.get("id").and_then(as_id);
    let refuse = |error| Verdict::Answer(error, id.clone());
    let is_named = message.get("id").is_some();
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(ErrorData::invalid_request("this is no JSON-RPC 2.0 message", None));
    }
    let Some(method) = method else {
        return match is_answer && is_named {
            true => pass_or(message, *has_begun, Verdict::Ignore),
            false => refuse(ErrorData::invalid_request("a request has a method", None)),
        };
    };
    if !is_named {
        return pass_or(message, *has_begun, Verdict::Ignore);
    }
    if id.is_none() {
        return refuse(ErrorData::invalid_request("an id is a string or a whole number", None));
    }
    // The sessions of later protocols begin without a word; ours begin with `initialize`.
    if !has_method(&method) {
        let words = format!("there is no method {}", quoted(&method));
        return refuse(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None));
    }
    if !*has_begun && method != "initialize" && method != "ping" {
        return refuse(ErrorData::invalid_request("a session begins with `initialize`", None));
    }
    let words = format!("these are not the parameters of `{method}`");
    let verdict = pass_or(message, true, refuse(ErrorData::invalid_params(words, None)));
    *has_begun |= method == "initialize" && matches!(verdict, Verdict::Pass(_));
    verdict
}

fn pass_or(message: Value, is_time: bool, otherwise: Verdict) -> Verdict {
    match serde_json::from_value(message) {
        Ok(message) if is_time => Verdict::Pass(Box::new(message)),
        Ok(_) | Err(_) => otherwise,
    }
}

fn has_method(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "tools/list"
            | "tools/call"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "prompts/list"
            | "prompts/get"
    )
}

fn as_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(_) | Value::Number(_) => serde_json::from_value(value.clone()).ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The id of a message of which only the ends are known: clients write it first or last.
fn id_within(start: &[u8], end: &[u8]) -> Option<RequestId> {
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    let value = |rest: &str| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((as_id(&value)?, rest[values.byte_offset()..].trim_start().to_owned()))
    };
    let first = start.find("\"id\"").filter(|at| !start[..*at].contains("\"params\""));
    let first = first.and_then(|at| value(start[at + 4..].trim_start().strip_prefix(':')?));
    let last = end.rfind("\"id\"");
    let last = last.and_then(|at| value(end[at + 4..].trim_start().strip_prefix(':')?));
    let is_last = |(_, rest): &(RequestId, String)| rest.trim_end() == "}";
    first.or(last.filter(is_last)).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a fresh server makes of lines: the code of its answer, `pass` or `ignore`.
    fn judged(lines: &[&str]) -> Vec<String> {
        let mut has_begun = false;
        let verdict = |line: &&str| match judge(&Line::Whole((*line).into()), &mut has_begun) {
            Verdict::Pass(_) => "pass".to_owned(),
            Verdict::Answer(error, id) => format!("{} {id:?}", error.code.0),
            Verdict::Ignore => "ignore".to_owned(),
        };
        lines.iter().map(verdict).collect()
    }

    const BEGIN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

    #[test]
    fn what_is_no_message_is_answered_and_goes_no_further() {
        let said = judged(&[
            r#"{"jsonrpc":"2.0","id":"a","method":"server/discover"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            BEGIN,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            "{oops",
            "[]",
            "",
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":3}"#,
            r#"{"id":3,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        ]);
        insta::assert_snapshot!(said.join("\n"), @r#"
        -32601 Some(String("a"))
        -32600 Some(Number(2))
        ignore
        pass
        pass
        -32700 None
        -32600 None
        ignore
        -32600 None
        -32600 Some(Number(3))
        -32600 Some(Number(3))
        pass
        "#);
    }

    #[test]
    fn the_id_of_a_line_that_is_too_long_is_found_at_either_end() {
        let long = "x".repeat(MAX_LINE);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{long}"}}"#),
            format!(r#"{{"method":"{long}","jsonrpc":"2.0","id":7}}"#),
            format!(r#"{{"params":{{"id":8}},"method":"{long}","id":7}}"#),
        ] {
            let mut input = io::Cursor::new(format!("{line}\n{BEGIN}\n"));
            let first = next_line(&mut input).unwrap().unwrap();
            let Verdict::Answer(_, id) = judge(&first, &mut false) else { panic!("it was taken") };
            assert_eq!(id, Some(RequestId::Number(7)));
            let second = next_line(&mut input).unwrap().unwrap();
            assert!(matches!(judge(&second, &mut false), Verdict::Pass(_)));
        }
    }
}
