//! What is configured: built-in defaults, under the user's file, under the workspace's file, under
//! variables. Every key has a default, and an unknown one is an error that names the nearest.
//!
//! The workspace's file comes from wherever the workspace came from. Until the user consents to it
//! ([`trust`]), it may only widen protection; `bivouac_core::settings` has the rule for every key.

mod file;
mod layers;
pub mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bivouac_core::conversation::Prices;
use bivouac_core::id::ObjectId;
use bivouac_core::retention::Limit;
use bivouac_core::settings::{self, Verdict};
use bivouac_core::size::Bytes;
use bivouac_core::{autosave, retention, risk};
use toml::Value;

use crate::home::{Home, WORKSPACE_CONFIG};
use layers::{Entry, Layers};

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
    /// May files be restored in a workspace that other users can write to?
    pub allow_shared: bool,
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
    /// The workspace's file, if there is one.
    pub workspace_file: Option<WorkspaceFile>,
    /// Every key with its value and where that came from.
    pub settings: BTreeMap<String, Setting>,
}

/// A workspace's configuration file as it was read.
#[derive(Clone, Debug)]
pub struct WorkspaceFile {
    pub path: PathBuf,
    /// The hash of its bytes: consent is given to these and no others.
    pub hash: ObjectId,
    /// Did the user consent to it?
    pub is_trusted: bool,
    /// What it says that needs the user's consent. Without consent, these hold only as far as they widen protection.
    pub claims: Vec<Claim>,
}

/// A setting that needs the user's consent.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub key: String,
    /// What the file says.
    pub value: Value,
    /// What holds without the file.
    pub own: Value,
    /// What the file's value would do.
    pub effect: &'static str,
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
    #[error("`{}` is not a regular file, so it is not read as configuration", path.display())]
    NotAFile { path: PathBuf },
    #[error("`{}` is larger than 1 MiB, so it is not read as configuration", path.display())]
    TooLarge { path: PathBuf },
    #[error("`{}` is a link that leads out of the workspace or in a circle, so it is not followed", path.display())]
    LeadsOutside { path: PathBuf },
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
    #[error("an agent cannot decide which configuration file is trusted")]
    OnlyAPerson,
    #[error("consent cannot be recorded, because this workspace holds your own configuration")]
    ConsentInside,
}

impl BadConfig {
    /// What is said where the workspace's file is left out for this.
    pub fn notice(&self) -> String {
        format!("`{WORKSPACE_CONFIG}` is not used: {self}")
    }

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
            Self::NotForWorkspace { user_config, .. } => Some(format!(
                "remove it from `{WORKSPACE_CONFIG}`; if you want it, put it into `{}`",
                user_config.display()
            )),
            Self::NotAFile { .. } | Self::TooLarge { .. } => {
                Some("remove it, or put a configuration file in its place".to_owned())
            }
            Self::LeadsOutside { .. } => {
                Some("put the file itself there, or move its settings to your own configuration (`biv config path`)".to_owned())
            }
            Self::OnlyAPerson => {
                Some("run the command yourself, in a terminal of your own".to_owned())
            }
            Self::ConsentInside => Some(
                "put the settings into your own configuration: `biv config path` says where it is"
                    .to_owned(),
            ),
            Self::Read { .. } => Some("check who may read it, or remove it".to_owned()),
            Self::Syntax { .. } => Some("correct it, or remove it".to_owned()),
            Self::BadValue { .. } => {
                Some("`biv config show --defaults` shows what a value looks like".to_owned())
            }
        }
    }
}

impl Config {
    /// What holds where nothing is said.
    pub fn defaults() -> Self {
        let layers = Layers::defaults();
        layers.clone().read(&layers).expect("the shipped defaults are valid settings")
    }

    /// For commands that are about the configuration itself: whatever is wrong with it is an error.
    pub fn load(home: &Home) -> Result<Self, BadConfig> {
        match Self::load_for_command(home)? {
            (config, None) => Ok(config),
            (_, Some(error)) => Err(error),
        }
    }

    /// For all other commands. The workspace's file may have come with a clone, or an agent may have written it, so
    /// a broken one must not keep a person from saving or rolling back: it is left out, and answered what is wrong
    /// with it. What is wrong with the user's own configuration is an error.
    pub fn load_for_command(home: &Home) -> Result<(Self, Option<BadConfig>), BadConfig> {
        let own = own_layers(home)?;
        match read_workspace_file(home, &own) {
            Ok(workspace) => Ok((finish(own, workspace)?, None)),
            Err(error) => Ok((finish(own, None)?, Some(error))),
        }
    }

    /// For hooks and for what saves by itself: they go on whatever the configuration is like. Answers also what
    /// is wrong with it.
    pub fn load_or_fall_back(home: &Home) -> (Self, Option<BadConfig>) {
        Self::load_for_command(home).unwrap_or_else(|error| (Self::keeping_all(), Some(error)))
    }

    /// The defaults, where not even the user's own configuration can be read. Nobody knows how much is to be kept
    /// then, so nothing is let go.
    fn keeping_all() -> Self {
        Self {
            retention: retention::Policy {
                max_per_session: Limit::exactly(u64::MAX),
                max_age: Limit::exactly(Duration::MAX),
            },
            budget: Bytes(u64::MAX),
            auto_gc: false,
            ..Self::defaults()
        }
    }

    /// What the workspace's file says and does not decide, because the user did not consent to it.
    pub fn ignored(&self) -> &[Claim] {
        match &self.workspace_file {
            Some(file) if !file.is_trusted => &file.claims,
            _ => &[],
        }
    }

    /// One line about them, for a person.
    pub fn ignored_notice(&self) -> Option<String> {
        let file = self.workspace_file.as_ref()?;
        let keys: Vec<&str> = self.ignored().iter().map(|claim| claim.key.as_str()).collect();
        (!keys.is_empty()).then(|| {
            format!(
                "ignored in `{}`: {}; these would save or keep less, or act outside the workspace; `biv config trust` shows and allows them",
                file.path.display(),
                keys.join(", ")
            )
        })
    }
}

/// The defaults and the user's own file.
fn own_layers(home: &Home) -> Result<Layers, BadConfig> {
    let mut own = Layers::defaults();
    if let Some(bytes) = file::read_own(&home.user_config)? {
        let entries = own.parse(&home.user_config, &bytes)?;
        own.lay(entries, &Source::File(home.user_config.clone()));
    }
    Ok(own)
}

/// Variables go over all files. `workspace` is the workspace's file, laid over the user's own.
fn finish(
    mut own: Layers,
    workspace: Option<(Layers, WorkspaceFile)>,
) -> Result<Config, BadConfig> {
    own.lay_variables()?;
    let Some((mut layers, file)) = workspace else {
        return own.clone().read(&own);
    };
    layers.lay_variables()?;
    Ok(Config { workspace_file: Some(file), ..layers.read(&own)? })
}

/// The workspace's file, laid over the user's own settings. `None` if there is no such file.
fn read_workspace_file(
    home: &Home,
    own: &Layers,
) -> Result<Option<(Layers, WorkspaceFile)>, BadConfig> {
    let bytes = file::read_in_workspace(&home.workspace, WORKSPACE_CONFIG)?;
    bytes.map(|bytes| lay_workspace(home, own, &bytes)).transpose()
}

/// Lays the workspace's file over the user's own settings, as far as it may.
fn lay_workspace(
    home: &Home,
    own: &Layers,
    bytes: &[u8],
) -> Result<(Layers, WorkspaceFile), BadConfig> {
    let path = home.workspace_config();
    let entries = own.parse(&path, bytes)?;
    if let Some(entry) = entries.iter().find(|entry| settings::is_forbidden(&entry.key)) {
        let (key, user_config) = (entry.key.clone(), home.user_config.clone());
        return Err(BadConfig::NotForWorkspace { key, user_config });
    }
    let source = Source::File(path.clone());
    let keys: BTreeSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let mut all = own.clone();
    all.lay(entries, &source);
    // A value that makes no sense is an error, also where it would be ignored.
    all.clone().read(own)?;
    let mut allowed = own.clone();
    let mut claims = Vec::new();
    for key in keys {
        let value = all.settings[&key].value.clone();
        let verdict = match (own.judged(&key), all.judged(&key)) {
            (Some(own), Some(asked)) => settings::judge(&key, &own, &asked),
            _ => Verdict::NeedsConsent { effect: "has a value of another kind" },
        };
        let (holds, effect) = match verdict {
            Verdict::Holds => (Some(value.clone()), None),
            Verdict::HoldsInPart { list, effect } => (Some(list.into()), Some(effect)),
            Verdict::NeedsConsent { effect } => (None, Some(effect)),
        };
        if let Some(effect) = effect {
            let own = own.settings[&key].value.clone();
            claims.push(Claim { key: key.clone(), value, own, effect });
        }
        allowed.lay(holds.map(|value| Entry { key, value }), &source);
    }
    let hash = ObjectId::of(bytes);
    let is_trusted = !claims.is_empty() && trust::is_given(home, &hash);
    let layers = if is_trusted { all } else { allowed };
    Ok((layers, WorkspaceFile { path, hash, is_trusted, claims }))
}

#[cfg(test)]
mod tests {
    use bivouac_core::checkpoint::Trigger;

    use super::*;

    fn load(user: &str, workspace: &str) -> Result<Config, BadConfig> {
        with_files(user, workspace, Config::load)
    }

    fn load_or_fall_back(user: &str, workspace: &str) -> (Config, Option<BadConfig>) {
        with_files(user, workspace, Config::load_or_fall_back)
    }

    fn with_files<T>(user: &str, workspace: &str, load: impl FnOnce(&Home) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let home = Home {
            folder: folder.path().join("ws"),
            workspace: folder.path().join("ws"),
            store: folder.path().join("store"),
            user_config: folder.path().join("config.toml"),
            local_records: None,
            unused_store: None,
        };
        std::fs::create_dir(&home.workspace).unwrap();
        std::fs::write(&home.user_config, user).unwrap();
        std::fs::write(home.workspace_config(), workspace).unwrap();
        load(&home)
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
        assert_eq!(config.retention.max_per_session.now, 9);
        assert_eq!(config.retention.max_per_session.own, 5);
        assert_eq!(config.retention.max_age.now, Duration::from_secs(86_400));
        assert_eq!(config.autosave.interval, Duration::from_secs(30));
        assert!(config.autosave.triggers.contains(&Trigger::Turn));
        assert_eq!(config.max_file_size, Bytes(100_000_000));
    }

    #[test]
    fn minutes_are_accepted() {
        let config = load("[checkpoint]\nauto_interval_minutes = 5", "").unwrap();
        assert_eq!(config.autosave.interval, Duration::from_secs(300));
    }

    #[test]
    fn every_key_has_a_rule_for_workspaces() {
        let mut keys: Vec<&str> = settings::KEYS.iter().map(|key| key.name).collect();
        keys.sort_unstable();
        let defaults = Layers::defaults();
        assert_eq!(defaults.settings.keys().map(String::as_str).collect::<Vec<_>>(), keys);
    }

    #[test]
    fn a_workspace_widens_and_is_ignored_where_it_narrows() {
        let config = load(
            "[workspace]\ninclude = [\"notes/\"]\n[checkpoint]\nretention_days = 3",
            "[workspace]\ninclude = [\"data/\"]\nexclude = [\"*\"]\n[checkpoint]\nmax_per_session = 1\n\
             retention_days = 5\nauto_interval_minutes = 60\nmax_file_size = \"1GB\"\ntriggers = [\"phase\"]\n\
             [export]\non_checkpoint = [\"handoff\", \"memory\"]",
        )
        .unwrap();
        assert_eq!(config.include, ["data/", "notes/"]);
        assert!(config.exclude.is_empty());
        assert_eq!(config.retention.max_per_session.now, 20);
        assert_eq!(config.retention.max_age.now, Duration::from_secs(5 * 86_400));
        assert_eq!(config.autosave.interval, Duration::from_secs(30));
        assert_eq!(config.max_file_size, Bytes(1_000_000_000));
        let triggers = &config.autosave.triggers;
        assert!(triggers.contains(&Trigger::Phase) && triggers.contains(&Trigger::Turn));
        assert_eq!(config.exports, ["handoff"]);
        let ignored: Vec<&str> = config.ignored().iter().map(|claim| claim.key.as_str()).collect();
        assert_eq!(
            ignored,
            [
                "checkpoint.auto_interval_seconds",
                "checkpoint.max_per_session",
                "checkpoint.triggers",
                "export.on_checkpoint",
                "workspace.exclude",
                "workspace.include",
            ]
        );
    }

    #[test]
    fn what_stands_in_the_users_own_configuration_may_stand_in_the_workspaces() {
        let narrow = "[workspace]\nexclude = [\"*.mp4\"]\n[checkpoint]\nmax_per_session = 2\n\
                      triggers = [\"turn\"]\n[export]\non_checkpoint = [\"memory\"]";
        let config = load(narrow, narrow).unwrap();
        assert!(config.ignored().is_empty());
        assert_eq!((config.retention.max_per_session.now, config.exclude.len()), (2, 1));
    }

    #[test]
    fn without_a_usable_file_of_the_user_nothing_is_let_go() {
        let (config, error) = load_or_fall_back("[checkpoint", "");
        assert!(error.is_some());
        assert_eq!(config.retention.max_per_session, Limit::exactly(u64::MAX));
        assert!(!config.auto_gc);
        // A broken file of the workspace leaves the user's own settings.
        let (config, error) = load_or_fall_back("[checkpoint]\nmax_per_session = 7", "[checkpoint");
        assert!(error.is_some());
        assert_eq!(config.retention.max_per_session.now, 7);
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
            "[workspace]\nallow_shared = true",
            "`workspace.allow_shared` is for your own configuration, so a workspace cannot set it",
        );
        check(
            "[store]\nbudget = \"1MB\"",
            "`store.budget` is for your own configuration, so a workspace cannot set it",
        );
    }
}
