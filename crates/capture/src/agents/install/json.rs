//! Our entries in settings that are JSON. Only the member they are in is written anew; every other byte of the
//! file stays.

use std::fmt;

use bivouac_core::agent::AgentKind;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{BadSettings, Entry, Hook, SERVER, Server, starts_us};

/// The same settings with this in them once.
pub(super) fn add(text: &str, entry: &Entry) -> Result<String, BadSettings> {
    let settings = Settings::read(text)?;
    let mut table = settings.table(key(entry))?;
    let before = table.clone();
    match entry {
        Entry::Hooks { hooks, agent } => {
            if !are_there(&table, hooks, *agent) {
                take_out(&mut table, *agent);
                put_in(&mut table, hooks)?;
            }
        }
        Entry::Server(server) => {
            let entry = match table.get(SERVER) {
                Some(found) => brought_up_to_date(found, server)?,
                None => server.entry.clone(),
            };
            table.insert(SERVER.to_owned(), entry);
        }
    }
    match table == before {
        true => Ok(text.to_owned()),
        false => Ok(settings.with(key(entry), table)),
    }
}

/// The same settings without this.
pub(super) fn remove(text: &str, entry: &Entry) -> Result<String, BadSettings> {
    let settings = Settings::read(text)?;
    let mut table = settings.table(key(entry))?;
    let n_removed = match entry {
        Entry::Hooks { agent, .. } => take_out(&mut table, *agent),
        Entry::Server(_) if table.get(SERVER).is_some_and(is_our_server) => {
            usize::from(table.shift_remove(SERVER).is_some())
        }
        Entry::Server(_) => 0,
    };
    match (n_removed, table.is_empty()) {
        (0, _) => Ok(text.to_owned()),
        (_, true) => Ok(settings.without(key(entry))),
        (_, false) => Ok(settings.with(key(entry), table)),
    }
}

/// Is there any of this, as it should be or not?
pub(super) fn has(text: &str, entry: &Entry) -> Result<bool, BadSettings> {
    let table = Settings::read(text)?.table(key(entry))?;
    Ok(match entry {
        Entry::Hooks { agent, .. } => {
            table.values().any(|list| ours(list, *agent).next().is_some())
        }
        Entry::Server(_) => table.get(SERVER).is_some_and(is_our_server),
    })
}

/// An entry of ours that starts this program. What else the person put into it stays.
fn brought_up_to_date(found: &Value, server: &Server) -> Result<Value, BadSettings> {
    if !is_our_server(found) {
        return Err(BadSettings::Taken(SERVER));
    }
    let mut entry = found.clone();
    entry["command"] = server.entry["command"].clone();
    Ok(entry)
}

fn is_our_server(entry: &Value) -> bool {
    let args = entry["args"].as_array().map(Vec::as_slice).unwrap_or_default();
    starts_us(entry["command"].as_str(), args.iter().filter_map(Value::as_str))
}

fn key(entry: &Entry) -> &'static str {
    match entry {
        Entry::Hooks { .. } => "hooks",
        Entry::Server(Server { table, .. }) => table,
    }
}

/// Are these hooks there, each once, and no others of ours?
fn are_there(table: &Map<String, Value>, hooks: &[Hook], agent: AgentKind) -> bool {
    let n_ours: usize = table.values().map(|list| ours(list, agent).count()).sum();
    let is_there = |hook: &Hook| {
        let wanted = as_json(hook);
        let is_it = |(group, it): (&Value, &Value)| {
            group["matcher"] == wanted["matcher"] && *it == wanted["hooks"][0]
        };
        table.get(hook.event).is_some_and(|list| ours(list, agent).any(is_it))
    };
    n_ours == hooks.len() && hooks.iter().all(is_there)
}

fn put_in(table: &mut Map<String, Value>, hooks: &[Hook]) -> Result<(), BadSettings> {
    for hook in hooks {
        let list = table.entry(hook.event).or_insert_with(|| json!([]));
        list.as_array_mut().ok_or(BadSettings::Shape("hooks"))?.push(as_json(hook));
    }
    Ok(())
}

fn as_json(hook: &Hook) -> Value {
    json!({
        "matcher": hook.matcher,
        "hooks": [{ "type": "command", "command": hook.command, "timeout": hook.timeout }],
    })
}

/// Takes our hooks out, and lists that are empty without them. Says how many there were.
fn take_out(table: &mut Map<String, Value>, agent: AgentKind) -> usize {
    let mut n_removed = 0;
    table.retain(|_, list| {
        let Some(list) = list.as_array_mut() else {
            return true;
        };
        let n_before = list.len();
        // What others put beside ours stays.
        list.retain_mut(|group| {
            let Some(hooks) = group.get_mut("hooks").and_then(Value::as_array_mut) else {
                return true;
            };
            let n_hooks = hooks.len();
            hooks.retain(|hook| !is_ours(hook, agent));
            n_removed += n_hooks - hooks.len();
            !hooks.is_empty() || n_hooks == 0
        });
        !list.is_empty() || n_before == 0
    });
    n_removed
}

/// Our hooks in a list of groups, each with its group.
fn ours(list: &Value, agent: AgentKind) -> impl Iterator<Item = (&Value, &Value)> {
    let groups = list.as_array().into_iter().flatten();
    let hooks = groups.flat_map(|group| {
        let hooks = group.get("hooks").and_then(Value::as_array);
        hooks.into_iter().flatten().map(move |hook| (group, hook))
    });
    hooks.filter(move |(_, hook)| is_ours(hook, agent))
}

/// Does a hook call us for this agent?
pub(in crate::agents) fn is_ours(hook: &Value, agent: AgentKind) -> bool {
    let command = hook.get("command").and_then(Value::as_str).unwrap_or_default();
    command.contains("biv") && command.contains(&format!(" hook {agent} "))
}

/// Some agents read comments in JSON; we could not keep them.
fn has_comments(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("//") || line.starts_with("/*"))
}

/// A file whose members are known by where they are in it.
struct Settings<'t> {
    text: &'t str,
    members: Members<'t>,
}

/// The names, with their quotes, and the values.
type Members<'t> = Vec<(&'t RawValue, &'t RawValue)>;

impl<'t> Settings<'t> {
    fn read(text: &'t str) -> Result<Self, BadSettings> {
        if text.trim().is_empty() {
            return Ok(Self { text, members: Vec::new() });
        }
        let bad = |error: serde_json::Error| match has_comments(text) {
            true => BadSettings::Comments,
            false => BadSettings::NotJson(error.to_string()),
        };
        if !text.trim_start().starts_with('{') {
            serde_json::from_str::<&RawValue>(text).map_err(bad)?;
            return Err(BadSettings::NotJson("it is not an object".to_owned()));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let members = reader.deserialize_map(Reading).map_err(bad)?;
        reader.end().map_err(bad)?;
        Ok(Self { text, members })
    }

    /// The last one of a name is the one that counts.
    fn place(&self, key: &str) -> Option<usize> {
        let is_it =
            |name: &RawValue| serde_json::from_str::<String>(name.get()).is_ok_and(|it| it == key);
        self.members.iter().rposition(|(name, _)| is_it(name))
    }

    fn table(&self, key: &'static str) -> Result<Map<String, Value>, BadSettings> {
        match self.place(key) {
            None => Ok(Map::new()),
            Some(place) => serde_json::from_str(self.members[place].1.get())
                .map_err(|_| BadSettings::Shape(key)),
        }
    }

    fn with(&self, key: &str, table: Map<String, Value>) -> String {
        let value = self.printed(&Value::Object(table));
        let (text, colon) = (self.text, if self.is_on_one_line() { ":" } else { ": " });
        if let Some(place) = self.place(key) {
            let (start, end) = self.span(self.members[place].1);
            return [&text[..start], &value, &text[end..]].concat();
        }
        let member = format!("{}{colon}{value}", json!(key));
        match self.members.last() {
            Some((_, last)) => {
                let end = self.span(last).1;
                let gap = if self.is_on_one_line() {
                    ",".to_owned()
                } else {
                    format!(",\n{}", self.indent())
                };
                [&text[..end], &gap, &member, &text[end..]].concat()
            }
            None => format!("{{\n{}{member}\n}}{}", self.indent(), self.end()),
        }
    }

    fn without(&self, key: &str) -> String {
        let Some(place) = self.place(key) else {
            return self.text.to_owned();
        };
        let (start, end) = match place {
            0 if self.members.len() == 1 => return format!("{{}}{}", self.end()),
            0 => (self.span(self.members[0].0).0, self.span(self.members[1].0).0),
            _ => (self.span(self.members[place - 1].1).1, self.span(self.members[place].1).1),
        };
        [&self.text[..start], &self.text[end..]].concat()
    }

    /// Where a piece of the text is in it.
    fn span(&self, piece: &RawValue) -> (usize, usize) {
        let start = piece.get().as_ptr().addr() - self.text.as_ptr().addr();
        (start, start + piece.get().len())
    }

    fn is_on_one_line(&self) -> bool {
        !self.members.is_empty() && !self.text.trim_end().contains('\n')
    }

    fn indent(&self) -> &'t str {
        let width = |line: &str| line.len() - line.trim_start().len();
        let mut lines = self.text.lines().filter(|line| width(line) > 0 && !line.trim().is_empty());
        lines.next().map_or("  ", |line| &line[..width(line)])
    }

    /// The line end that the file has at its end.
    fn end(&self) -> &'static str {
        if self.text.is_empty() || self.text.ends_with('\n') { "\n" } else { "" }
    }

    /// A member's value, the way the file is printed.
    fn printed(&self, value: &Value) -> String {
        if self.is_on_one_line() {
            return value.to_string();
        }
        let indent = self.indent();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        serde::Serialize::serialize(value, &mut serializer).expect("a vector takes everything");
        String::from_utf8(bytes).expect("JSON is UTF-8").replace('\n', &format!("\n{indent}"))
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(events: &[&'static str]) -> Entry {
        let hook = |event: &&'static str| Hook {
            event,
            matcher: "",
            command: format!("'/usr/bin/biv' hook claude-code {event} || true"),
            timeout: 30,
        };
        Entry::Hooks { agent: AgentKind::ClaudeCode, hooks: events.iter().map(hook).collect() }
    }

    fn server() -> Entry {
        let entry = json!({ "command": "/usr/bin/biv", "args": ["mcp"] });
        Entry::Server(Server { table: "mcpServers", entry })
    }

    const OTHERS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"say done\"\n                    }\n                ]\n            }\n        ]\n    },\n    \"zoom\": 1.50,  \"cost\": 0.30000000000000004\n}\n";

    #[test]
    fn entries_of_others_stay_and_ours_come_and_go() {
        for theirs in
            [OTHERS, "{}\n", "{\"a\":1.50}", "{\n\t\"mcpServers\": {\n\t\t\"x\": 1\n\t}\n}"]
        {
            for entry in [hooks(&["Stop", "SessionStart"]), server()] {
                let with = add(theirs, &entry).unwrap();
                assert!(has(&with, &entry).unwrap() && !has(theirs, &entry).unwrap());
                assert_eq!(add(&with, &entry).unwrap(), with);
                assert_eq!(remove(&with, &entry).unwrap(), theirs);
                assert_eq!(remove(theirs, &entry).unwrap(), theirs);
            }
        }
        let with = add(OTHERS, &hooks(&["Stop", "SessionStart"])).unwrap();
        assert!(
            with.contains("say done")
                && with.contains("\"zoom\": 1.50,  \"cost\": 0.30000000000000004")
        );
        let both = add(&with, &server()).unwrap();
        assert_eq!(remove(&both, &server()).unwrap(), with);
        assert_eq!(
            add("{\"a\":1}", &server()).unwrap(),
            r#"{"a":1,"mcpServers":{"bivouac":{"command":"/usr/bin/biv","args":["mcp"]}}}"#
        );
    }

    #[test]
    fn what_others_wrote_after_ours_does_not_move_them() {
        let with = add(OTHERS, &hooks(&["Stop"])).unwrap();
        let mut value: Value = serde_json::from_str(&with).unwrap();
        value["hooks"]["Stop"].as_array_mut().unwrap().push(json!({ "hooks": [] }));
        let later = value.to_string();
        assert_eq!(add(&later, &hooks(&["Stop"])).unwrap(), later);
        let other = add(&later, &hooks(&["SessionEnd"])).unwrap();
        assert!(!other.contains("claude-code Stop") && other.contains("claude-code SessionEnd"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let refused = |text: &str| add(text, &hooks(&["Stop"])).unwrap_err().to_string();
        assert!(refused("{broken").starts_with("it is not valid JSON: "));
        assert!(refused("{} {}").starts_with("it is not valid JSON: "));
        assert!(refused("{ // a comment\n}").starts_with("it is not valid JSON: "));
        assert_eq!(refused("[]"), "it is not valid JSON: it is not an object");
        for text in [r#"{"hooks": []}"#, r#"{"hooks": {"Stop": 1}}"#] {
            assert_eq!(refused(text), "`hooks` in it is not what the agent expects there");
        }
        assert_eq!(add(r#"{"mcpServers": 1}"#, &server()), Err(BadSettings::Shape("mcpServers")));
    }

    #[test]
    fn an_empty_file_becomes_settings() {
        let with = add("", &server()).unwrap();
        assert_eq!(
            with,
            "{\n  \"mcpServers\": {\n    \"bivouac\": {\n      \"command\": \"/usr/bin/biv\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"
        );
        assert_eq!(remove(&with, &server()).unwrap(), "{}\n");
    }
}
