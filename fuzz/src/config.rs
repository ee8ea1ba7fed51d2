//! The user's configuration, a separator, and the workspace's. What is taken means the same when it is written down
//! and read again, and no pattern in it takes long.

use std::fs;

use bivouac_core::risk;
use bivouac_engine::config::Config;
use bivouac_engine::home::Home;
use bivouac_snapshot::rules::Rules;

pub fn try_one(bytes: &[u8]) {
    let pieces = super::pieces(bytes);
    let (user, workspace) = (pieces[0], pieces.get(1).copied().unwrap_or_default());
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let home = Home {
        folder: folder.path().to_owned(),
        workspace: folder.path().to_owned(),
        store: folder.path().join("store"),
        user_config: folder.path().join("config.toml"),
        local_records: None,
        unused_store: None,
    };
    let write = |user: &[u8], workspace: &[u8]| {
        fs::write(&home.user_config, user).expect("a new folder takes a file");
        fs::write(home.workspace_config(), workspace).expect("a new folder takes a file");
    };
    write(user, workspace);
    let config = match Config::load(&home) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.hint().is_none_or(|hint| !hint.is_empty()));
            return;
        }
    };
    for rules in [&config.include, &config.exclude] {
        let rules = Rules::from_lines(rules.iter().map(String::as_str));
        for path in [b"a".as_slice(), b"src/deep/er/main.rs", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"] {
            rules.judge(path, false);
            rules.may_match_below(path);
        }
    }
    risk::find("sudo rm -rf target/* && git reset --hard; aaaaaaaaaaaaaaaaaaaab", &config.risks);
    write(written(&config).as_bytes(), b"");
    let again = Config::load(&home).expect("what was taken is taken again");
    let values = |config: &Config| {
        let all = config.settings.iter().map(|(key, it)| (key.clone(), it.value.to_string()));
        all.collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&config));
}

/// Every setting as a file would have it.
fn written(config: &Config) -> String {
    let mut sections = toml::Table::new();
    for (key, setting) in &config.settings {
        let (section, name) = key.split_once('.').expect("every key is in a section");
        let section = sections.entry(section).or_insert_with(|| toml::Table::new().into());
        let section = section.as_table_mut().expect("a section is a table");
        section.insert(name.to_owned(), setting.value.clone());
    }
    sections.to_string()
}
