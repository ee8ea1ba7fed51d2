//! Our server in settings that are TOML. Comments and order of others stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use super::{BadSettings, SERVER, Server};

pub(super) fn add(text: &str, server: &Server) -> Result<String, BadSettings> {
    let mut settings = parse(text)?;
    let wanted = table(server);
    let servers = settings.entry(server.table).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers = servers.as_table_like_mut().ok_or(BadSettings::Shape(server.table))?;
    if servers.get(SERVER).is_some_and(|entry| is_same(entry, &wanted)) {
        return Ok(text.to_owned());
    }
    servers.insert(SERVER, Item::Table(wanted));
    Ok(settings.to_string())
}

pub(super) fn remove(text: &str, server: &Server) -> Result<String, BadSettings> {
    let mut settings = parse(text)?;
    let Some(servers) = servers(&mut settings, server)? else {
        return Ok(text.to_owned());
    };
    if servers.remove(SERVER).is_none() {
        return Ok(text.to_owned());
    }
    if servers.is_empty() {
        settings.remove(server.table);
    }
    Ok(settings.to_string())
}

pub(super) fn has(text: &str, server: &Server) -> Result<bool, BadSettings> {
    let mut settings = parse(text)?;
    Ok(servers(&mut settings, server)?.is_some_and(|servers| servers.contains_key(SERVER)))
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

fn is_same(entry: &Item, wanted: &Table) -> bool {
    let plain = |table: &dyn TableLike| -> Vec<(String, String)> {
        let mut pairs: Vec<_> = table
            .iter()
            .map(|(key, item)| (key.to_owned(), item.to_string().split_whitespace().collect()))
            .collect();
        pairs.sort();
        pairs
    };
    entry.as_table_like().is_some_and(|entry| plain(entry) == plain(wanted))
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
