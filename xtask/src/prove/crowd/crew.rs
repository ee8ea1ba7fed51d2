//! Who is there, and what each of them does until it is over.

use std::fs;
use std::path::{Path, PathBuf};

use bivouac_testkit::{Tree, read_tree};
use serde_json::{Value, json};

use super::Outcome;
use super::scene::Scene;
use crate::prove::Proof;
use crate::prove::dice::Dice;

#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Saves, goes back, deletes and lists in a workspace that nobody else knows.
    Owner,
    /// Saves what several roll back.
    Keeper,
    /// Rolls back what several save.
    Roller,
    Agent,
    /// Answers a model that asks for several things at once.
    Server,
    Reader,
    Sweeper,
    Checker,
}

/// Something that was acknowledged.
pub(super) enum Kept {
    Checkpoint {
        folder: PathBuf,
        id: String,
        tree: Tree,
    },
    /// Of the workspace that several share.
    Shared {
        id: String,
    },
    Prompt {
        folder: PathBuf,
        word: String,
    },
    Note {
        word: String,
    },
}

impl Role {
    /// Sixty-four of them, or about a third of that, with at least two in each role.
    pub(super) fn all(proof: &Proof) -> Vec<Self> {
        let groups = [
            (Self::Owner, 36),
            (Self::Agent, 8),
            (Self::Server, 2),
            (Self::Keeper, 4),
            (Self::Roller, 4),
            (Self::Reader, 6),
            (Self::Sweeper, 2),
            (Self::Checker, 2),
        ];
        let n_of = |n: usize| proof.size((n / 4).max(2), n);
        groups.into_iter().flat_map(|(role, n)| std::iter::repeat_n(role, n_of(n))).collect()
    }
}

/// Does what its role is until it is over. What was acknowledged is put into `kept`, whatever happens.
pub(super) fn live(
    scene: &Scene,
    (role, number): (Role, usize),
    kept: &mut Vec<Kept>,
) -> Outcome<()> {
    let mut dice = Dice::new(scene.seed, number as u64);
    let shared = scene.root.join("project");
    let own = match role {
        Role::Owner | Role::Agent | Role::Server => scene.folder(&format!("own-{number}"))?,
        _ => shared,
    };
    let mut round = 0;
    while !scene.is_over() {
        round += 1;
        match role {
            Role::Owner => own_round(scene, &own, (number, round), (&mut dice, kept))?,
            Role::Agent => turn(scene, &own, (number, round), kept)?,
            Role::Server => serve(scene, &own, (number, round), kept)?,
            Role::Keeper => kept.push(Kept::Shared { id: save(scene, &own)? }),
            Role::Roller => {
                let side = dice.one(&["one", "two"]);
                // One that another overtakes leaves paths alone, and says so.
                scene.biv(&own, &["checkpoint", "rollback", side, "--yes"], &[0, 3])?;
            }
            Role::Reader => drop(scene.json(&own, &["checkpoint", "list", "--all"])?),
            Role::Sweeper => drop(scene.biv(&own, &["gc"], &[0])?),
            Role::Checker => drop(scene.biv(&own, &["verify"], &[0])?),
        }
    }
    Ok(())
}

/// Five files that all say the same are changed and saved; then one thing more.
fn own_round(
    scene: &Scene,
    own: &Path,
    (number, round): (usize, u64),
    (dice, kept): (&mut Dice, &mut Vec<Kept>),
) -> Outcome<()> {
    for n in 0..5 {
        // Contents that come and go, so that what a sweep calls dead is needed again.
        let text = format!("{} {}\n", number % 7, round % 4).repeat(40 + n);
        fs::write(own.join(format!("f{n}")), text).map_err(|error| error.to_string())?;
    }
    fs::write(own.join("round"), format!("{number} {round}")).map_err(|error| error.to_string())?;
    let tree = read_tree(own);
    let id = save(scene, own)?;
    kept.push(Kept::Checkpoint { folder: own.to_owned(), id, tree });
    match dice.below(4) {
        0 => go_back(scene, own, dice, kept),
        1 => {
            let gone = dice.below(kept.len());
            let Kept::Checkpoint { id, .. } = kept.swap_remove(gone) else { return Ok(()) };
            scene.biv(own, &["checkpoint", "delete", &id, "--yes"], &[0]).map(drop)
        }
        2 => {
            let list = scene.json(own, &["checkpoint", "list"])?.to_string();
            let missing = kept.iter().find(
                |it| matches!(it, Kept::Checkpoint { id, .. } if !list.contains(id.as_str())),
            );
            match missing {
                Some(Kept::Checkpoint { id, .. }) => {
                    Err(format!("{id} was acknowledged and is not listed"))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn save(scene: &Scene, folder: &Path) -> Outcome<String> {
    let saved = scene.json(folder, &["checkpoint", "create"])?;
    Ok(saved["id"].as_str().ok_or("a checkpoint without an id")?.to_owned())
}

/// To any earlier moment, and back to this one.
fn go_back(scene: &Scene, own: &Path, dice: &mut Dice, kept: &[Kept]) -> Outcome<()> {
    let Kept::Checkpoint { id, tree, .. } = dice.one(kept) else { return Ok(()) };
    let before = read_tree(own);
    scene.biv(own, &["checkpoint", "rollback", id, "--yes"], &[0])?;
    if read_tree(own) != *tree {
        return Err(format!("the rollback to {id} is not exact"));
    }
    if before != *tree {
        scene.biv(own, &["undo", "--yes"], &[0])?;
        if read_tree(own) != before {
            return Err(format!("the undo of the rollback to {id} is not exact"));
        }
    }
    Ok(())
}

/// What an agent tells of a turn: a prompt, and its end. A hook always succeeds.
fn turn(
    scene: &Scene,
    own: &Path,
    (number, round): (usize, u64),
    kept: &mut Vec<Kept>,
) -> Outcome<()> {
    let id = format!("22222222-0000-4000-8000-{number:012}");
    let transcript = scene.root.join(format!("home/.claude/projects/-own-{number}/{id}.jsonl"));
    let word = format!("prompt-{number}-{round}");
    let input = scene.root.join(format!("input-{number}"));
    let base = json!({ "session_id": id, "transcript_path": transcript, "cwd": own });
    let tell = |event: &str, key: &str, text: &str| -> Outcome<()> {
        let mut said = base.clone();
        said[key] = json!(text);
        write(&input, &said.to_string())?;
        let words = ["hook", "claude-code", event];
        scene.timed(own, &words, &[0], Some(&input)).map(drop)
    };
    let line = json!({ "type": "user", "uuid": word, "message": { "content": word } });
    let before = fs::read_to_string(&transcript).unwrap_or_default();
    write(&transcript, &format!("{before}{line}\n"))?;
    tell("UserPromptSubmit", "prompt", &format!("{word}."))?;
    kept.push(Kept::Prompt { folder: own.to_owned(), word });
    write(&own.join("work"), &format!("{number} {round}"))?;
    tell("Stop", "last_assistant_message", "done")
}

/// One server, which is told several things and answers them in any order.
fn serve(
    scene: &Scene,
    own: &Path,
    (number, round): (usize, u64),
    kept: &mut Vec<Kept>,
) -> Outcome<()> {
    const N_AT_ONCE: usize = 4;
    let word = |n: usize| format!("note-{number}-{round}-{n}");
    let message = |id: usize, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let client = json!({ "name": "crowd", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut lines = vec![
        message(0, "initialize", hello),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
    ];
    lines.extend((1..=N_AT_ONCE).map(|n| {
        let note = json!({ "kind": "note", "text": format!("{}.", word(n)) });
        message(n, "tools/call", json!({ "name": "progress", "arguments": note }))
    }));
    let input = scene.root.join(format!("input-{number}"));
    write(&input, &(lines.join("\n") + "\n"))?;
    let answers = scene.timed(own, &["mcp"], &[0], Some(&input))?;
    let is_answer = |line: &&str| line.contains("\"result\"") && !line.contains("\"isError\":true");
    if answers.lines().filter(is_answer).count() != 1 + N_AT_ONCE {
        return Err(format!("a server said {answers}"));
    }
    kept.extend((1..=N_AT_ONCE).map(|n| Kept::Note { word: word(n) }));
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| error.to_string())?;
    fs::write(path, text).map_err(|error| error.to_string())
}
