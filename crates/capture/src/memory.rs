//! A memory server: a knowledge graph behind MCP.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::mcp::{Server, texts};
use crate::process::Program;
use crate::{Error, Result};

/// All there is to say has to be said within this time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Something the server remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    pub name: String,
    #[serde(rename = "entityType", default)]
    pub kind: String,
    #[serde(default)]
    pub observations: Vec<String>,
}

/// One that listens.
pub struct Memory(Server);

impl Memory {
    /// Starts the server and greets it. `None` when there is no command.
    pub fn open(command: &[String], folder: &Path) -> Result<Option<Self>> {
        Self::open_within(command, folder, PATIENCE)
    }

    fn open_within(command: &[String], folder: &Path, within: Duration) -> Result<Option<Self>> {
        let Some((program, args)) = command.split_first() else {
            return Ok(None);
        };
        let program = Program::new(program).args(args).in_folder(folder);
        Server::open(program, within).map(Self).map(Some)
    }

    /// What is remembered about some words.
    pub fn search(&mut self, words: &str) -> Result<Vec<Entity>> {
        let found = self.0.call("search_nodes", &json!({ "query": words }))?;
        let what = "no list of entities";
        entities_in(&found)
            .ok_or_else(|| Error::Unexpected { program: self.0.name().to_owned(), what })
    }

    /// Has it remember an entity; one it knows learns what is new.
    pub fn remember(&mut self, entity: &Entity) -> Result<()> {
        let is_known = self.search(&entity.name)?.iter().any(|it| it.name == entity.name);
        match is_known {
            true => {
                let more = json!({ "entityName": entity.name, "contents": entity.observations });
                self.0.call("add_observations", &json!({ "observations": [more] }))?;
            }
            false => {
                self.0.call("create_entities", &json!({ "entities": [entity] }))?;
            }
        }
        Ok(())
    }
}

/// Entities stand in the answer as they are, or in older servers as JSON in a text.
fn entities_in(result: &Value) -> Option<Vec<Entity>> {
    let read = |graph: &Value| -> Option<Vec<Entity>> {
        let list = graph.get("entities").unwrap_or(graph).as_array()?;
        Some(list.iter().filter_map(|it| Entity::deserialize(it).ok()).collect())
    };
    result
        .get("structuredContent")
        .and_then(read)
        .or_else(|| texts(result).find_map(|text| read(&serde_json::from_str::<Value>(text).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of a few lines of shell: it answers every question by its number.
    fn server(script: &str) -> Vec<String> {
        let ask = "read question || exit; id=$(echo \"$question\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')";
        let script = script.replace("ASK", ask);
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    }

    fn search(script: &str) -> Result<Vec<Entity>> {
        let within = Duration::from_secs(5);
        let opened = Memory::open_within(&server(script), Path::new("/"), within)?;
        opened.unwrap().search("checkpoint:")
    }

    const GREETING: &str = "ASK; echo '{\"id\":1,\"result\":{}}'; read initialized; ASK;";

    #[test]
    fn without_a_command_nothing_is_started() {
        assert!(Memory::open(&[], Path::new("/")).unwrap().is_none());
    }

    #[test]
    fn noise_and_questions_of_the_server_do_not_confuse() {
        let found = search(
            "echo starting up; echo '{\"method\":\"notifications/message\",\"params\":{}}'
            ASK; echo '{\"id\":99,\"result\":{}}'; echo '{\"id\":\"s1\",\"method\":\"roots/list\"}'
            read refused; case \"$refused\" in *-32601*) ;; *) exit;; esac
            echo '{\"id\":1,\"result\":{}}'; read initialized; ASK
            echo '{\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"entities\\\":[{\\\"name\\\":\\\"a\\\",\\\"observations\\\":[\\\"b\\\"]},7]}\"}]}}'",
        );
        let entity =
            Entity { name: "a".to_owned(), kind: String::new(), observations: vec!["b".into()] };
        assert_eq!(found.unwrap(), [entity]);
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let check = |script: &str, expected: &str| {
            let script = script.replace("GREETING", GREETING);
            assert_eq!(search(&script).unwrap_err().to_string(), expected);
        };
        check("exit 1", "`sh` failed: it ended without an answer");
        check(
            "ASK; echo '{\"id\":1,\"error\":{\"code\":1,\"message\":\"go away\"}}'; sleep 60",
            "`sh` failed: go away",
        );
        check(
            "GREETING echo '{\"id\":2,\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"disk full\"}]}}'",
            "`sh` failed: search_nodes: disk full",
        );
        check(
            "GREETING echo '{\"id\":2,\"result\":{\"content\":[]}}'",
            "`sh` answered something unexpected: no list of entities",
        );
    }
}
