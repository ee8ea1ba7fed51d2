//! opencode's conversations: rows of its database. A checkpoint holds them in the form in which the
//! program itself exports and imports them.

use std::io::Write;
use std::path::{Path, PathBuf};

use bivouac_core::conversation::Tokens;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};

use super::launch;
use crate::agents::reading::{Conversation, OpenCall, Part, Reading, Source, open};
use crate::agents::restore::{Kept, Launch, Order, Rewrite, create, finish};
use crate::agents::{Input, parse};
use crate::{Error, Result};

/// The conversation, and those of its sub-agents.
pub(super) fn parts(conversation: &Conversation) -> Result<Vec<Part>> {
    let path = database(&conversation.home);
    open(&path)?; // of this user, and no link
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(1))?;
    let mut parts = Vec::new();
    let part = |name: String, id: &str| -> Result<Option<Part>> {
        let document = export(&connection, id)?;
        Ok(document.map(|it| Part { name, source: Source::Bytes(it.to_string().into_bytes()) }))
    };
    parts.extend(part("main.json".to_owned(), conversation.id.as_str())?);
    let mut children =
        connection.prepare("SELECT id FROM session WHERE parent_id = ? ORDER BY id")?;
    let mut rows = children.query([conversation.id.as_str()])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let name: String =
            id.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').collect();
        parts.extend(part(format!("subagents/{name}.json"), &id)?);
    }
    Ok(parts)
}

pub(super) fn database(home: &Path) -> PathBuf {
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    base.unwrap_or_else(|| home.join(".local/share")).join("opencode/opencode.db")
}

fn export(connection: &Connection, session: &str) -> Result<Option<Value>> {
    let sql = "SELECT id, slug, project_id, directory, path, title, version, parent_id, agent, model, permission,
                      time_created, time_updated FROM session WHERE id = ?";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([session])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let info = info(row)?;
    let mut messages = Vec::new();
    let sql = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let parts = parts_of(connection, session, &id)?;
        let data: String = row.get(1)?;
        let info = with_ids(&data, &[("id", &id), ("sessionID", session)]);
        messages.push(json!({ "info": info, "parts": parts }));
    }
    Ok(Some(json!({ "info": info, "messages": messages })))
}

fn info(row: &Row<'_>) -> Result<Value> {
    let text = |column| row.get::<_, Option<String>>(column);
    let parsed = |text: Option<String>| text.and_then(|text| parse(text.as_bytes()).ok());
    let all = json!({
        "id": text(0)?, "slug": text(1)?, "projectID": text(2)?, "directory": text(3)?, "path": text(4)?,
        "title": text(5)?, "version": text(6)?, "parentID": text(7)?, "agent": text(8)?,
        "model": parsed(text(9)?), "permission": parsed(text(10)?),
        "time": { "created": row.get::<_, i64>(11)?, "updated": row.get::<_, i64>(12)? },
    });
    let fields = all.as_object().cloned().unwrap_or_default();
    Ok(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into())
}

fn parts_of(connection: &Connection, session: &str, message: &str) -> Result<Vec<Value>> {
    let sql = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([message])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let ids = [("id", id.as_str()), ("sessionID", session), ("messageID", message)];
        let data: String = row.get(1)?;
        parts.push(with_ids(&data, &ids));
    }
    Ok(parts)
}

fn with_ids(data: &str, ids: &[(&str, &str)]) -> Value {
    let mut value: Value = parse(data.as_bytes()).unwrap_or_else(|_| json!({}));
    if let Some(fields) = value.as_object_mut() {
        fields.extend(ids.iter().map(|(key, id)| ((*key).to_owned(), Value::from(*id))));
    }
    value
}

/// The whole document is one record.
pub(super) fn read(document: Input<'_>, reading: &mut Reading) {
    reading.version = document.at("info").text("version");
    for message in document.list("messages") {
        let info = message.at("info");
        match info.str("role") {
            Some("user") => reading.usage.n_turns += 1,
            Some("assistant") => {
                let tokens = info.at("tokens");
                let number = |key| tokens.number(key).unwrap_or(0);
                let cache = |key| tokens.at("cache").number(key).unwrap_or(0);
                let model = info.str("modelID").unwrap_or("unknown").to_owned();
                let counted = Tokens {
                    input: number("input"),
                    output: number("output").saturating_add(number("reasoning")),
                    cache_read: cache("read"),
                    cache_write: cache("write"),
                };
                reading.count(&model, counted);
                reading.model = Some(model);
                message.list("parts").for_each(|part| read_part(part, reading));
            }
            _ => {}
        }
    }
}

fn read_part(part: Input<'_>, reading: &mut Reading) {
    match part.str("type") {
        Some("text") => reading.last_message = part.text("text"),
        Some("tool") => {
            let state = part.at("state");
            if matches!(state.str("status"), Some("pending" | "running")) {
                reading.open(OpenCall {
                    id: part.text("callID").unwrap_or_default(),
                    tool: part.text("tool").unwrap_or_default(),
                    command: state.at("input").text("command"),
                });
            }
        }
        _ => {}
    }
}

/// A document with new ids throughout, which the program imports. Old message ids under a new session
/// would make an empty conversation.
pub(super) fn restore(kept: &Kept, order: &Order) -> Result<Launch> {
    let main = kept.main();
    let text = std::fs::read_to_string(&main).map_err(Error::io(&main))?;
    let text = Rewrite::new(kept, order).apply(&text);
    let mut document: Value = parse(text.as_bytes())
        .map_err(|_| Error::Unexpected { program: "opencode".to_owned(), what: "its export" })?;
    rename_ids(&mut document, &order.new_id);
    let id = Input::new(&document).at("info").text("id").ok_or(Error::NotText)?;
    let path = order.scratch.join("session.json");
    let mut writer = create(&path)?;
    write!(writer, "{document}").map_err(Error::io(&path))?;
    finish(writer, &path)?;
    let path = path.to_str().ok_or(Error::NotText)?;
    let import = ["opencode", "import", path].map(str::to_owned).to_vec();
    Ok(Launch { before: vec![import], ..launch(&["-s".to_owned(), id], &order.extra) })
}

/// Every `ses_`, `msg_` and `prt_` id keeps its beginning, which carries the order, and gets another end.
fn rename_ids(value: &mut Value, seed: &str) {
    const ORDER_LEN: usize = 16;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_ids(item, seed)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_id = matches!(key.as_str(), "id" | "sessionID" | "messageID" | "parentID");
                let old = value.as_str().filter(|_| is_id).map(str::to_owned);
                match old {
                    Some(old)
                        if ["ses_", "msg_", "prt_"].iter().any(|it| old.starts_with(it))
                            && old.is_char_boundary(ORDER_LEN)
                            && old.len() > ORDER_LEN =>
                    {
                        *value = format!("{}{}", &old[..ORDER_LEN], tail(seed, &old)).into();
                    }
                    _ => rename_ids(value, seed),
                }
            }
        }
        _ => {}
    }
}

/// Fourteen letters and digits that follow from both.
fn tail(seed: &str, old: &str) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hasher = blake3::Hasher::new();
    hasher.update(seed.as_bytes()).update(b"/").update(old.as_bytes());
    let hash = hasher.finalize();
    hash.as_bytes()[..14].iter().map(|byte| char::from(LETTERS[usize::from(byte % 62)])).collect()
}
