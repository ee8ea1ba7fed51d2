//! A disk of our own, really full or really read-only: an ext4 image on a loop device, below the store or below
//! the workspace. Only root can mount one; elsewhere this part is left out, and says so.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use super::crew;
use super::judge::{Before, Outcome, judge};
use super::operations::{Kind, OPERATIONS, Operation, Scene};
use super::stage::Stage;
use super::table::Row;
use super::{Proof, Result};
use crate::tools::command;

const PART: &str = "disks";
const IMAGE_BYTES: u64 = 12 << 20;

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug)]
enum Ailment {
    /// So many bytes are free.
    Full(u64),
    ReadOnly,
}

/// Which of our folders is on it.
type Place = &'static str;

struct Point {
    operation: &'static Operation,
    place: Place,
    ailment: Ailment,
}

impl Point {
    fn name(&self) -> String {
        let ailment = match self.ailment {
            Ailment::Full(free) => format!("with {free} bytes free"),
            Ailment::ReadOnly => "read-only".to_owned(),
        };
        format!("{} {} {ailment}", self.operation.name, self.place)
    }
}

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    if let Err(error) = Disk::mount(&std::env::temp_dir().join("biv-prove-disk")) {
        println!("   left out: no disk can be mounted here ({error})");
        return Ok(Vec::new());
    }
    let is_wanted = |it: &&Operation| {
        let all = ["create", "rollback", "undo", "hook", "gc", "note", "spool", "migrate"];
        all[..proof.size(4, all.len())].contains(&it.name)
    };
    let mut ailments: Vec<Ailment> = vec![Ailment::ReadOnly];
    ailments.extend((0..proof.size(4, 32)).map(|n| Ailment::Full(n * proof.size(16_384, 4_096))));
    let mut points = Vec::new();
    for operation in OPERATIONS.iter().filter(is_wanted) {
        // Most leave the workspace alone, whatever its disk is like.
        let changes = matches!(operation.kind, Kind::Restores | Kind::RestoresOnce);
        let places: &[Place] = if changes { &["home", "project"] } else { &["home"] };
        for place in places {
            points.extend(ailments.iter().map(|it| Point { operation, place, ailment: *it }));
        }
    }
    points.retain(|point| proof.wants(&point.name()));
    let refused = Mutex::new(Vec::new());
    let found = crew::each(
        &points,
        || (),
        |(), point| {
            trial(proof, point, || refused.lock().expect("nobody panics with it").push(point.place))
        },
    );
    let refused = refused.into_inner().expect("nobody panics with it");
    let broken = |place: Place| {
        let here = found.iter().filter(|(at, _)| points[*at].place == place);
        here.map(|(at, what)| proof.finding(PART, &points[*at].name(), what)).collect()
    };
    let row = |place: Place, what: &str| {
        let n_points = points.iter().filter(|point| point.place == place).count();
        let n_refused = refused.iter().filter(|it| **it == place).count();
        Row {
            what: format!("a loop device below {what}, full or read-only"),
            n_tried: n_refused as u64,
            broken: broken(place),
            figures: format!("{} more had room enough", n_points - n_refused),
        }
    };
    Ok(vec![row("home", "the store"), row("project", "the workspace")])
}

/// `refuse` is called where the operation felt it. A hook that did puts aside what it was told, or says that it cannot.
fn trial(proof: &Proof, point: &Point, refuse: impl FnOnce()) -> std::result::Result<(), String> {
    let (stage, disk, scene) = set_up(proof, point).map_err(|error| error.to_string())?;
    let before = Before::look(&stage);
    // Where no checkpoint looks.
    let filler =
        disk.folder.join(if point.place == "project" { "target/filler" } else { "filler" });
    match point.ailment {
        Ailment::Full(free) => fill(&filler, free).map_err(|error| error.to_string())?,
        Ailment::ReadOnly => disk.remount("ro").map_err(|error| error.to_string())?,
    }
    let started = Instant::now();
    let run = stage.env.run_command(&mut point.operation.command(&stage, &[]));
    let outcome = Outcome { run, time: started.elapsed(), lived: true };
    match point.ailment {
        Ailment::Full(_) => fs::remove_file(&filler).map_err(|error| error.to_string())?,
        Ailment::ReadOnly => disk.remount("rw").map_err(|error| error.to_string())?,
    }
    let n_aside = fs::read_dir(stage.env.store().join("spool")).map_or(0, Iterator::count);
    if n_aside > 0 || outcome.run.code != 0 || !outcome.run.stderr.is_empty() {
        refuse();
    }
    judge(point.operation, (&stage, &scene), &before, &outcome)
}

/// What is named last goes first: the disk before the folder that it is mounted in.
fn set_up(proof: &Proof, point: &Point) -> Result<(Stage, Disk, Scene)> {
    let mut disk = None;
    let stage = Stage::with(&proof.binary, |env| {
        disk = Some(Disk::mount(&env.root().join(point.place))?);
        Ok(())
    })?;
    let scene = point.operation.scene(&stage);
    Ok((stage, disk.ok_or("nothing was mounted")?, scene))
}

/// Takes all that is free, but for a little.
fn fill(path: &Path, free: u64) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let mut length = 0;
    for block in [65_536, 4_096, 512] {
        let zeroes = vec![0; block];
        while file.write_all(&zeroes).and_then(|()| file.sync_data()).is_ok() {
            length += block as u64;
        }
        file.set_len(length)?;
    }
    file.set_len(length.saturating_sub(free))?;
    file.sync_all()
}

/// A mounted image. Goes with it.
struct Disk {
    folder: PathBuf,
    image: PathBuf,
}

impl Disk {
    fn mount(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let disk = Self { folder: folder.to_owned(), image: folder.with_extension("image") };
        File::create(&disk.image)?.set_len(IMAGE_BYTES)?;
        quietly("mkfs.ext4", &["-q", "-m", "0", "-b", "4096", &disk.image.to_string_lossy()])?;
        quietly(
            "mount",
            &["-o", "loop", &disk.image.to_string_lossy(), &folder.to_string_lossy()],
        )?;
        fs::remove_dir(folder.join("lost+found"))?;
        Ok(disk)
    }

    fn remount(&self, how: &str) -> Result<()> {
        quietly("mount", &["-o", &format!("remount,{how}"), &self.folder.to_string_lossy()])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _not_mounted = quietly("umount", &["-l", &self.folder.to_string_lossy()]);
        let _gone_already = fs::remove_file(&self.image);
    }
}

fn quietly(program: &str, words: &[&str]) -> Result<()> {
    let output = command(program).args(words).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
        }
    }
}
