//! What a model was sent: one entry of the scripted model's log.

use serde_json::Value;

/// What prompts of the scenarios start with.
const PROMPTS: [&str; 5] = ["BUILD", "SLOWTOOL", "RECALL", "JOB", "GOON"];

pub struct Request(pub Value);

struct Message {
    role: String,
    text: String,
    calls: Vec<Value>,
    results: Vec<String>,
}

impl Request {
    /// Was this somewhere in what the model was sent?
    pub fn heard(&self, words: &str) -> bool {
        let system = self.0["system"].as_str().unwrap_or_default();
        system.contains(words) || self.messages().iter().any(|it| it.text.contains(words))
    }

    /// Could the model call this?
    pub fn offers(&self, tool: &str) -> bool {
        let mut tools = self.0["tools"].as_array().unwrap().iter().filter_map(Value::as_str);
        tools.any(|it| it.ends_with(tool))
    }

    /// What the tools answered, as the model was told.
    pub fn tool_results(&self) -> Vec<String> {
        self.messages().into_iter().flat_map(|it| it.results).collect()
    }

    fn messages(&self) -> Vec<Message> {
        let words = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
        let message = |it: &Value| Message {
            role: words(&it["role"]),
            text: words(&it["text"]),
            calls: list(&it["tool_calls"]),
            results: list(&it["tool_results"]).iter().map(|it| words(&it["text"])).collect(),
        };
        self.0["messages"].as_array().unwrap().iter().map(message).collect()
    }

    /// What the person and the model said, without what agents put around it.
    pub fn conversation(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.messages() {
            match message.role.as_str() {
                "assistant" => lines.push(message.line()),
                "user" => lines.extend(message.prompts()),
                _ => {}
            }
        }
        lines
    }

    /// The same, with every call and every answer of a tool in full.
    pub fn whole_conversation(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.messages() {
            match message.role.as_str() {
                "assistant" => lines.push(said(&message.text, &message.calls)),
                "user" => lines.extend(message.prompts()),
                _ => {}
            }
            lines.extend(message.results.iter().map(|it| format!("tool: {}", plain(it))));
        }
        lines
    }

    /// What the model was going to answer, in the same form.
    pub fn answer(&self) -> String {
        let reply = &self.0["reply"];
        let calls = reply["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        said(reply["text"].as_str().unwrap_or_default(), calls)
    }

    /// All words the model had to read, but for what its tools are.
    pub fn text(&self) -> String {
        let mut text = self.0["system"].as_str().unwrap_or_default().to_owned();
        for message in self.messages() {
            let calls = message.calls.iter().map(|it| it["input"].to_string());
            for words in [message.text.clone()].into_iter().chain(calls).chain(message.results) {
                text.push('\n');
                text.push_str(&words);
            }
        }
        text
    }
}

impl Message {
    /// Who, what, and whether a tool was used.
    fn line(&self) -> String {
        let tool = if self.calls.is_empty() { "" } else { " +tool" };
        format!("{}: {}{tool}", self.role, self.text)
    }

    /// One after the other: an agent may put two of them into one message.
    fn prompts(&self) -> Vec<String> {
        let lines = self.text.lines().map(|line| line.trim_matches('"'));
        let prompts = lines.filter(|line| PROMPTS.iter().any(|it| line.starts_with(it)));
        prompts.map(|prompt| format!("user: {prompt}")).collect()
    }
}

/// What the model said and did. Ids are the agent's own business, and not everyone keeps them.
fn said(text: &str, calls: &[Value]) -> String {
    let calls: String = calls
        .iter()
        .map(|it| format!(" +{} {}", it["name"].as_str().unwrap_or_default(), it["input"]))
        .collect();
    format!("assistant: {text}{calls}")
}

/// Without what agents remind their model of.
fn plain(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.filter_map(|it| it.split_once("</system-reminder>")).map(|(_, after)| after);
    [first].into_iter().chain(rest.map(str::to_owned)).collect::<String>().trim().to_owned()
}
