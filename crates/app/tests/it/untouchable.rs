//! Paths the system does not let us change: each is left alone and told, and the rest is restored

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use bivouac_testkit::{TestEnv, left_out};
use insta::assert_snapshot;

use crate::env;

/// Another user of the machine: `nobody`.
const OTHER: u32 = 65_534;

/// Runs a script in which mounts can be made that nobody else sees. `None` where the kernel does not let
/// us, which is then said.
fn with_mounts(env: &TestEnv, script: &str) -> Option<String> {
    let mut command = env.command("unshare", &env.work());
    command.env("BIV", env!("CARGO_BIN_EXE_biv"));
    command.env("BIV_STORE_AUTO_GC", "false").env("BIV_STORE_MIN_FREE", "0");
    let script = format!("set -e; {script}");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let may_not = ["unshare: ", "mount: "].iter().any(|word| text.starts_with(word));
    if may_not {
        left_out("this kernel does not let us mount anything");
    }
    (!may_not).then_some(text)
}

/// The lines that name a path, and what the files hold in the end.
fn essence(text: &str) -> String {
    let is_said = |line: &&str| {
        ["left alone", "exit", "=", "error", "hint"].iter().any(|it| line.trim().starts_with(it))
    };
    text.lines().filter(is_said).map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_on_a_mount_are_left_alone_and_the_rest_comes_back() {
    let env = env();
    env.write("a", "1").write("z", "1").folder("mnt").write("single", "1");
    let script = "mount -t tmpfs none mnt; mkdir mnt/d; echo 1 > mnt/f; echo 1 > mnt/d/g
        echo 1 > ../outside; mount --bind ../outside single
        $BIV checkpoint create > /dev/null
        echo 2 > a; echo 2 > mnt/f; rm -r mnt/d; echo new > mnt/later; rm z; echo 2 > single
        $BIV checkpoint rollback cp-001 --yes || echo exit $?
        echo = a $(cat a) z $(cat z) single $(cat single) f $(cat mnt/f) later $(cat mnt/later)
        $BIV undo --yes || echo exit $?; echo = a $(cat a); ls z || echo = z is gone
        $BIV redo --yes || echo exit $?; echo = a $(cat a) z $(cat z)
        echo = left $(ls -A | grep -c staging)";
    let Some(text) = with_mounts(&env, script) else { return };
    assert_snapshot!(essence(&text), @"
    left alone: mnt/later (on another mount)
    left alone: mnt/d (on another mount)
    left alone: mnt/d/g (on another mount)
    left alone: mnt/f (on another mount)
    left alone: single (on another mount)
    exit 3
    = a 1 z 1 single 2 f 2 later new
    = a 2
    = z is gone
    = a 1 z 1
    = left 0
    ");
}

#[test]
fn a_mount_point_that_came_later_stays_with_all_that_is_in_it() {
    let env = env();
    env.write("a", "1");
    let script = "$BIV checkpoint create > /dev/null
        echo 2 > a; mkdir later; mount -t tmpfs none later; echo x > later/f; mkdir ro ro/d
        mount --bind ro ro; mount -o remount,bind,ro ro
        $BIV checkpoint rollback cp-001 --yes || echo exit $?
        echo = a $(cat a) f $(cat later/f)
        umount later; umount ro; $BIV checkpoint rollback cp-001 --yes || echo exit $?
        echo = left $(ls -A)";
    let Some(text) = with_mounts(&env, script) else { return };
    assert_snapshot!(essence(&text), @"
    left alone: later/f (on another mount)
    left alone: ro/d (on another mount)
    left alone: ro (on another mount)
    left alone: later (on another mount)
    exit 3
    = a 1 f x
    = left a
    ");
}

#[test]
fn what_is_mounted_over_a_folder_keeps_its_mode_and_its_empty_folders() {
    let env = env();
    env.write("a", "1").folder("m");
    let script = "$BIV checkpoint create > /dev/null
        echo 2 > a; mount -t tmpfs -o mode=1777 none m; mkdir -p m/empty/dir
        $BIV checkpoint rollback cp-001 --yes || echo exit $?
        echo = a $(cat a) m $(stat -c %a m) $(find m | sort)";
    let Some(text) = with_mounts(&env, script) else { return };
    assert_snapshot!(essence(&text), @"
    left alone: m/empty/dir (on another mount)
    left alone: m/empty (on another mount)
    left alone: m (on another mount)
    exit 3
    = a 1 m 1777 m m/empty m/empty/dir
    ");
}

/// Takes the flag away again, whatever happens: nothing could remove the folder otherwise.
struct Flagged<'e>(&'e TestEnv, &'static str, &'static str);

impl Flagged<'_> {
    fn set<'e>(env: &'e TestEnv, flag: &'static str, path: &'static str) -> Option<Flagged<'e>> {
        let flagged = Flagged(env, flag, path);
        flagged.chattr('+').then_some(flagged)
    }

    fn chattr(&self, sign: char) -> bool {
        let Self(env, flag, path) = self;
        let mut command = env.command("chattr", &env.work());
        command.args([&format!("{sign}{flag}"), *path]);
        command.output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for Flagged<'_> {
    fn drop(&mut self) {
        self.chattr('-');
    }
}

#[test]
fn immutable_and_append_only_paths_are_left_alone_and_the_rest_comes_back() {
    let env = env();
    env.write("a", "1")
        .write("fixed", "1")
        .write("log", "1")
        .write("mode", "1")
        .mode("mode", 0o600);
    env.write("closed/old", "1").write("closed/same", "1").write("b/c", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").write("fixed", "2").write("log", "2").mode("mode", 0o644);
    env.remove("closed/old").write("closed/later", "2").remove("b").write("later", "2");
    let flags = [("i", "fixed"), ("a", "log"), ("i", "closed"), ("i", "mode"), ("i", "later")];
    let flags: Option<Vec<Flagged<'_>>> =
        flags.into_iter().map(|(flag, path)| Flagged::set(&env, flag, path)).collect();
    let Some(flags) = flags else {
        return left_out("`chattr` cannot set flags here");
    };
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    exit 3
    Rolled back to cp-20260121-001 in part: 2 files written, 0 removed
      left alone: later (not permitted: immutable, append-only or another user's)
      left alone: closed/later (not permitted: immutable, append-only or another user's)
      left alone: closed/old (not permitted: immutable, append-only or another user's)
      left alone: fixed (not permitted: immutable, append-only or another user's)
      left alone: log (not permitted: immutable, append-only or another user's)
      left alone: mode (not permitted: immutable, append-only or another user's)
    Everything as it was before is in cp-20260121-002
    note: 6 paths left alone; once nothing stands in the way, repeat the rollback to restore them
    ");
    assert_eq!((env.read("a").as_str(), env.read("b/c").as_str()), ("1", "1"));
    assert_eq!((env.read("fixed").as_str(), env.read("log").as_str()), ("2", "2"));
    assert_snapshot!(env.run("undo --yes"), @"
    Took back the last rollback: 1 file written, 1 removed
    Everything as it was before is in cp-20260121-003
    ");
    assert_eq!((env.read("a").as_str(), env.exists("b")), ("2", false));
    env.biv(&["redo", "--yes"]).ok();
    assert_eq!((env.read("a").as_str(), env.read("b/c").as_str()), ("1", "1"));
    // Once nothing protects them, the rest follows.
    drop(flags);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!((env.read("fixed").as_str(), env.read("closed/old").as_str()), ("1", "1"));
    assert!(!env.exists("later") && !env.exists("closed/later"));
}

#[test]
fn a_rollback_that_could_change_nothing_says_so() {
    let env = env();
    env.write("a", "1").biv(&["checkpoint", "create"]).ok();
    env.write("a", "2");
    let Some(_fixed) = Flagged::set(&env, "i", "a") else {
        return left_out("this file system has no immutable files");
    };
    assert_snapshot!(env.run("checkpoint rollback cp-001 --yes"), @"
    exit 3
    The rollback changed no file
      left alone: a (not permitted: immutable, append-only or another user's)
    Everything as it was before is in cp-20260121-002
    note: 1 path left alone; once nothing stands in the way, repeat the rollback to restore it
    ");
}

#[test]
fn a_folder_that_cannot_make_way_for_a_file_keeps_what_is_in_it() {
    let env = env();
    env.write("a", "1").write("closed/x", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("a", "2").remove("closed/x").write("closed/x/in/deep", "2").write("closed/x/y", "2");
    env.mode("closed/x/in", 0o750);
    let before = env.tree();
    let Some(flag) = Flagged::set(&env, "i", "closed") else {
        return left_out("`chattr` cannot set flags here");
    };
    let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_eq!(rollback.code, 3, "{}", rollback.stdout);
    assert!(rollback.stdout.contains("left alone: closed/x ("), "{}", rollback.stdout);
    assert_eq!(env.read("a"), "1");
    env.write("a", "2");
    assert_eq!(env.tree(), before);
    drop(flag);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("closed/x"), "1");
}

#[test]
fn a_workspace_whose_top_cannot_be_changed_fails_once_and_is_left_as_it_was() {
    let env = env();
    env.write("d/a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("d/a", "2");
    let Some(flag) = Flagged::set(&env, "i", ".") else {
        return left_out("`chattr` cannot set flags here");
    };
    let rollback = env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_eq!(rollback.code, 1);
    assert!(rollback.stderr.contains("everything was put back"), "{}", rollback.stderr);
    let status = env.biv(&["status"]).ok();
    assert!(!status.stderr.contains("interrupted"), "{}", status.stderr);
    drop(flag);
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("d/a"), "1");
}

/// Runs the binary as the other user, to whom workspace and home belong.
fn as_other(env: &TestEnv, words: &[&str]) -> bivouac_testkit::Run {
    let ids = [format!("--reuid={OTHER}"), format!("--regid={OTHER}"), "--clear-groups".into()];
    let before: Vec<String> = ["setpriv".to_owned()].into_iter().chain(ids).collect();
    env.run_command(&mut env.biv_under(&before, words))
}

fn give(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
}

#[test]
fn what_belongs_to_others_is_left_alone_and_the_rest_comes_back() {
    let env = env();
    if !fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0) {
        return left_out("only root can act as two users");
    }
    fs::set_permissions(env.root(), fs::Permissions::from_mode(0o755)).unwrap();
    give(&env.work());
    give(&env.home());
    if as_other(&env, &["--version"]).code != 0 {
        return left_out("the other user cannot run the binary");
    }
    env.write("a", "1").write("theirs/f", "1").write("sticky/f", "1").mode("sticky", 0o1777);
    for path in ["a", "theirs", "theirs/f", "sticky"] {
        give(&env.path(path));
    }
    as_other(&env, &["checkpoint", "create"]).ok();
    env.write("a", "2").write("theirs/f", "2").write("sticky/f", "2");
    chown(env.path("theirs"), Some(0), Some(0)).unwrap();
    chown(env.path("sticky"), Some(0), Some(0)).unwrap();
    let rollback = as_other(&env, &["checkpoint", "rollback", "cp-001", "--yes"]);
    assert_snapshot!(rollback.text(), @"
    exit 3
    Rolled back to cp-20260121-001 in part: 1 file written, 0 removed
      left alone: sticky/f (not permitted: immutable, append-only or another user's)
      left alone: theirs/f (no permission to change it)
    Everything as it was before is in cp-20260121-002
    note: 2 paths left alone; once nothing stands in the way, repeat the rollback to restore them
    ");
    assert_eq!((env.read("a").as_str(), env.read("theirs/f").as_str()), ("1", "2"));
    as_other(&env, &["undo", "--yes"]).ok();
    assert_eq!(env.read("a"), "2");
}
