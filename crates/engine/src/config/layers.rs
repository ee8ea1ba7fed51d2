//! Settings laid over each other: the built-in defaults, a file, another file, variables. What comes last
//! holds. A [`Config`] is read from the result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use bivouac_core::autosave;
use bivouac_core::checkpoint::Trigger;
use bivouac_core::conversation::{Price, Prices};
use bivouac_core::retention::{self, Limit};
use bivouac_core::risk::{self, Pattern};
use bivouac_core::settings;
use bivouac_core::size::Bytes;
use bivouac_core::text::printable;
use toml::Value;

use super::{BadConfig, Config, DEFAULTS, Setting, Source};

/// As good as for ever, and short enough to be added to any moment.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Accepted beside `auto_interval_seconds`.
const MINUTES: &str = "checkpoint.auto_interval_minutes";
const SECONDS: &str = "checkpoint.auto_interval_seconds";
const PER_SESSION: &str = "checkpoint.max_per_session";
const TRIGGERS: &str = "checkpoint.triggers";
const DAYS: &str = "checkpoint.retention_days";

/// An error quotes at most so many letters of a file.
const MAX_SHOWN: usize = 200;

#[derive(Clone)]
pub(super) struct Layers {
    pub(super) settings: BTreeMap<String, Setting>,
}

/// One key as a file or a variable sets it, under the name it is known by.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Value,
}

impl Layers {
    pub(super) fn defaults() -> Self {
        let table = DEFAULTS.parse().expect("the shipped defaults are valid TOML");
        let settings = flatten(&table).into_iter();
        Self {
            settings: settings
                .map(|Entry { key, value }| (key, Setting { value, source: Source::Default }))
                .collect(),
        }
    }

    /// What a file sets. Every key is a known one.
    pub(super) fn parse(&self, path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, BadConfig> {
        let bad = |message| BadConfig::Syntax { path: path.to_owned(), message };
        let text = std::str::from_utf8(bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.matches('\n').count() + 1;
            bad(format!("line {line}: {}", shown(error.message())))
        })?;
        let entries: Vec<Entry> = flatten(&table).into_iter().map(in_seconds).collect();
        match entries.iter().find(|entry| !self.settings.contains_key(&entry.key)) {
            Some(unknown) => Err(self.unknown_key(&unknown.key, path)),
            None => Ok(entries),
        }
    }

    pub(super) fn lay(&mut self, entries: impl IntoIterator<Item = Entry>, source: &Source) {
        for Entry { key, value } in entries {
            self.settings.insert(key, Setting { value, source: source.clone() });
        }
    }

    /// Lays the variables over it, which go over every file.
    pub(super) fn lay_variables(&mut self) -> Result<(), BadConfig> {
        let keys: Vec<String> = self.settings.keys().cloned().chain([MINUTES.to_owned()]).collect();
        for key in keys {
            let variable = variable_of(&key);
            let Ok(text) = std::env::var(&variable) else {
                continue;
            };
            let value = match self.settings.get(&key).map(|setting| &setting.value) {
                Some(Value::Array(_)) => text
                    .split(',')
                    .map(|part| part.trim().to_owned())
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .into(),
                Some(Value::String(_)) => Value::String(text),
                _ => text
                    .parse::<i64>()
                    .map(Value::Integer)
                    .or_else(|_| text.parse().map(Value::Boolean))
                    .unwrap_or(Value::String(text)),
            };
            self.lay([in_seconds(Entry { key, value })], &Source::Variable(variable));
        }
        self.check_variables()
    }

    /// A variable that begins like a section and is no key of it is a slip.
    fn check_variables(&self) -> Result<(), BadConfig> {
        let sections: BTreeSet<String> = self
            .settings
            .keys()
            .filter_map(|key| key.split_once('.'))
            .map(|(section, _)| variable_of(section) + "_")
            .collect();
        let known: Vec<String> =
            self.settings.keys().map(String::as_str).chain([MINUTES]).map(variable_of).collect();
        for (name, _) in std::env::vars_os() {
            let Some(name) = name.to_str() else { continue };
            if sections.iter().any(|section| name.starts_with(section.as_str()))
                && !known.iter().any(|key| key == name)
            {
                let nearest = known.iter().min_by_key(|key| strsim::damerau_levenshtein(key, name));
                return Err(BadConfig::UnknownVariable {
                    name: name.to_owned(),
                    nearest: nearest.cloned(),
                });
            }
        }
        Ok(())
    }

    fn unknown_key(&self, key: &str, path: &Path) -> BadConfig {
        // Comparing takes the product of both lengths, in time and in memory.
        let known = self.settings.keys().filter(|_| key.len() <= MAX_SHOWN);
        let nearest = known.map(|known| (strsim::damerau_levenshtein(known, key), known)).min();
        let nearest =
            nearest.filter(|(distance, _)| *distance <= 6).map(|(_, known)| known.clone());
        BadConfig::UnknownKey { key: shown(key), place: path.display().to_string(), nearest }
    }

    /// A setting as the rules about workspaces see it. `None` if it is not of the kind the key needs.
    pub(super) fn judged(&self, key: &str) -> Option<settings::Value> {
        match self.value(key) {
            // Triggers are read in any case.
            Value::Array(_) if key == TRIGGERS => {
                let list = self.strings(key).ok()?;
                let list = list.iter().map(|name| name.to_ascii_lowercase()).collect();
                Some(settings::Value::List(list))
            }
            Value::Array(_) => self.strings(key).ok().map(settings::Value::List),
            Value::Integer(number) => u64::try_from(*number).ok().map(settings::Value::Number),
            Value::String(_) => self.size(key).ok().map(|size| settings::Value::Number(size.0)),
            _ => None,
        }
    }

    /// Reads the settings. `own` are those without the workspace's file.
    pub(super) fn read(self, own: &Self) -> Result<Config, BadConfig> {
        let seconds = self.number(SECONDS, 1, "a number of seconds above 0")?;
        Ok(Config {
            autosave: autosave::Policy {
                interval: Duration::from_secs(seconds).min(LONGEST),
                triggers: self.triggers()?,
            },
            retention: self.retention(own)?,
            grace: Duration::from_secs(self.number(
                "run.grace_seconds",
                1,
                "a number of seconds above 0",
            )?)
            .min(LONGEST),
            max_file_size: self.size("checkpoint.max_file_size")?,
            include: self.strings("workspace.include")?,
            exclude: self.strings("workspace.exclude")?,
            allow_shared: self.truth("workspace.allow_shared")?,
            budget: self.size("store.budget")?,
            min_free: self.size("store.min_free")?,
            compression_level: match self.number(
                "store.compression_level",
                1,
                "a number from 1 to 19",
            )? {
                level @ 1..=19 => level as i32,
                _ => return Err(self.bad("store.compression_level", "a number from 1 to 19")),
            },
            auto_gc: self.truth("store.auto_gc")?,
            risks: risk::Policy {
                patterns: self
                    .strings("agents.risky")?
                    .iter()
                    .filter_map(|it| Pattern::parse(it))
                    .collect(),
                build_folders: self.strings("agents.build_folders")?,
            },
            prices: self.prices()?,
            exports: self.exports()?,
            approval_command: self.strings("approvals.command")?,
            memory_command: self.strings("memory.command")?,
            environment_allow: self.strings("environment.allow")?,
            workspace_file: None,
            settings: self.settings,
        })
    }

    fn retention(&self, own: &Self) -> Result<retention::Policy, BadConfig> {
        let per_session = |it: &Self| it.number(PER_SESSION, 1, "a number above 0");
        let age = |it: &Self| {
            let days = it.number(DAYS, 0, "a number of days")?;
            Ok(Duration::from_secs(days.saturating_mul(86_400)))
        };
        let is_final = |key: &str| matches!(self.settings[key].source, Source::Variable(_));
        Ok(retention::Policy {
            max_per_session: Limit {
                now: per_session(self)?,
                own: per_session(own)?,
                is_final: is_final(PER_SESSION),
            },
            max_age: Limit { now: age(self)?, own: age(own)?, is_final: is_final(DAYS) },
        })
    }

    fn exports(&self) -> Result<Vec<String>, BadConfig> {
        const KEY: &str = "export.on_checkpoint";
        const KNOWN: [&str; 4] = ["handoff", "session-checkpoint", "memory", "checkpoint-md"];
        let names = self.strings(KEY)?;
        match names.iter().all(|name| KNOWN.contains(&name.as_str())) {
            true => Ok(names),
            false => Err(self.bad(
                KEY,
                "a list of \"handoff\", \"session-checkpoint\", \"memory\" or \"checkpoint-md\"",
            )),
        }
    }

    fn prices(&self) -> Result<Prices, BadConfig> {
        const KEY: &str = "agents.prices";
        let read = |line: &String| {
            let mut words = line.split_whitespace();
            let model = words.next()?.to_owned();
            let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
            let [input, output, cache_read, cache_write] = numbers[..] else {
                return None;
            };
            Some((model, Price { input, output, cache_read, cache_write }))
        };
        let lines = self.strings(KEY)?;
        let prices: Option<_> = lines.iter().map(read).collect();
        prices.map(Prices).ok_or_else(|| self.bad(KEY, "a list of models, each with four prices"))
    }

    fn value(&self, key: &str) -> &Value {
        &self.settings.get(key).expect("every key that is read has a default").value
    }

    fn bad(&self, key: &str, wanted: &'static str) -> BadConfig {
        let setting = &self.settings[key];
        BadConfig::BadValue {
            key: key.to_owned(),
            place: setting.source.to_string(),
            found: shown(&setting.value.to_string()),
            wanted,
        }
    }

    fn number(&self, key: &str, least: u64, wanted: &'static str) -> Result<u64, BadConfig> {
        let number = self.value(key).as_integer().and_then(|number| u64::try_from(number).ok());
        number.filter(|number| *number >= least).ok_or_else(|| self.bad(key, wanted))
    }

    fn truth(&self, key: &str) -> Result<bool, BadConfig> {
        self.value(key).as_bool().ok_or_else(|| self.bad(key, "true or false"))
    }

    fn size(&self, key: &str) -> Result<Bytes, BadConfig> {
        let text = match self.value(key) {
            Value::Integer(number) => number.to_string(),
            value => value.as_str().unwrap_or_default().to_owned(),
        };
        text.parse().map_err(|_| self.bad(key, "a size such as \"100MB\""))
    }

    fn strings(&self, key: &str) -> Result<Vec<String>, BadConfig> {
        let list = self
            .value(key)
            .as_array()
            .map(|list| list.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        list.flatten().ok_or_else(|| self.bad(key, "a list of strings"))
    }

    fn triggers(&self) -> Result<BTreeSet<Trigger>, BadConfig> {
        let parsed =
            self.strings(TRIGGERS)?.iter().map(|name| name.parse()).collect::<Result<_, _>>();
        parsed
            .map_err(|_| self.bad(TRIGGERS, "a list of triggers such as \"periodic\" or \"turn\""))
    }
}

/// Words of a file that anybody may have written, as an error may quote them.
fn shown(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn variable_of(key: &str) -> String {
    format!("BIV_{}", key.replace('.', "_").to_uppercase())
}

/// Minutes are accepted, and kept as seconds.
fn in_seconds(entry: Entry) -> Entry {
    match (entry.key.as_str(), entry.value) {
        (MINUTES, Value::Integer(minutes)) => {
            Entry { key: SECONDS.to_owned(), value: Value::Integer(minutes.saturating_mul(60)) }
        }
        (MINUTES, value) => Entry { key: SECONDS.to_owned(), value },
        (_, value) => Entry { key: entry.key, value },
    }
}

/// `section.key` for every value of every section.
fn flatten(table: &toml::Table) -> Vec<Entry> {
    let mut flat = Vec::new();
    for (section, value) in table {
        match value {
            Value::Table(inner) => flat.extend(inner.iter().map(|(key, value)| Entry {
                key: format!("{section}.{key}"),
                value: value.clone(),
            })),
            other => flat.push(Entry { key: section.clone(), value: other.clone() }),
        }
    }
    flat
}
