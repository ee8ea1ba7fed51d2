//! Where one worker lays the store out, damages it, and asks what is left of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use bivouac_testkit::read_tree;

use super::Whole;
use super::sample::{Image, Kept, Sample};
use crate::prove::limit::within;
use crate::tools::command;

/// Nothing here takes a second; a minute is for ever.
const LIMIT: Duration = Duration::from_secs(60);
/// Every command of every trial runs at this moment, so that all of them can say the same.
const NOW: &str = "2026-01-22T10:00:00Z";

pub(super) struct Place<'s> {
    pub(super) sample: &'s Sample,
    binary: PathBuf,
    pub(super) store: PathBuf,
    out: PathBuf,
}

/// What a command said, and how it ended.
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) text: String,
}

impl<'s> Place<'s> {
    pub(super) fn new(sample: &'s Sample, binary: PathBuf, number: usize) -> Self {
        let store = sample.root.join(format!("store-{number}"));
        Self { sample, binary, store, out: sample.root.join(format!("out-{number}")) }
    }

    /// Makes the store be these files and no others.
    pub(super) fn lay(&self, image: &Image) -> Result<(), String> {
        let made = || -> std::io::Result<()> {
            let _never_made = fs::remove_dir_all(&self.store);
            for (name, bytes) in image {
                let path = self.store.join(name);
                let folder = path.parent().unwrap_or(&self.store);
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                fs::write(&path, bytes)?;
            }
            Ok(())
        };
        made().map_err(|error| format!("the store could not be laid out: {error}"))
    }

    /// Runs a command. That it crashes or does not end is never right.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Said, String> {
        let mut command = command(&self.binary);
        command.env_clear().envs(self.sample.variables.iter().map(|(key, value)| (key, value)));
        command.env("BIV_CLOCK", NOW).env("BIV_STORE", &self.store);
        command.current_dir(&self.sample.work).args(words);
        let output = within(LIMIT, &mut command).map_err(|error| error.to_string())?;
        let line = words.join(" ");
        let output = output.ok_or_else(|| format!("`{line}` did not end"))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        match output.status.code() {
            Some(code) if !text.contains("panicked at") => Ok(Said { code, text }),
            _ => Err(format!("`{line}` crashed ({}): {text}", output.status)),
        }
    }

    /// Everything that can be asked about the store, with its answer.
    pub(super) fn answers(&self) -> Result<Vec<String>, String> {
        let mut answers = Vec::new();
        let mut ask = |words: &[&str]| -> Result<(), String> {
            let said = self.ask(words)?;
            answers.push(format!("{}: exit {}\n{}", words.join(" "), said.code, said.text));
            Ok(())
        };
        ask(&["checkpoint", "list", "--all", "--json"])?;
        ask(&["session", "list", "--json"])?;
        for session in &self.sample.sessions {
            ask(&["session", "log", session])?;
            ask(&["session", "show", session, "--json"])?;
        }
        for kept in &self.sample.kept {
            ask(&["checkpoint", "show", &kept.id, "--json"])?;
        }
        Ok(answers)
    }

    /// Gives a checkpoint back: its very bytes, or (`false`) none. Anything else is an error.
    pub(super) fn serves(&self, kept: &Kept) -> Result<bool, String> {
        let _never_made = fs::remove_dir_all(&self.out);
        let said =
            self.ask(&["checkpoint", "restore", &kept.id, "--into", &self.out.to_string_lossy()])?;
        if said.code != 0 {
            return Ok(false);
        }
        match read_tree(&self.out) == kept.tree {
            true => Ok(true),
            false => Err(format!("wrong bytes were served of {}: {}", kept.handle, said.text)),
        }
    }

    /// Saves the workspace, and looks at what was saved.
    pub(super) fn saves(&self) -> Result<(), String> {
        let said = self.ask(&["checkpoint", "create", "--json"])?;
        let words = serde_json::Deserializer::from_str(&said.text).into_iter().next();
        let saved: serde_json::Value = words
            .and_then(Result::ok)
            .ok_or_else(|| format!("no checkpoint could be taken: {}", said.text))?;
        let id = saved["id"].as_str().unwrap_or_default().to_owned();
        let kept = Kept { handle: id.clone(), id, tree: self.sample.tree.clone() };
        match self.serves(&kept)? {
            true => Ok(()),
            false => Err("what was saved just now cannot be had".to_owned()),
        }
    }

    /// Brings back what can be, and sees that what cannot is said. `must` are the checkpoints that nothing happened to.
    pub(super) fn mends(&self, must: &BTreeSet<&str>, whole: Whole) -> Result<(), String> {
        let mended = self.ask(&["reconcile"])?;
        if !matches!(mended.code, 0 | 3) {
            return Err(format!("reconcile failed: {}", mended.text));
        }
        let mut lost = BTreeSet::new();
        for kept in &self.sample.kept {
            let handle = kept.handle.as_str();
            match self.serves(kept)? {
                true => {}
                false if must.contains(handle) => {
                    return Err(format!(
                        "{handle} is whole, and did not come back: {}",
                        mended.text
                    ));
                }
                false if !mended.text.contains(handle) => {
                    return Err(format!(
                        "reconcile did not say that {handle} is gone: {}",
                        mended.text
                    ));
                }
                false => drop(lost.insert(handle)),
            }
        }
        let verify = self.ask(&["verify"])?;
        let named = self.named(&verify.text);
        // One that gives its files back may have lost its conversation, and is named by both.
        let is_told = lost.is_subset(&named) && named.is_subset(&self.named(&mended.text));
        // A foreign journal speaks of checkpoints that nobody here ever had.
        let is_sound = verify.code == i32::from(!named.is_empty()) || whole == Whole::AllOfOurs;
        match is_told && is_sound {
            true => Ok(()),
            false => Err(format!(
                "after reconcile, verify (exit {}) names {named:?}, and {lost:?} are lost: {}{}",
                verify.code, mended.text, verify.text
            )),
        }
    }

    /// The checkpoints that a text names.
    pub(super) fn named(&self, text: &str) -> BTreeSet<&'s str> {
        let handles = self.sample.kept.iter().map(|kept| kept.handle.as_str());
        handles.filter(|handle| text.contains(handle)).collect()
    }

    /// Is this very file among those that were set aside?
    pub(super) fn is_aside(&self, bytes: &[u8]) -> bool {
        let entries = fs::read_dir(self.store.join("damaged")).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| fs::read(entry.path()).is_ok_and(|found| found == bytes))
    }
}
