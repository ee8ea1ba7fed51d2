//! A disk that is really full, and one that cannot be written

use std::fs;

use bivouac_testkit::TestEnv;

use crate::env;

/// Runs a script with a small file system of its own at `small/`. `None` where the kernel does not let
/// us make one, which is then said.
fn on_small_disk(env: &TestEnv, size: &str, script: &str) -> Option<String> {
    fs::create_dir_all(env.root().join("small")).unwrap();
    let script = format!("set -e; mount -t tmpfs -o size={size} none small; {script}");
    let mut command = env.command("unshare", env.root());
    let binary = env!("CARGO_BIN_EXE_biv");
    command.env("BIV", binary).env("BIV_STORE_AUTO_GC", "false").env("BIV_STORE_MIN_FREE", "0");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let may_not = ["unshare: ", "mount: "].iter().any(|word| text.starts_with(word));
    (!may_not).then_some(text)
}

#[test]
fn a_full_store_is_told_and_nothing_is_lost() {
    let env = env();
    env.write("a", "1");
    let noise: Vec<u8> =
        (0..1_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let script = "cd project; export BIV_STORE=../small/store
        $BIV checkpoint create >/dev/null; cp ../noise big
        $BIV checkpoint create || echo exit $?
        rm big; echo 2 > a; $BIV checkpoint rollback cp-001 --yes >/dev/null; cat a
        $BIV verify; ls ../small/store/packs | grep -c tmp || true";
    fs::write(env.root().join("noise"), noise).unwrap();
    let Some(text) = on_small_disk(&env, "2m", script) else {
        return bivouac_testkit::left_out("this kernel does not let us mount a small disk");
    };
    assert!(text.contains("exit 1"), "{text}");
    assert!(text.contains("hint: free some disk space, or run `biv gc`"), "{text}");
    assert!(text.contains("All is as it was written"), "{text}");
    assert!(
        text.trim_end().ends_with('0') || text.contains("\n0\n"),
        "a temporary pack was left: {text}"
    );
}

#[test]
fn a_full_workspace_leaves_everything_as_it_was() {
    let env = env();
    let script = "mkdir small/project; cd small/project; export BIV_STORE=../../store
        head -c 600000 /dev/zero | tr '\\0' 'a' > big; echo 1 > a; $BIV checkpoint create >/dev/null
        rm big; echo 2 > a; head -c 900000 /dev/zero > filler
        $BIV checkpoint rollback cp-001 a big --yes || echo exit $?
        cat a; ls -A; rm filler; $BIV checkpoint rollback cp-001 --yes; cat a; wc -c < big";
    let Some(text) = on_small_disk(&env, "1m", script) else {
        return bivouac_testkit::left_out("this kernel does not let us mount a small disk");
    };
    assert!(
        text.contains("error: the restore failed and everything was put back as it was"),
        "{text}"
    );
    assert!(text.contains("exit 1\n2\na\nfiller\n"), "{text}");
    assert!(text.contains("\n1\n600000\n"), "{text}");
}

#[test]
fn a_read_only_store_can_be_read() {
    let env = env();
    env.write("a", "1");
    let script = "cd project; export BIV_STORE=../small/store
        $BIV checkpoint create -m kept >/dev/null; mount -o remount,ro ../small
        $BIV checkpoint list; echo 2 > a; $BIV checkpoint diff cp-001
        $BIV checkpoint restore cp-001 --into ../out; cat ../out/a; $BIV verify
        $BIV checkpoint create || echo exit $?";
    let Some(text) = on_small_disk(&env, "4m", script) else {
        return bivouac_testkit::left_out("this kernel does not let us mount a small disk");
    };
    assert!(text.contains("kept") && text.contains("M a (+1, -1)"), "{text}");
    assert!(text.contains("All is as it was written"), "{text}");
    assert!(
        text.contains("error: the store is read-only") || text.contains("the store is read-only"),
        "{text}"
    );
    assert!(text.contains("exit 1"), "{text}");
}

#[test]
fn a_command_outlives_a_full_store() {
    let env = env();
    env.write("a", "1");
    let noise: Vec<u8> =
        (0..1_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    fs::write(env.root().join("noise"), noise).unwrap();
    let script = "cd project; export BIV_STORE=../small/store
        $BIV checkpoint create > /dev/null
        $BIV run --interval 1s -- sh -c 'cp ../noise big; sleep 2.5; exit 5' || echo exit $?
        rm big; $BIV checkpoint create > /dev/null; $BIV verify
        for it in $($BIV session list | grep -o 'task-[0-9a-z]*'); do $BIV session log $it; done";
    let Some(text) = on_small_disk(&env, "2m", script) else {
        return bivouac_testkit::left_out("this kernel does not let us mount a small disk");
    };
    assert!(text.contains("exit 5"), "{text}");
    assert!(text.contains("failed: error: "), "{text}");
    assert!(text.contains("checkpoint failed: "), "{text}");
    assert!(text.contains("All is as it was written"), "{text}");
}
