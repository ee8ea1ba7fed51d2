//! The same on a real file system: ext4 on a disk that writes down every block and every flush it is given. What a disk
//! has between two flushes it may lose, in any order. Needs root, a loop device and a few packages.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bivouac_testkit::TestEnv;
use tempfile::TempDir;

use super::cases::{Case, Told};
use super::check::{self, Facts, Promise, Untouched};
use crate::Result;
use crate::prove::dice::Dice;
use crate::prove::stage::folder;
use crate::prove::table::Row;
use crate::prove::{Proof, crew};
use crate::tools::{command, package, show};

/// A disk for nbdkit. Each record is a kind (0 a flush, 1 a block, 2 a block that is durable at once), a place and a
/// length, and the bytes.
const PLUGIN: &str = r#"
import nbdkit, os, struct
API_VERSION = 2
paths = {}
def config(key, value): paths[key] = value
def thread_model(): return nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS
def open(readonly):
    log = os.open(paths["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return (os.open(paths["disk"], os.O_RDWR), log)
def get_size(h): return os.stat(paths["disk"]).st_size
def can_flush(h): return True
def can_fua(h): return nbdkit.FUA_NATIVE
def pread(h, buf, offset, flags): os.preadv(h[0], [buf], offset)
def pwrite(h, buf, offset, flags):
    os.pwrite(h[0], buf, offset)
    kind = 2 if flags & nbdkit.FLAG_FUA else 1
    os.write(h[1], struct.pack("<BQQ", kind, offset, len(buf)) + bytes(buf))
def flush(h, flags): os.write(h[1], struct.pack("<BQQ", 0, 0, 0))
"#;

const SIZE: u64 = 48 << 20;

/// Which operations are tried here as well.
const NAMES: [&str; 6] = ["rollback", "undo", "init", "create", "hook", "gc"];

enum Block {
    Flush,
    Write {
        at: u64,
        bytes: Vec<u8>,
        is_durable: bool,
    },
    /// The command has come to its end.
    Said,
}

/// A disk in a file, and where it is mounted.
struct Device {
    folder: TempDir,
}

/// Says so where it cannot be had.
pub(super) fn run(proof: &Proof, cases: &[&Case]) -> Result<Vec<Row>> {
    let needed = ["nbdkit", "nbdkit-plugin-python", "libnbd-bin", "fuse3", "e2fsprogs"];
    if let Some(missing) = needed.into_iter().find(|name| !package(name)) {
        println!("left out: power loss on a recorded device, as there is no {missing}");
        return Ok(Vec::new());
    }
    if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        println!(
            "left out: power loss on a recorded device, as there is no fuse or no loop device"
        );
        return Ok(Vec::new());
    }
    let cases: Vec<&&Case> = cases.iter().filter(|case| NAMES.contains(&case.name)).collect();
    Ok(crew::rows(&cases, |case| tried(proof, case), |case, what| row(case, vec![what])))
}

fn row(case: &Case, broken: Vec<String>) -> Row {
    let what = format!("power lost on ext4 during {}", case.what);
    Row { what, n_tried: 0, broken, figures: String::new() }
}

fn tried(proof: &Proof, case: &Case) -> Result<Row> {
    let device = Device::new()?;
    let mounted = device.mount(&device.path("disk"))?;
    let mut env = TestEnv::new_in(&proof.binary.to_string_lossy(), &device.path("mount"));
    super::furnish(&mut env)?;
    (case.prepare)(&env);
    env.set_minute(200);
    let untouched = Untouched::of(&env);
    drop(mounted);
    fs::copy(device.path("disk"), device.path("start"))?;
    let blocks = device.record(case, &env)?;
    let after = device.facts("disk", case, &env)?;
    fs::copy(device.path("start"), device.path("disk"))?;
    let before = device.facts("disk", case, &env)?;
    let promise = Promise { before, after, untouched, n_restored: usize::MAX };

    let mut row = row(case, Vec::new());
    let said = blocks.iter().position(|it| matches!(it, Block::Said)).unwrap_or(blocks.len());
    for (at, variant) in drawn(&blocks, proof.seed) {
        device.lose(&blocks[..at], proof.seed ^ (at as u64) << 8, variant)?;
        let told = if at > said { Told::Done } else { Told::Nothing };
        row.n_tried += 1;
        let looked = crew::tried(|| {
            let _mounted = device.mount(&device.path("disk")).map_err(|error| error.to_string())?;
            env.set_minute(300);
            check::check(&env, case, &promise, told, proof.seed ^ at as u64)
        });
        if let Err(what) = looked {
            let what = format!("{} ext4 {at}-{variant}: {what}", case.name);
            row.broken.push(proof.finding("power", &format!("{} ext4", case.name), &what));
        }
    }
    let n_flushes = blocks.iter().filter(|it| matches!(it, Block::Flush)).count();
    row.figures = format!("{} blocks, {n_flushes} flushes", blocks.len() - n_flushes - 1);
    // Its folder is on a disk that is not mounted.
    device.mount(&device.path("disk")).map(|mounted| drop((env, mounted)))?;
    Ok(row)
}

/// At how many moments the power goes.
const N_CUTS: usize = 40;

/// Moments before a flush, at the end, and some between two flushes, each with what becomes of what was not flushed.
fn drawn(blocks: &[Block], seed: u64) -> Vec<(usize, u64)> {
    let is_border = |at: usize| matches!(blocks.get(at), Some(Block::Flush | Block::Said) | None);
    let moments = (0..=blocks.len()).filter(|at| is_border(*at) || at.is_multiple_of(5));
    let mut all: Vec<(usize, u64)> =
        moments.flat_map(|at| (0..4).map(move |it| (at, it))).collect();
    let mut dice = Dice::new(seed, 0);
    while all.len() > N_CUTS {
        all.remove(dice.below(all.len()));
    }
    all
}

impl Device {
    fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("biv-disk-").tempdir_in(folder())?;
        let device = Self { folder };
        fs::File::create(device.path("disk"))?.set_len(SIZE)?;
        show(command("mkfs.ext4").args(["-q", "-F"]).arg(device.path("disk")))?;
        fs::create_dir(device.path("mount"))?;
        fs::write(device.path("nbd"), "")?;
        fs::write(device.path("disk.py"), PLUGIN)?;
        Ok(device)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn mount(&self, disk: &Path) -> Result<Mounted> {
        let mut mount = command("mount");
        show(mount.args(["-t", "ext4", "-o", "loop"]).arg(disk).arg(self.path("mount")))?;
        Ok(Mounted(self.path("mount")))
    }

    fn facts(&self, disk: &str, case: &Case, env: &TestEnv) -> Result<Facts> {
        let _mounted = self.mount(&self.path(disk))?;
        Ok(Facts::of(env, case)?)
    }

    /// Runs the command on the disk that writes everything down.
    fn record(&self, case: &Case, env: &TestEnv) -> Result<Vec<Block>> {
        let log = self.path("log");
        let mut nbd = command("nbdfuse");
        nbd.arg(self.path("nbd")).args([
            "--command",
            "nbdkit",
            "-s",
            "--exit-with-parent",
            "python",
        ]);
        nbd.arg(self.path("disk.py")).arg(format!("disk={}", self.path("disk").display()));
        nbd.arg(format!("log={}", log.display())).stdin(Stdio::null());
        let served = Served { child: nbd.spawn()?, at: self.path("nbd") };
        for _ in 0..100 {
            if fs::metadata(&served.at)?.len() == SIZE {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        let mounted = self.mount(&served.at)?;
        let (mut command, input) = super::command(case, env);
        run_with(&mut command, input.as_bytes())?;
        // A record of a kind of its own: so far had it come when the command ended.
        let mut said = vec![3_u8];
        said.resize(17, 0);
        fs::File::options().append(true).open(&log)?.write_all(&said)?;
        drop(mounted);
        drop(served);
        blocks(&fs::read(log)?)
    }

    /// Makes the disk what it was, with all that was flushed, and some of what was written since.
    fn lose(&self, blocks: &[Block], seed: u64, variant: u64) -> Result<()> {
        use std::os::unix::fs::FileExt;
        fs::copy(self.path("start"), self.path("disk"))?;
        let disk = fs::File::options().write(true).open(self.path("disk"))?;
        let flushed = blocks.iter().rposition(|it| matches!(it, Block::Flush)).unwrap_or(0);
        let mut dice = Dice::new(seed, variant);
        for (at, block) in blocks.iter().enumerate() {
            let Block::Write { at: place, bytes, is_durable } = block else { continue };
            let is_kept = match variant {
                0 => true,
                1 => false,
                _ => dice.below(2) == 0,
            };
            if at < flushed || *is_durable || is_kept {
                disk.write_all_at(bytes, *place)?;
            }
        }
        Ok(())
    }
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _said_on_the_screen = show(command("umount").arg(&self.0));
    }
}

struct Served {
    child: Child,
    at: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _said_on_the_screen = show(command("fusermount3").arg("-u").arg(&self.at));
        let _ended = self.child.wait();
    }
}

fn run_with(command: &mut Command, input: &[u8]) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let _seen_enough = stdin.write_all(input);
    }
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn blocks(log: &[u8]) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut rest = log;
    while let Some((head, behind)) = rest.split_at_checked(17) {
        let number = |from: usize| {
            head[from..from + 8].iter().rev().fold(0, |all, it| all << 8 | u64::from(*it))
        };
        let (bytes, behind) = behind.split_at_checked(number(9) as usize).ok_or("a torn record")?;
        blocks.push(match head[0] {
            0 => Block::Flush,
            3 => Block::Said,
            kind => Block::Write { at: number(1), bytes: bytes.to_vec(), is_durable: kind == 2 },
        });
        rest = behind;
    }
    Ok(blocks)
}
