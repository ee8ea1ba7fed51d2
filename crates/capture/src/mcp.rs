//! A server behind MCP over stdio (JSON-RPC, a message to a line), as its client sees it. It is started for a
//! question and ends with it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::Program;
use crate::talk::Talk;
use crate::{Error, Result};

const PROTOCOL: &str = "2025-06-18";
/// What JSON-RPC answers to a method nobody knows.
const NO_SUCH_METHOD: i32 = -32601;

/// A server that listens.
pub struct Server {
    talk: Talk,
    n_asked: u64,
}

impl Server {
    /// Starts the server and greets it. All there is to say has to be said within this time.
    pub fn open(program: Program, within: Duration) -> Result<Self> {
        let mut server = Self { talk: program.within(within).talk()?, n_asked: 0 };
        server.ask(
            "initialize",
            &json!({
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": { "name": "bivouac", "version": env!("CARGO_PKG_VERSION") },
            }),
        )?;
        server.say(&json!({ "method": "notifications/initialized" }));
        Ok(server)
    }

    /// What its tools are called.
    pub fn tools(&mut self) -> Result<Vec<String>> {
        let list = self.ask("tools/list", &json!({}))?;
        let tools = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(tools.iter().filter_map(|it| it["name"].as_str()).map(str::to_owned).collect())
    }

    /// Uses one of the server's tools.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        match result["isError"] == true {
            true => {
                let told = texts(&result).next().unwrap_or_default();
                let what = if told.is_empty() { "it gave no reason" } else { told };
                Err(self.failed(&format!("{tool}: {what}")))
            }
            false => Ok(result),
        }
    }

    /// What it calls itself.
    pub(crate) fn name(&self) -> &str {
        self.talk.name()
    }

    /// Asks, and waits for the answer to this very question. Whatever else comes is not for us.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.n_asked += 1;
        let id = self.n_asked;
        self.say(&json!({ "id": id, "method": method, "params": params }));
        loop {
            let line = self.talk.hear()?;
            let Ok(mut message) = serde_json::from_slice::<Value>(&line) else {
                continue;
            };
            if message.get("method").is_some() {
                self.answer(&message);
            } else if message["id"] == id {
                if let Some(error) = message.get("error") {
                    return Err(self.failed(error["message"].as_str().unwrap_or(method)));
                }
                return Ok(message["result"].take());
            }
        }
    }

    /// Servers may ask as well, and some wait for the answer. We can do nothing but be there.
    fn answer(&self, question: &Value) {
        let Some(id) = question.get("id") else {
            return;
        };
        match question["method"] == "ping" {
            true => self.say(&json!({ "id": id, "result": {} })),
            false => {
                let error = json!({ "code": NO_SUCH_METHOD, "message": "not known here" });
                self.say(&json!({ "id": id, "error": error }));
            }
        }
    }

    fn say(&self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        self.talk.say(&message.to_string());
    }

    fn failed(&self, message: &str) -> Error {
        let message = message.lines().next().unwrap_or_default().chars().take(300).collect();
        Error::Failed { program: self.talk.name().to_owned(), message }
    }
}

pub(crate) fn texts(result: &Value) -> impl Iterator<Item = &str> {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str())
}
