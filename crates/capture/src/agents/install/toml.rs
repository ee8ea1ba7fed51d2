//! Our server in settings that are TOML. Comments and order of others stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use super::{BadSettings, SERVER, Server, starts_us};

pub(super) fn add(text: &str, server: &Server) -> Result<String, BadSettings> {
    let mut settings = parse(text)?;
    let wanted = table(server);
    let servers = settings.entry(server.table).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers = servers.as_table_like_mut().ok_or(BadSettings::Shape(server.table))?;
    match servers.get_mut(SERVER) {
        None => {
            servers.insert(SERVER, Item::Table(wanted));
        }
        Some(found) if !is_ours(found) => return Err(BadSettings::Taken(SERVER)),
        // What else the person put into it stays.
        Some(found) if found["command"].as_str() == wanted["command"].as_str() => {
            return Ok(text.to_owned());
        }
        Some(found) => found["command"] = wanted["command"].clone(),
    }
    Ok(with_line_ends(&settings.to_string(), text))
}

pub(super) fn remove(text: &str, server: &Server) -> Result<String, BadSettings> {
    let mut settings = parse(text)?;
    let Some(servers) = servers(&mut settings, server)? else {
        return Ok(text.to_owned());
    };
    if !servers.get(SERVER).is_some_and(is_ours) {
        return Ok(text.to_owned());
    }
    servers.remove(SERVER);
    if servers.is_empty() {
        settings.remove(server.table);
    }
    Ok(with_line_ends(&settings.to_string(), text))
}

fn is_ours(entry: &Item) -> bool {
    let word = |name: &str| entry.get(name);
    let args = word("args").and_then(Item::as_array);
    let args = args.into_iter().flatten().filter_map(toml_edit::Value::as_str);
    starts_us(word("command").and_then(Item::as_str), args)
}

/// Lines end as they ended in the file.
fn with_line_ends(text: &str, like: &str) -> String {
    let plain = text.replace("\r\n", "\n");
    if like.contains("\r\n") { plain.replace('\n', "\r\n") } else { plain }
}

pub(super) fn has(text: &str, server: &Server) -> Result<bool, BadSettings> {
    let mut settings = parse(text)?;
    let servers = servers(&mut settings, server)?;
    Ok(servers.is_some_and(|servers| servers.get(SERVER).is_some_and(is_ours)))
}

fn parse(text: &str) -> Result<DocumentMut, BadSettings> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        BadSettings::NotToml(error.message().replace('\n', ", "))
    })
}

fn servers<'s>(
    settings: &'s mut DocumentMut,
    server: &Server,
) -> Result<Option<&'s mut dyn TableLike>, BadSettings> {
    match settings.get_mut(server.table) {
        None => Ok(None),
        Some(servers) => match servers.as_table_like_mut() {
            Some(servers) => Ok(Some(servers)),
            None => Err(BadSettings::Shape(server.table)),
        },
    }
}

/// Texts and lists of texts are all that an entry of ours is made of.
fn table(server: &Server) -> Table {
    let mut table = Table::new();
    for (key, value) in server.entry.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(words) => Array::from_iter(words.iter().filter_map(Value::as_str)).into(),
            other => toml_edit::Value::from(other.as_str().unwrap_or_default()),
        };
        table.insert(key, Item::Value(value));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours() -> Server {
        let entry =
            json!({ "command": "/opt/my biv/biv", "args": ["mcp"], "env_vars": ["BIV_STORE"] });
        Server { table: "mcp_servers", entry }
    }

    const OTHERS: &str = "# mine\nmodel = \"gpt-5\"   # the good one\n\n[mcp_servers.other]   # theirs\ncommand = 'other'\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n";

    #[test]
    fn entries_and_comments_of_others_stay_and_ours_comes_and_goes() {
        for theirs in [OTHERS, "", "model = \"x\"", "mcp_servers = { other = { command = 'o' } }\n"]
        {
            let with = add(theirs, &ours()).unwrap();
            assert!(has(&with, &ours()).unwrap() && !has(theirs, &ours()).unwrap(), "{with}");
            assert_eq!(add(&with, &ours()).unwrap(), with);
            assert_eq!(remove(&with, &ours()).unwrap().trim_end(), theirs.trim_end());
            assert_eq!(remove(theirs, &ours()).unwrap(), theirs);
        }
        let with = add(OTHERS, &ours()).unwrap();
        assert!(with.contains("[mcp_servers.bivouac]\ncommand = \"/opt/my biv/biv\"\nargs = [\"mcp\"]\nenv_vars = [\"BIV_STORE\"]\n"), "{with}");
    }

    #[test]
    fn an_old_entry_becomes_the_new_one() {
        let old = "[mcp_servers.bivouac]\ncommand = \"/old/biv\"\nargs = [\"mcp\"]\n# after\n";
        let with = add(old, &ours()).unwrap();
        assert!(with.contains("/opt/my biv/biv") && !with.contains("/old/biv"), "{with}");
        assert!(with.contains("# after"), "{with}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        assert!(matches!(add("model = ", &ours()), Err(BadSettings::NotToml(_))));
        assert_eq!(add("mcp_servers = 1", &ours()), Err(BadSettings::Shape("mcp_servers")));
        assert_eq!(has("mcp_servers = 1", &ours()), Err(BadSettings::Shape("mcp_servers")));
    }
}
