//! Time, memory and disk.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::peers::{Biv, Git, Peer};
use super::table::Row;
use super::workspace::Workspace;
use crate::Result;

/// What one command took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) time: Duration,
    /// The most memory it held; 0 where nobody looked.
    pub(super) peak_bytes: u64,
    /// What is on disk afterwards, for rows about that.
    pub(super) disk_bytes: u64,
    /// Did a restore give back the very files?
    pub(super) is_exact: bool,
}

impl Measured {
    fn time(time: Duration) -> Self {
        Self { time, peak_bytes: 0, disk_bytes: 0, is_exact: true }
    }
}

pub(super) fn clock(act: impl FnOnce() -> Result<()>) -> Result<Measured> {
    let started = Instant::now();
    act()?;
    Ok(Measured::time(started.elapsed()))
}

/// Runs a command to its end, watching its memory. Answers what it wrote.
pub(super) fn run_measured(command: &mut Command) -> Result<(String, Measured)> {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.as_mut().map(|pipe| pipe.read_to_string(&mut text));
        text
    });
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.as_mut().map(|pipe| pipe.read_to_string(&mut text));
        text
    });
    let mut peak_bytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_bytes = peak(&status_file).unwrap_or(peak_bytes);
        std::thread::sleep(Duration::from_micros(300));
    };
    let measured = Measured { peak_bytes, ..Measured::time(started.elapsed()) };
    let text = reader.join().unwrap_or_default();
    if !status.success() {
        return Err(format!("{command:?}: {status}: {}", errors.join().unwrap_or_default()).into());
    }
    Ok((text, measured))
}

/// The high-water mark only rises, so the last look is the peak, near enough.
fn peak(status_file: &str) -> Option<u64> {
    let text = fs::read_to_string(status_file).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

pub(super) fn median(mut all: Vec<Measured>) -> Option<Measured> {
    all.sort_by_key(|it| it.time);
    let peak_bytes = all.iter().map(|it| it.peak_bytes).max().unwrap_or(0);
    all.get(all.len() / 2).map(|middle| Measured { peak_bytes, ..*middle })
}

fn disk_use(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        total += if meta.is_dir() { disk_use(&entry.path())? } else { meta.len() };
    }
    Ok(total)
}

/// What takes longer to measure than a few rounds.
pub(super) fn more(folder: &TempDir, source: &Path, biv: &Path) -> Result<Vec<Row>> {
    Ok(vec![
        hundred_checkpoints(folder, source, biv)?,
        thousandth_checkpoint(folder, biv)?,
        large_file(folder, biv)?,
        start_up(folder, biv)?,
    ])
}

/// Disk use after a hundred checkpoints of ten edits each, everyone's own housekeeping done.
fn hundred_checkpoints(folder: &TempDir, source: &Path, binary: &Path) -> Result<Row> {
    let mut row =
        Row::new("disk after 100 checkpoints and gc", vec!["biv".into(), "shadow git".into()]);
    for n in 0..row.cells.len() {
        let base = folder.path().join(format!("hundred-{n}"));
        let (work, store) = (base.join("work"), base.join("store"));
        let mut workspace = Workspace::copy(source, &work)?;
        let biv = Biv::new(&work, &store, binary);
        let git = Git::new(&work, &store);
        let peer: &dyn Peer = if n == 0 { &biv } else { &git };
        peer.prepare()?;
        peer.save()?;
        for round in 0..100 {
            workspace.edit(10, round)?;
            peer.save()?;
        }
        let tidy = if n == 0 { &mut biv.command(&["gc"]) } else { &mut git.command(&["gc", "-q"]) };
        let measured = run_measured(tidy)?.1;
        row.cells[n] = Some(Measured { disk_bytes: disk_use(&store)?, ..measured });
        fs::remove_dir_all(&base)?;
    }
    Ok(row)
}

/// The cost of a checkpoint does not grow with how many there are.
fn thousandth_checkpoint(folder: &TempDir, binary: &Path) -> Result<Row> {
    let base = folder.path().join("thousand");
    let (work, store) = (base.join("work"), base.join("store"));
    Workspace::make(&work, 1_000)?;
    let biv = Biv::new(&work, &store, binary);
    biv.prepare()?;
    let mut times = Vec::new();
    for n in 0..1_005 {
        fs::write(work.join("counter"), n.to_string())?;
        times.push(biv.save()?.measured);
    }
    let mut row = Row::new(
        "checkpoint number 1,000 beside number 10",
        vec!["biv".into(), "number 10".into()],
    );
    row.cells = vec![median(times[995..].to_vec()), median(times[5..15].to_vec())];
    Ok(row)
}

/// Memory for one very large file, beside that for a small one.
fn large_file(folder: &TempDir, binary: &Path) -> Result<Row> {
    let mut row =
        Row::new("first checkpoint of one 2 GB file", vec!["biv".into(), "biv, 1 KB file".into()]);
    for (n, size) in [2_000_000_000u64, 1_000].into_iter().enumerate() {
        let base = folder.path().join(format!("large-{n}"));
        let (work, store) = (base.join("work"), base.join("store"));
        fs::create_dir_all(&work)?;
        write_noise(&work.join("large.bin"), size)?;
        let biv = Biv::new(&work, &store, binary);
        let mut save = biv.command(&["checkpoint", "create"]);
        row.cells[n] = Some(run_measured(save.env("BIV_CHECKPOINT_MAX_FILE_SIZE", "4GB"))?.1);
        fs::remove_dir_all(&base)?;
    }
    Ok(row)
}

fn write_noise(path: &Path, size: u64) -> Result<()> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut block = vec![0u8; 1 << 20];
    let mut file = fs::File::create(path)?;
    let mut left = size;
    while left > 0 {
        for word in block.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let length = left.min(block.len() as u64) as usize;
        std::io::Write::write_all(&mut file, &block[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn start_up(folder: &TempDir, binary: &Path) -> Result<Row> {
    let biv = Biv::new(folder.path(), &folder.path().join("none"), binary);
    let mut times = Vec::new();
    for _ in 0..30 {
        times.push(clock(|| {
            let status = biv.command(&["--version"]).stdout(Stdio::null()).status()?;
            if status.success() { Ok(()) } else { Err("biv --version failed".into()) }
        })?);
    }
    let mut row = Row::new("`biv --version`", vec!["biv".into()]);
    row.cells = vec![median(times)];
    Ok(row)
}
