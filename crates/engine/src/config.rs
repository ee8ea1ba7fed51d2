//! What was asked for: built-in defaults, under the user's file, under the workspace's file, under
//! variables. Every key has a default, and an unknown one is an error that names the nearest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bivouac_core::checkpoint::Trigger;
use bivouac_core::conversation::{Price, Prices};
use bivouac_core::risk::{self, Pattern};
use bivouac_core::size::Bytes;
use bivouac_core::{autosave, retention};
use toml::Value;

use crate::home::Home;

/// The shipped file: every key, its default and what it does.
pub const DEFAULTS: &str = include_str!("default.toml");

#[derive(Clone, Debug)]
pub struct Config {
    pub autosave: autosave::Policy,
    pub retention: retention::Policy,
    /// How long a command that is told to end may take for it.
    pub grace: Duration,
    pub max_file_size: Bytes,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub budget: Bytes,
    pub min_free: Bytes,
    pub compression_level: i32,
    pub auto_gc: bool,
    pub risks: risk::Policy,
    pub prices: Prices,
    /// What is written down with every checkpoint.
    pub exports: Vec<String>,
    /// The command that is asked for replies; empty if there is none.
    pub approval_command: Vec<String>,
    /// The memory server; empty if there is none.
    pub memory_command: Vec<String>,
    /// Variables whose values may be kept beside those that always are.
    pub environment_allow: Vec<String>,
    /// Every key with its value and where that came from.
    pub settings: BTreeMap<String, Setting>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub value: Value,
    pub source: Source,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File(PathBuf),
    Variable(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadConfig {
    #[error("could not read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not valid TOML: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("unknown key `{key}` in `{place}`")]
    UnknownKey { key: String, place: String, nearest: Option<String> },
    #[error("the variable `{name}` is no setting")]
    UnknownVariable { name: String, nearest: Option<String> },
    #[error("`{key}` in `{place}` is {found}, and it must be {wanted}")]
    BadValue { key: String, place: String, found: String, wanted: &'static str },
    #[error("`{key}` is for your own configuration, so a workspace cannot set it")]
    NotForWorkspace { key: String, user_config: PathBuf },
}

impl BadConfig {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { nearest: Some(nearest), .. }
            | Self::UnknownVariable { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{nearest}`?"))
            }
            Self::UnknownKey { nearest: None, .. }
            | Self::UnknownVariable { nearest: None, .. } => {
                Some("`biv config show --defaults` lists all keys".to_owned())
            }
            Self::NotForWorkspace { user_config, .. } => {
                Some(format!("put it into `{}`", user_config.display()))
            }
            Self::Read { .. } | Self::Syntax { .. } | Self::BadValue { .. } => None,
        }
    }
}

impl Config {
    /// What holds where nothing is said.
    pub fn defaults() -> Self {
        Layers::defaults().read().expect("the shipped defaults are valid settings")
    }

    pub fn load(home: &Home) -> Result<Self, BadConfig> {
        let mut layers = Layers::defaults();
        layers.add_file(&home.user_config)?;
        let own_keys: BTreeSet<String> =
            layers.settings.keys().filter(|key| is_own(key)).cloned().collect();
        let workspace_file = home.workspace_config();
        for key in layers.add_file(&workspace_file)? {
            if own_keys.contains(&key) {
                return Err(BadConfig::NotForWorkspace {
                    key,
                    user_config: home.user_config.clone(),
                });
            }
        }
        layers.add_variables()?;
        layers.read()
    }
}

/// What is about the whole store, or names a program to run, is not for a project to say.
fn is_own(key: &str) -> bool {
    ["store.", "approvals.", "memory.", "environment."]
        .iter()
        .any(|section| key.starts_with(section))
}

/// Accepted beside `auto_interval_seconds`.
const MINUTES: &str = "checkpoint.auto_interval_minutes";
const SECONDS: &str = "checkpoint.auto_interval_seconds";

struct Layers {
    settings: BTreeMap<String, Setting>,
}

impl Layers {
    fn defaults() -> Self {
        let table = DEFAULTS.parse().expect("the shipped defaults are valid TOML");
        let settings = flatten(&table).into_iter();
        Self {
            settings: settings
                .map(|(key, value)| (key, Setting { value, source: Source::Default }))
                .collect(),
        }
    }

    /// Lays a file over what is there, if the file is there. Answers the keys it sets.
    fn add_file(&mut self, path: &Path) -> Result<Vec<String>, BadConfig> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(BadConfig::Read { path: path.to_owned(), source });
            }
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.matches('\n').count() + 1;
            let message = format!("line {line}: {}", error.message());
            BadConfig::Syntax { path: path.to_owned(), message }
        })?;
        let mut keys = Vec::new();
        for (key, value) in flatten(&table) {
            self.set(&key, value, Source::File(path.to_owned()))?;
            keys.push(key);
        }
        Ok(keys)
    }

    fn add_variables(&mut self) -> Result<(), BadConfig> {
        let keys: Vec<String> = self.settings.keys().cloned().chain([MINUTES.to_owned()]).collect();
        for key in keys {
            let variable = format!("BIV_{}", key.replace('.', "_").to_uppercase());
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
            self.set(&key, value, Source::Variable(variable))?;
        }
        self.check_variables()
    }

    /// A variable that begins like a section and is no key of it is a slip.
    fn check_variables(&self) -> Result<(), BadConfig> {
        let name_of = |key: &str| format!("BIV_{}", key.replace('.', "_").to_uppercase());
        let sections: BTreeSet<String> = self
            .settings
            .keys()
            .filter_map(|key| key.split_once('.'))
            .map(|(section, _)| name_of(section) + "_")
            .collect();
        let known: Vec<String> =
            self.settings.keys().map(String::as_str).chain([MINUTES]).map(name_of).collect();
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

    fn set(&mut self, key: &str, value: Value, source: Source) -> Result<(), BadConfig> {
        let (key, value) = match (key, value) {
            (MINUTES, Value::Integer(minutes)) => {
                (SECONDS, Value::Integer(minutes.saturating_mul(60)))
            }
            (MINUTES, value) => (SECONDS, value),
            other => other,
        };
        match self.settings.get_mut(key) {
            Some(setting) => {
                *setting = Setting { value, source };
                Ok(())
            }
            None => {
                let nearest = self
                    .settings
                    .keys()
                    .map(|known| (strsim::damerau_levenshtein(known, key), known))
                    .min();
                let nearest =
                    nearest.filter(|(distance, _)| *distance <= 6).map(|(_, known)| known.clone());
                Err(BadConfig::UnknownKey {
                    key: key.to_owned(),
                    place: source.to_string(),
                    nearest,
                })
            }
        }
    }

    fn read(self) -> Result<Config, BadConfig> {
        let seconds = self.number(SECONDS, 1, "a number of seconds above 0")?;
        let days = self.number("checkpoint.retention_days", 0, "a number of days")?;
        Ok(Config {
            autosave: autosave::Policy {
                interval: Duration::from_secs(seconds),
                triggers: self.triggers()?,
            },
            retention: retention::Policy {
                max_per_session: self.number("checkpoint.max_per_session", 1, "a number above 0")?
                    as usize,
                max_age: Duration::from_secs(days.saturating_mul(86_400)),
            },
            grace: Duration::from_secs(self.number(
                "run.grace_seconds",
                1,
                "a number of seconds above 0",
            )?),
            max_file_size: self.size("checkpoint.max_file_size")?,
            include: self.strings("workspace.include")?,
            exclude: self.strings("workspace.exclude")?,
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
            auto_gc: self
                .value("store.auto_gc")
                .as_bool()
                .ok_or_else(|| self.bad("store.auto_gc", "true or false"))?,
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
            settings: self.settings,
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
            found: setting.value.to_string(),
            wanted,
        }
    }

    fn number(&self, key: &str, least: u64, wanted: &'static str) -> Result<u64, BadConfig> {
        let number = self.value(key).as_integer().and_then(|number| u64::try_from(number).ok());
        number.filter(|number| *number >= least).ok_or_else(|| self.bad(key, wanted))
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
        const KEY: &str = "checkpoint.triggers";
        let parsed = self.strings(KEY)?.iter().map(|name| name.parse()).collect::<Result<_, _>>();
        parsed.map_err(|_| self.bad(KEY, "a list of triggers such as \"periodic\" or \"turn\""))
    }
}

/// `section.key` for every value of every section.
fn flatten(table: &toml::Table) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (section, value) in table {
        match value {
            Value::Table(inner) => flat.extend(
                inner.iter().map(|(key, value)| (format!("{section}.{key}"), value.clone())),
            ),
            other => flat.push((section.clone(), other.clone())),
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(user: &str, workspace: &str) -> Result<Config, BadConfig> {
        let folder = tempfile::tempdir().unwrap();
        let home = Home {
            folder: folder.path().join("ws"),
            workspace: folder.path().join("ws"),
            store: folder.path().join("store"),
            user_config: folder.path().join("config.toml"),
        };
        std::fs::create_dir(&home.workspace).unwrap();
        std::fs::write(&home.user_config, user).unwrap();
        std::fs::write(home.workspace_config(), workspace).unwrap();
        Config::load(&home)
    }

    fn hint(user: &str, workspace: &str) -> String {
        let error = load(user, workspace).unwrap_err();
        let text = error.hint().unwrap_or_default();
        let at = text.rfind('/').map_or(0, |slash| slash + 1);
        text[at..].to_owned()
    }

    #[test]
    fn the_workspace_goes_over_the_user_and_both_over_defaults() {
        let config = load(
            "[checkpoint]\nmax_per_session = 5\nretention_days = 1",
            "[checkpoint]\nmax_per_session = 9",
        )
        .unwrap();
        assert_eq!(config.retention.max_per_session, 9);
        assert_eq!(config.retention.max_age, Duration::from_secs(86_400));
        assert_eq!(config.autosave.interval, Duration::from_secs(30));
        assert!(config.autosave.triggers.contains(&Trigger::Turn));
        assert_eq!(config.max_file_size, Bytes(100_000_000));
    }

    #[test]
    fn minutes_are_accepted() {
        let config = load("", "[checkpoint]\nauto_interval_minutes = 5").unwrap();
        assert_eq!(config.autosave.interval, Duration::from_secs(300));
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        assert_eq!(
            hint("", "[checkpoint]\nmax_per_sesion = 5"),
            "did you mean `checkpoint.max_per_session`?"
        );
        assert_eq!(
            hint("", "[checkpont]\nretention_days = 5"),
            "did you mean `checkpoint.retention_days`?"
        );
        assert_eq!(
            hint("", "[colours]\nbackground_of_the_table = 5"),
            "`biv config show --defaults` lists all keys"
        );
    }

    #[test]
    fn bad_values_are_refused() {
        let check = |workspace: &str, message: &str| {
            let error = load("", workspace).unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
        };
        check(
            "[checkpoint]\nauto_interval_seconds = 0",
            "is 0, and it must be a number of seconds above 0",
        );
        check(
            "[checkpoint]\nretention_days = \"seven\"",
            "is \"seven\", and it must be a number of days",
        );
        check(
            "[checkpoint]\ntriggers = [\"never\"]",
            "and it must be a list of triggers such as \"periodic\" or \"turn\"",
        );
        check(
            "[checkpoint]\nmax_file_size = \"big\"",
            "is \"big\", and it must be a size such as \"100MB\"",
        );
        check("[checkpoint", "is not valid TOML: line 1: unclosed table, expected `]`");
        check(
            "[store]\nbudget = \"1MB\"",
            "`store.budget` is for your own configuration, so a workspace cannot set it",
        );
    }
}
