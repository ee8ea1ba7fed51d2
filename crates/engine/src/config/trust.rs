//! The user's consent to a workspace's configuration file. Consent is given to one file: its place and the hash
//! of its bytes, as `direnv` does it. It is kept beside the user's own configuration, never in a workspace, where
//! a clone or a rollback could bring it along.

use std::path::{Path, PathBuf};

use bivouac_capture::{agents, folder};
use bivouac_core::id::ObjectId;
use bivouac_core::path::WorkspacePath;
use bivouac_core::work::Author;
use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use super::{BadConfig, WorkspaceFile, file};
use crate::home::Home;
use crate::save::to_json;
use crate::{Error, Result, papers};

/// Every file of one workspace that the user consented to: a branch may have another one.
#[derive(Debug, Serialize, Deserialize)]
struct Consents {
    version: u32,
    workspace: WorkspacePath,
    files: Vec<ObjectId>,
}

const VERSION: u32 = 1;
/// Older ones are forgotten: the user is asked again.
const MANY_FILES: usize = 100;

/// Who asks: a person, or an agent that started us.
pub fn author() -> Author {
    if agents::is_within_agent() { Author::Model } else { Author::Person }
}

/// Did the user consent to exactly these bytes at this place?
pub(super) fn is_given(home: &Home, hash: &ObjectId) -> bool {
    read(home).is_some_and(|consents| consents.files.contains(hash))
}

/// Records the user's consent to a file as it was read and shown.
pub fn give(home: &Home, file: &WorkspaceFile, by: Author) -> Result<()> {
    check_person(by)?;
    let path = place(home).ok_or(BadConfig::ConsentInside)?;
    let mut files = read(home).map(|consents| consents.files).unwrap_or_default();
    files.retain(|hash| *hash != file.hash);
    files.push(file.hash);
    let n_forgotten = files.len().saturating_sub(MANY_FILES);
    files.drain(..n_forgotten);
    let consents = Consents { version: VERSION, workspace: home.workspace_path(), files };
    let folder = path.parent().unwrap_or(Path::new("/"));
    folder::make(folder).map_err(Error::io(folder))?;
    papers::write_private(&path, &to_json(&consents))
}

/// Takes back the consent to every configuration file of this workspace. Answers whether there was any.
pub fn take_back(home: &Home, by: Author) -> Result<bool> {
    check_person(by)?;
    let Some(path) = place(home) else {
        return Ok(false);
    };
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path)(error)),
    }
}

fn check_person(by: Author) -> Result<()> {
    match by {
        Author::Person => Ok(()),
        Author::Model | Author::Import => Err(BadConfig::OnlyAPerson.into()),
    }
}

fn read(home: &Home) -> Option<Consents> {
    let bytes = file::read_private(&place(home)?)?;
    let consents: Consents = serde_json::from_slice(&bytes).ok()?;
    let is_ours = consents.version == VERSION && consents.workspace == home.workspace_path();
    is_ours.then_some(consents)
}

/// Where the consent for a workspace is kept. `None` where the workspace holds the user's configuration: there
/// whoever may write in the workspace could give consent.
fn place(home: &Home) -> Option<PathBuf> {
    let folder = etcetera::choose_base_strategy().ok()?.config_dir().join("bivouac/trusted");
    let is_inside = |folder: &Path| folder.starts_with(&home.workspace);
    let real = folder.ancestors().find_map(|it| it.canonicalize().ok());
    if is_inside(&folder) || real.is_some_and(|real| is_inside(&real)) {
        return None;
    }
    Some(folder.join(format!("{}.json", home.workspace_path().key())))
}
