//! What a model was sent: one entry of the scripted model's log.

use serde_json::Value;

pub(crate) struct Request(pub(crate) Value);

pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) text: String,
    pub(crate) n_tools: usize,
}

impl Request {
    /// Was this somewhere in what the model was sent?
    pub(crate) fn heard(&self, words: &str) -> bool {
        let system = self.0["system"].as_str().unwrap_or_default();
        system.contains(words) || self.messages().iter().any(|it| it.text.contains(words))
    }

    /// Could the model call this?
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let mut tools = self.0["tools"].as_array().unwrap().iter().filter_map(Value::as_str);
        tools.any(|it| it.ends_with(tool))
    }

    /// What the tools answered, as the model was told.
    pub(crate) fn tool_results(&self) -> Vec<String> {
        let messages = self.0["messages"].as_array().unwrap().iter();
        let results = messages.flat_map(|it| it["tool_results"].as_array().into_iter().flatten());
        results.map(|it| it["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn messages(&self) -> Vec<Message> {
        let message = |it: &Value| Message {
            role: it["role"].as_str().unwrap().to_owned(),
            text: it["text"].as_str().unwrap_or_default().to_owned(),
            n_tools: it["tool_calls"].as_array().map_or(0, Vec::len),
        };
        self.0["messages"].as_array().unwrap().iter().map(message).collect()
    }

    /// What the person and the model said, without what agents put around it.
    pub(crate) fn conversation(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.messages() {
            match message.role.as_str() {
                "assistant" => lines.push(message.line()),
                "user" => {
                    let prompt =
                        message.text.lines().map(|line| line.trim_matches('"')).find(|line| {
                            ["BUILD", "SLOWTOOL", "RECALL"].iter().any(|it| line.starts_with(it))
                        });
                    lines.extend(prompt.map(|prompt| format!("user: {prompt}")));
                }
                _ => {}
            }
        }
        lines
    }
}

impl Message {
    /// Who, what, and whether a tool was used.
    fn line(&self) -> String {
        let tool = if self.n_tools > 0 { " +tool" } else { "" };
        format!("{}: {}{tool}", self.role, self.text)
    }
}
