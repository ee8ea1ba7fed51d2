//! A client of `biv mcp`, word for word: it sends lines and reads lines.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::TestEnv;

pub struct McpClient {
    server: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    n_asked: u64,
    /// What the server said without being asked.
    pub notices: Vec<Value>,
    /// What is answered when the server asks, by method.
    answers: Vec<(&'static str, Value)>,
}

impl TestEnv {
    /// Starts the server in the workspace, by the clock on the wall; nothing was said yet.
    pub fn mcp(&self) -> McpClient {
        let mut command = self.biv_command(&self.work(), &["mcp"]);
        command.env_remove("BIV_CLOCK");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let stdin = server.stdin.take();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        McpClient { server, stdin, stdout, n_asked: 0, notices: Vec::new(), answers: Vec::new() }
    }

    /// The same, ready for calls, from a client that can do this much.
    pub fn mcp_with(&self, capabilities: &Value) -> McpClient {
        let mut client = self.mcp();
        client.begin(capabilities);
        client
    }
}

impl McpClient {
    pub fn begin(&mut self, capabilities: &Value) -> Value {
        let client = json!({ "name": "testkit", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client });
        let begun = self.ask("initialize", &params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        begun
    }

    /// From here on, the server gets this answer when it asks.
    pub fn answer(&mut self, method: &'static str, result: Value) {
        self.answers.retain(|(known, _)| *known != method);
        self.answers.push((method, result));
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).unwrap();
        stdin.flush().unwrap();
    }

    /// The next message. `None` when the server is gone. What is no message fails the test.
    pub fn next_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        match line.is_empty() {
            true => None,
            false => Some(
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("not the protocol: {line}")),
            ),
        }
    }

    /// Sends a request and does not wait; its id.
    pub fn begin_asking(&mut self, method: &str, params: &Value) -> u64 {
        self.n_asked += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.n_asked, "method": method, "params": params }),
        );
        self.n_asked
    }

    /// Sends a request if the server takes it in within a moment.
    pub fn try_asking(&mut self, method: &str) -> bool {
        self.n_asked += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.n_asked, "method": method }).to_string();
        let stdin = self.stdin.as_mut().unwrap();
        let mut waiting = [PollFd::new(&*stdin, PollFlags::OUT)];
        let moment = Timespec { tv_sec: 1, tv_nsec: 0 };
        let is_ready = poll(&mut waiting, Some(&moment)).unwrap() == 1;
        is_ready && writeln!(stdin, "{line}").is_ok()
    }

    /// The answer to a request: its result, or its error.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin_asking(method, params);
        self.await_answer(id)
    }

    pub fn await_answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next_message().expect("the server is gone");
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(method), Some(asked)) => {
                    let known = self.answers.iter().find(|(known, _)| *known == method);
                    let (_, result) = known.unwrap_or_else(|| panic!("asked for {method}"));
                    let answer = json!({ "jsonrpc": "2.0", "id": asked, "result": result });
                    self.notices.push(message.clone());
                    self.send(&answer);
                }
                (Some(_), None) => self.notices.push(message),
                (None, found) if found == Some(&json!(id)) => {
                    let result = message.get("result").or_else(|| message.get("error"));
                    return result.unwrap().clone();
                }
                (None, _) => {}
            }
        }
    }

    /// What a tool says: its document, or else its text.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let blocks = answer["content"].as_array().unwrap_or_else(|| panic!("{tool}: {answer}"));
        let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        let document = texts.iter().find_map(|text| serde_json::from_str(text).ok());
        document.unwrap_or_else(|| json!(texts[0]))
    }

    /// Hangs up, and waits for the server's end: its exit code and what it said on stderr.
    pub fn leave(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        while self.stdout.read_line(&mut rest).unwrap() > 0 {}
        let mut said = String::new();
        self.server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.server.wait().unwrap().code(), said)
    }

    /// Hangs up without having read a word, and waits for the server's end.
    pub fn leave_unread(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.server.wait().unwrap().code()
    }

    /// The most memory it had, in kilobytes.
    pub fn peak_kilobytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _it_left = self.server.kill();
        let _it_left = self.server.wait();
    }
}
