//! A `bivouac.toml` that came with the repository, or that an agent wrote, may widen protection and nothing else. The
//! user's own configuration may narrow it, and what is left out then is said.

use std::fs;

use bivouac_testkit::read_stats;
use serde_json::json;

use super::ground::{Ground, Outcome, Ran, Stop, World, ensure};
use super::{Case, case};

/// So many automatic checkpoints are acknowledged before the file comes.
const N_SAVED: usize = 8;
/// The days of a story are so long.
const MINUTES_A_DAY: u32 = 600;

pub(super) fn cases() -> Vec<Case> {
    let thinning = [
        ("max-per-session", "[checkpoint]\nmax_per_session = 1\n"),
        ("retention", "[checkpoint]\nretention_days = 0\n"),
        ("both", "[checkpoint]\nmax_per_session = 1\nretention_days = 0\n"),
        ("budget", "[store]\nbudget = \"1KB\"\n"),
    ];
    let narrowing = [
        ("exclude-all", "[workspace]\nexclude = [\"*\"]\n"),
        ("exclude-some", "[workspace]\nexclude = [\"src/\"]\n"),
        ("max-file-size", "[checkpoint]\nmax_file_size = \"1B\"\n"),
    ];
    let unreadable = [
        ("nonsense", "]["),
        ("unknown-key", "[workspace]\nsurprise = 1\n"),
        ("bad-value", "[checkpoint]\nmax_per_session = \"many\"\n"),
        ("own-key", "[store]\nbudget = \"1KB\"\n"),
    ];
    let quieting = [
        ("triggers", "[checkpoint]\ntriggers = []\n"),
        ("interval", "[checkpoint]\nauto_interval_seconds = 999999999\n"),
        ("exclude", "[workspace]\nexclude = [\"*\"]\n"),
    ];
    let mut cases = Vec::new();
    cases.extend(thinning.map(|(name, text)| case(format!("thin {name}"), move |g| thin(g, text))));
    cases.extend(
        narrowing.map(|(name, text)| case(format!("narrow {name}"), move |g| narrow(g, text))),
    );
    cases.extend(quieting.map(|(name, text)| case(format!("turn {name}"), move |g| turn(g, text))));
    cases.extend(
        unreadable.map(|(name, text)| {
            case(format!("unreadable {name}"), move |g| unreadable_file(g, text))
        }),
    );
    cases.extend([
        case("risk", risk),
        case("memory", memory),
        case("program", program),
        case("widen", widen),
        case("own exclude", own_exclude),
        case("own lower", own_lower),
        case("trusted", trusted),
        case("trusted changed", trusted_changed),
    ]);
    cases
}

fn own_config(world: &World, text: &str) -> Result<(), Stop> {
    let path = world.env.home().join(".config/bivouac/config.toml");
    fs::create_dir_all(path.parent().ok_or("it is in a folder")?)?;
    Ok(fs::write(path, text)?)
}

/// Eight turns, each with a checkpoint.
fn saved(ground: &Ground<'_>) -> Result<(World, Vec<String>), Stop> {
    let world = ground.repository()?;
    for n in 0..N_SAVED {
        world.env.write("a.txt", format!("turn {n}\n"));
        world.biv(&["checkpoint", "create", "--trigger", "turn"]).ok()?;
    }
    let saved = world.checkpoints()?;
    ensure(saved.len() == N_SAVED, || format!("{} of {N_SAVED} are there", saved.len()))?;
    Ok((world, saved))
}

fn all_there(world: &World, saved: &[String]) -> Result<(), Stop> {
    let now = world.checkpoints()?;
    let n_left = saved.iter().filter(|id| now.contains(id)).count();
    ensure(n_left == saved.len(), || {
        format!("of {} acknowledged, {n_left} are left", saved.len())
    })?;
    saved.iter().try_for_each(|id| world.restored(id).map(drop))
}

/// What was acknowledged stays, whatever the file says about how many are kept.
fn thin(ground: &Ground<'_>, text: &str) -> Outcome {
    let (world, saved) = saved(ground)?;
    world.env.write("bivouac.toml", text);
    for n in 0..3 {
        world.env.write("a.txt", format!("more {n}\n"));
        world.biv(&["checkpoint", "create", "--trigger", "turn"]).sound()?;
        world.hook("Stop", &json!({})).ok()?;
    }
    let sessions = world.biv(&["session", "list", "--json"]).sound()?.json().unwrap_or_default();
    for session in sessions.as_array().into_iter().flatten() {
        world
            .biv(&["session", "complete", session["handle"].as_str().unwrap_or_default()])
            .sound()?;
    }
    // Three days later, and seven were promised.
    world.env.set_minute(3 * MINUTES_A_DAY);
    world.biv(&["gc"]).sound()?;
    world.env.remove("bivouac.toml");
    world.biv(&["gc"]).ok()?;
    all_there(&world, &saved)?;
    Ok(1)
}

/// A checkpoint holds what it would hold without the file, and says that the file wanted something else.
fn narrow(ground: &Ground<'_>, text: &str) -> Outcome {
    let world = ground.repository()?;
    world.env.write("src/main.rs", "fn main() {}\n").write("big", vec![b'x'; 20_000]);
    world.env.write("bivouac.toml", text);
    let ran = world.biv(&["checkpoint", "create", "--name", "one"]).sound()?;
    let tree = world.restored("one")?;
    for path in ["a.txt", "src/main.rs", "big"] {
        ensure(tree.contains_key(path.as_bytes()), || {
            format!("{path} is not in it: {}", ran.text())
        })?;
    }
    ensure(ran.stderr.contains("bivouac.toml"), || {
        format!("not a word about what the file wanted: {}", ran.text())
    })?;
    Ok(1)
}

/// The end of a turn is saved, and the prompt is on record.
fn turn(ground: &Ground<'_>, text: &str) -> Outcome {
    let world = ground.repository()?;
    world.env.write("bivouac.toml", text);
    world.prompt("build the harbour")?;
    world.env.write("a.txt", "by the agent\n");
    world.hook("Stop", &json!({})).ok()?;
    // Whatever could not be saved then is looked for once the file is gone.
    world.env.remove("bivouac.toml");
    let mut ids = world.checkpoints()?;
    let id = ids.pop().ok_or("the turn was not saved")?;
    let tree = world.restored(&id)?;
    let kept = tree.get(b"a.txt".as_slice()).map(|it| it.2.clone()).unwrap_or_default();
    ensure(kept == b"by the agent\n", || "the turn was saved without its files".to_owned())?;
    ensure(world.has_event_with("build the harbour")?, || "the prompt is lost".to_owned())?;
    Ok(1)
}

/// A file that cannot be followed: a save holds everything or fails with an error that names the file, and what an agent
/// told is on record.
fn unreadable_file(ground: &Ground<'_>, text: &str) -> Outcome {
    let world = ground.repository()?;
    world.env.write("bivouac.toml", text);
    world.prompt("build the harbour")?;
    world.hook("Stop", &json!({})).ok()?;
    let ran = world.biv(&["checkpoint", "create", "--name", "one"]).sound()?;
    ensure(ran.stderr.contains("bivouac.toml"), || {
        format!("the file is not named: {}", ran.text())
    })?;
    world.env.remove("bivouac.toml");
    if ran.code == Some(0) {
        let tree = world.restored("one")?;
        ensure(tree.contains_key(b"a.txt".as_slice()), || "saved, but not everything".to_owned())?;
    }
    ensure(world.has_event_with("build the harbour")?, || "the prompt is lost".to_owned())?;
    Ok(1)
}

/// Which commands are risky is not for a repository to say.
fn risk(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.biv(&["checkpoint", "create"]).ok()?;
    world.env.write("bivouac.toml", "[agents]\nrisky = []\nbuild_folders = [\"src\"]\n");
    world.env.write("src/b.txt", "unsaved\n");
    let n_before = world.checkpoints()?.len();
    let input = json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf src" } });
    world.hook("PreToolUse", &input).ok()?;
    world.env.remove("bivouac.toml");
    let ids = world.checkpoints()?;
    ensure(ids.len() > n_before, || "nothing was saved before `rm -rf src`".to_owned())?;
    let tree = world.restored(ids.last().ok_or("it was just there")?)?;
    let kept = tree.get(b"src/b.txt".as_slice()).map(|it| it.2.clone()).unwrap_or_default();
    ensure(kept == b"unsaved\n", || "`src/b.txt` was not saved before `rm -rf src`".to_owned())?;
    Ok(1)
}

/// Nothing in the home folder is edited because a repository asked for it.
fn memory(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let projects = world.env.home().join(".claude/projects");
    let key: String = world
        .env
        .work()
        .canonicalize()?
        .to_string_lossy()
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    let memory = projects.join(key).join("memory");
    fs::create_dir_all(&memory)?;
    fs::write(memory.join("MEMORY.md"), "# My memory\n")?;
    let all = "[export]\non_checkpoint = [\"memory\", \"handoff\", \"session-checkpoint\", \"checkpoint-md\"]\n";
    world.env.write("bivouac.toml", all);
    let before = (read_stats(&projects), world.env.tree());
    world.biv(&["checkpoint", "create", "--name", "one"]).sound()?;
    world.hook("Stop", &json!({})).ok()?;
    ensure(read_stats(&projects) == before.0, || {
        "a file in the home folder was edited".to_owned()
    })?;
    Ok(1)
}

/// Keys that name programs do nothing in a workspace.
fn program(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    let (program, mark) = world.trap("trap")?;
    let text = format!(
        "[memory]\ncommand = [\"{0}\"]\n[approvals]\ncommand = [\"{0}\"]\n",
        program.display()
    );
    world.env.write("bivouac.toml", text);
    for words in [
        &["checkpoint", "create", "--name", "one"][..],
        &["resume", "--print"],
        &["approval", "list"],
        &["status"],
    ] {
        world.biv(words).sound()?;
    }
    world.prompt("hello")?;
    ensure(!mark.exists(), || "a program of the repository ran".to_owned())?;
    Ok(1)
}

/// What widens protection is followed.
fn widen(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.env.write(".gitignore", "build/\n").write("build/out", "1");
    world.env.write(
        "bivouac.toml",
        "[workspace]\ninclude = [\"build/\"]\n[checkpoint]\nmax_per_session = 50\n",
    );
    world.biv(&["checkpoint", "create", "--name", "one"]).ok()?;
    let tree = world.restored("one")?;
    ensure(tree.contains_key(b"build/out".as_slice()), || "`include` was not followed".to_owned())?;
    Ok(1)
}

/// The user's own exclusions are followed, said at every save and before every rollback.
fn own_exclude(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    own_config(&world, "[workspace]\nexclude = [\"video/\"]\n")?;
    world.env.write("video/a.mkv", "old").write("kept", "1");
    let says = |ran: &Ran, when: &str| {
        let said = ran.said();
        ensure(said.contains("video") || said.contains("exclude"), || {
            format!("{when}, nothing is said about what is excluded: {}", ran.text())
        })
    };
    let ran = world.save("one")?;
    ensure(!world.restored("one")?.contains_key(b"video/a.mkv".as_slice()), || {
        "the user's own exclusion was not followed".to_owned()
    })?;
    says(&ran, "at a save")?;
    world.env.write("video/a.mkv", "new");
    // Nothing but an excluded file is another.
    says(
        &world.biv(&["checkpoint", "rollback", "one", "--yes"]).sound()?,
        "where only that differs",
    )?;
    world.env.write("kept", "2");
    says(
        &world.biv(&["checkpoint", "rollback", "one", "--dry-run"]).sound()?,
        "before a rollback",
    )?;
    says(&world.biv(&["checkpoint", "rollback", "one", "--yes"]).sound()?, "at a rollback")?;
    ensure(world.env.read("video/a.mkv") == "new", || "an excluded file was changed".to_owned())?;
    Ok(4)
}

/// The user's own lower number gives space back: whoever writes it means it.
fn own_lower(ground: &Ground<'_>) -> Outcome {
    let (world, saved) = saved(ground)?;
    own_config(&world, "[checkpoint]\nmax_per_session = 1\n")?;
    world.env.write("a.txt", "more\n");
    world.biv(&["checkpoint", "create", "--trigger", "turn"]).ok()?;
    world.biv(&["gc"]).ok()?;
    let n_left = world.checkpoints()?.iter().filter(|it| saved.contains(it)).count();
    ensure(n_left <= 1, || format!("{n_left} of {} are still there", saved.len()))?;
    Ok(1)
}

/// The user's yes to exactly this file: it may narrow then.
fn trust(world: &World) -> Result<(), Stop> {
    let said = world.biv(&["checkpoint", "create"]).sound()?.said()
        + &world.biv(&["status"]).sound()?.said();
    // The command is the one that the notice names; `biv config trust` if it names none.
    let named = said.split('`').find(|it| it.starts_with("biv ") && it.contains("trust"));
    let line = named.unwrap_or("biv config trust");
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--yes"]).collect();
    let ran = world.biv(&words).sound()?;
    let ran = if ran.code == Some(2) { world.biv(&words[..words.len() - 1]).sound()? } else { ran };
    ran.ok().map(drop)
}

fn trusted(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.env.write("log/a", "1").write("bivouac.toml", "[workspace]\nexclude = [\"log/\"]\n");
    trust(&world)?;
    let ran = world.save("one")?;
    let tree = world.restored("one")?;
    ensure(!tree.contains_key(b"log/a".as_slice()), || {
        format!("the yes is not followed: {}", ran.text())
    })?;
    Ok(1)
}

/// A yes is for one content of the file. An agent that changes it has no yes.
fn trusted_changed(ground: &Ground<'_>) -> Outcome {
    let world = ground.repository()?;
    world.env.write("log/a", "1").write("bivouac.toml", "[workspace]\nexclude = [\"log/\"]\n");
    trust(&world)?;
    world.env.write("bivouac.toml", "[workspace]\nexclude = [\"log/\", \"src/\"]\n");
    world.save("one")?;
    let tree = world.restored("one")?;
    ensure(tree.contains_key(b"src/b.txt".as_slice()), || {
        "a yes to one file was taken for a yes to another".to_owned()
    })?;
    Ok(1)
}
