//! With a watcher alive, a checkpoint that a person asks for, and the one before a rollback, hold what inotify does not
//! tell of: writes through another name, through memory, by the kernel, and file systems that came or went.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use bivouac_testkit::{TestEnv, until};

use super::ground::{Ground, Outcome, Stop, World, ensure, need, quietly};
use super::mounts::Mount;
use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let lies: [(&'static str, Lie); 6] = [
        ("hard-link", hard_link),
        ("mapped", mapped),
        ("aio", aio),
        ("loop", loop_image),
        ("tmpfs", tmpfs),
        ("bind", bind),
    ];
    for (name, lie) in lies {
        for how in ["manual", "named", "safety"] {
            cases.push(case(format!("{name} {how}"), move |ground| found(ground, lie, how)));
        }
    }
    cases.push(case("unmounted", unmounted));
    cases.push(case("said", said));
    cases
}

/// Sets something up before the first checkpoint.
type Lie = fn(&World) -> Result<Changed, Stop>;

/// Is this what a file holds after the change?
type IsNew = Box<dyn Fn(&[u8]) -> bool>;

/// What is to change later, which file shows it, and how to tell from what a checkpoint holds of it.
struct Changed {
    change: Box<dyn FnOnce() -> Result<Option<Mount>, Stop>>,
    path: &'static str,
    is_new: IsNew,
    /// Goes last: a program or a file system that has the file open all the time.
    _holder: Holder,
}

impl Changed {
    fn new(
        path: &'static str,
        new: impl Into<Vec<u8>>,
        change: impl FnOnce() -> Result<Option<Mount>, Stop> + 'static,
    ) -> Self {
        let new = new.into();
        let is_new = Box::new(move |kept: &[u8]| kept == new);
        Self { change: Box::new(change), path, is_new, _holder: Holder::Nobody }
    }
}

/// Who has a file open.
enum Holder {
    Nobody,
    Program(Child),
    FileSystem { _mount: Mount },
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Self::Program(child) = self {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

struct Watcher<'w> {
    env: &'w TestEnv,
    child: Option<Child>,
}

impl<'w> Watcher<'w> {
    fn start(world: &'w World) -> Self {
        // Long enough that it does not save by itself while we look.
        let child = world.env.start_live(&["watch", "--interval", "600s"]);
        let watcher = Self { env: &world.env, child: Some(child) };
        until("the watcher", || {
            world
                .biv(&["watch", "--status", "--json"])
                .json()
                .is_ok_and(|it| it["watcher"].is_object())
        });
        watcher
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let _stopped = self.env.biv(&["watch", "--stop"]);
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

fn found(ground: &Ground<'_>, lie: Lie, how: &str) -> Outcome {
    let world = ground.world_on_disk()?;
    world.env.write("a", "1").write("deep/b", "1");
    let Changed { change, path, is_new, _holder } = lie(&world)?;
    let _watcher = Watcher::start(&world);
    world.biv(&["checkpoint", "create", "--name", "before"]).done()?;
    // The watcher knows by now that nothing changes.
    world.biv(&["checkpoint", "create", "--name", "again"]).done()?;
    let _mount = change()?;
    let saved = match how {
        "manual" => {
            world.biv(&["checkpoint", "create"]).done()?;
            world.checkpoints()?.last().cloned().unwrap_or_default()
        }
        "named" => {
            world.biv(&["checkpoint", "create", "--name", "after"]).done()?;
            "after".to_owned()
        }
        _ => {
            world.env.write("a", "2");
            world.biv(&["checkpoint", "rollback", "before", "--yes", "a"]).done()?;
            // The one that it took first.
            world.checkpoints()?.last().cloned().unwrap_or_default()
        }
    };
    let tree = world.restored(&saved)?;
    let kept = tree.get(path.as_bytes()).map(|it| it.2.as_slice());
    let holds = kept.is_some_and(is_new);
    ensure(holds || kept.is_none() && world.has_gap(&saved, path)?, || {
        let kept = kept.map(|it| String::from_utf8_lossy(&it[..it.len().min(40)]).into_owned());
        format!("`{path}` is not what was there: {kept:?}")
    })?;
    Ok(1)
}

/// A second name outside, made when the file is known already.
fn hard_link(world: &World) -> Result<Changed, Stop> {
    let (inside, outside) = (world.env.path("deep/b"), world.outside().join("other-name"));
    Ok(Changed::new("deep/b", "2", move || {
        fs::hard_link(inside, &outside)?;
        fs::write(outside, "2")?;
        Ok(None)
    }))
}

/// A program that has a file open from before the first checkpoint until after the last, and changes its first half.
fn held_open(world: &World, script: &str) -> Result<Changed, Stop> {
    need("python3", "python3")?;
    world.env.write("deep/data", vec![b'1'; 8_192]);
    let mut program = world.env.command("python3", world.env.root());
    program.arg("-c").arg(script).arg(world.env.path("deep/data"));
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdin = child.stdin.take().ok_or("it has no input")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("it has no output")?);
    let new = [vec![b'2'; 4_096], vec![b'1'; 4_096]].concat();
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    ensure(line == "ready\n", || "the program did not open the file".to_owned())?;
    let changed = Changed::new("deep/data", new, move || {
        stdin.write_all(b"go\n")?;
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        // As long as its input is open, the program waits.
        std::mem::forget(stdin);
        ensure(line == "done\n", || "the program did not write".to_owned())?;
        Ok(None)
    });
    Ok(Changed { _holder: Holder::Program(child), ..changed })
}

fn mapped(world: &World) -> Result<Changed, Stop> {
    held_open(
        world,
        r"
import mmap, sys
file = open(sys.argv[1], 'r+b')
view = mmap.mmap(file.fileno(), 0)
print('ready', flush=True)
sys.stdin.readline()
view[0:4096] = b'2' * 4096
view.flush()
print('done', flush=True)
sys.stdin.readline()
",
    )
}

/// A write that the kernel does on behalf of a program.
fn aio(world: &World) -> Result<Changed, Stop> {
    held_open(
        world,
        r"
import ctypes, os, platform, struct, sys
setup, submit, events = {'x86_64': (206, 209, 208), 'aarch64': (0, 2, 4)}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(sys.argv[1], os.O_RDWR)
context = ctypes.c_ulong(0)
assert libc.syscall(setup, 8, ctypes.byref(context)) == 0
body = ctypes.create_string_buffer(b'2' * 4096, 4096)
control = ctypes.create_string_buffer(struct.pack('<QIiHhIQQqQII', 0, 0, 0, 1, 0, file, ctypes.addressof(body), 4096, 0, 0, 0, 0), 64)
array = (ctypes.c_void_p * 1)(ctypes.addressof(control))
print('ready', flush=True)
sys.stdin.readline()
assert libc.syscall(submit, context, ctypes.c_long(1), array) == 1, ctypes.get_errno()
result = ctypes.create_string_buffer(32)
assert libc.syscall(events, context, ctypes.c_long(1), ctypes.c_long(1), result, None) == 1
assert struct.unpack('<QQqq', result.raw)[2] == 4096
print('done', flush=True)
sys.stdin.readline()
",
    )
}

/// A disk image in the workspace that is mounted elsewhere.
fn loop_image(world: &World) -> Result<Changed, Stop> {
    const LETTER: &[u8] = b"written through the loop device";
    let (image, place) = (world.env.path("deep/disk.img"), world.env.root().join("mounted"));
    fs::File::create(&image)?.set_len(1 << 20)?;
    need("mkfs.ext2", "e2fsprogs")?;
    quietly("mkfs.ext2", &["-q", &image.to_string_lossy()])?;
    let mount = Mount::loop_image(&image, &place)?;
    let changed = Changed::new("deep/disk.img", "", move || {
        fs::write(place.join("letter"), LETTER)?;
        quietly("sync", &["-f", &place.to_string_lossy()])?;
        Ok(None)
    });
    let is_new = |kept: &[u8]| kept.windows(LETTER.len()).any(|window| window == LETTER);
    Ok(Changed {
        is_new: Box::new(is_new),
        _holder: Holder::FileSystem { _mount: mount },
        ..changed
    })
}

fn tmpfs(world: &World) -> Result<Changed, Stop> {
    let place = world.env.path("deep");
    Ok(Changed::new("deep/b", "of the new file system", move || {
        let mount = Mount::tmpfs(&place)?;
        fs::write(place.join("b"), "of the new file system")?;
        Ok(Some(mount))
    }))
}

fn bind(world: &World) -> Result<Changed, Stop> {
    let (from, to) = (world.outside().join("tree"), world.env.path("deep"));
    fs::create_dir(&from)?;
    fs::write(from.join("b"), "3")?;
    Ok(Changed::new("deep/b", "3", move || Mount::bind(&from, &to).map(Some)))
}

/// A file system that was there at the first checkpoint is gone at the second: what it covered counts again.
fn unmounted(ground: &Ground<'_>) -> Outcome {
    let world = ground.world_on_disk()?;
    world.env.write("a", "1").write("deep/b", "below");
    let mount = Mount::tmpfs(&world.env.path("deep"))?;
    world.env.write("deep/b", "above");
    let _watcher = Watcher::start(&world);
    world.save("one")?;
    drop(mount);
    world.save("two")?;
    let tree = world.restored("two")?;
    let kept = tree.get(b"deep/b".as_slice()).map(|it| it.2.as_slice());
    ensure(kept == Some(b"below"), || "what the file system had covered is not saved".to_owned())?;
    Ok(1)
}

/// The watcher says that there are things it cannot see, and how often it looks at everything.
fn said(ground: &Ground<'_>) -> Outcome {
    let world = ground.world_on_disk()?;
    world.env.write("a", "1");
    fs::hard_link(world.env.path("a"), world.outside().join("other-name"))?;
    let _watcher = Watcher::start(&world);
    let status = world.biv(&["watch", "--status"]).ok()?.said().to_lowercase();
    let words = ["rescan", "full scan", "looks at everything", "scans everything", "every "];
    ensure(words.iter().any(|word| status.contains(word)), || {
        format!("nothing is said: {status}")
    })?;
    Ok(1)
}
