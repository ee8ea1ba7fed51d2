//! Where opencode looks for plugins and skills. Its settings may have comments, so ours come from plugins.

use serde_json::{Map, json};

use super::config_folder;
use crate::agents::install::{Folders, Part, Place, Scope, pretty};
use crate::agents::words::{COMMANDS, skill};

const HOOKS: &str = "plugin/bivouac.js";
const SERVER: &str = "plugin/bivouac-commands.js";
const SKILL: &str = "skills/bivouac/SKILL.md";

pub(super) fn places(scope: Scope, folders: &Folders) -> Vec<Place> {
    let folder = match scope {
        Scope::User => config_folder(folders),
        Scope::Project => folders.workspace.join(".opencode"),
    };
    let of = |path: &str| match path {
        HOOKS => Part::Hooks,
        SERVER => Part::Server,
        _ => Part::Words,
    };
    let wanted =
        files(folders).into_iter().filter(|(path, _)| scope == Scope::User || path == HOOKS);
    wanted.map(|(path, text)| Place::own(of(&path), folder.join(&path), text)).collect()
}

pub(in crate::agents) fn files(folders: &Folders) -> Vec<(String, String)> {
    let commands: Map<_, _> = COMMANDS
        .iter()
        .map(|it| (it.name.to_owned(), json!({ "description": it.description, "words": it.words })))
        .collect();
    let told = include_str!("plugin.js").replace("@BINARY@", &folders.binary());
    let asked = include_str!("commands.js")
        .replace("@PROGRAM@", &json!(folders.program).to_string())
        .replace("@COMMANDS@", pretty(&commands.into()).trim_end());
    [(HOOKS, told), (SERVER, asked), (SKILL, skill())]
        .map(|(path, text)| (path.to_owned(), text))
        .into()
}
