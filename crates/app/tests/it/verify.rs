//! `biv verify`

use std::path::PathBuf;

use bivouac_testkit::TestEnv;
use insta::assert_snapshot;

use crate::env;

#[test]
fn a_sound_store_is_said_to_be() {
    let env = env();
    assert_snapshot!(env.run("verify"), @"
    Checked 0 events, 0 packs with 0 objects, 0 checkpoints
    All is as it was written
    ");
    env.write("a", "1").link("l", "a").write("big", vec![3u8; 2_500_000]);
    env.biv(&["checkpoint", "create"]).ok();
    assert_snapshot!(env.run("verify"), @"
    Checked 2 events, 1 pack with 8 objects, 1 checkpoint
    All is as it was written
    ");
    assert_eq!(env.json("verify")["sound"], true);
}

#[test]
fn a_flipped_bit_in_a_pack_names_what_it_hit() {
    let env = env();
    env.write("good", "1");
    env.biv(&["checkpoint", "create"]).ok();
    env.write("bad", "some content that will be hit");
    env.biv(&["checkpoint", "create"]).ok();
    let pack = std::fs::read_dir(env.store().join("packs"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .max()
        .unwrap();
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(4).position(|part| part == b"will").unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(&pack, bytes).unwrap();
    assert_snapshot!(env.run("verify"), @"
    exit 1
    Checked 3 events, 2 packs with 6 objects, 2 checkpoints
      pack `[root]/home/.local/share/bivouac/packs/id-1.pack` is damaged at byte 24: the checksum does not match
      1 object cannot be found where the index says
      checkpoint cp-20260121-002 has lost 1 of its objects:
        bad
    error: damage was found
    hint: `biv reconcile` brings back what can be; damaged files are kept aside, never deleted
    ");
    let report = env.biv(&["verify", "--json"]);
    assert_eq!(report.code, 1);
    // What is damaged is refused, never restored; what is not is still there.
    env.remove("bad");
    assert_snapshot!(env.run("checkpoint rollback cp-002 --yes"), @"
    exit 1
    error: the restore failed and everything was put back as it was
    cause: pack `[root]/home/.local/share/bivouac/packs/id-1.pack` is damaged at byte 24: the checksum does not match
    hint: run `biv verify` to see which checkpoints are affected
    ");
    assert!(!env.exists("bad"));
    env.write("good", "2");
    env.biv(&["checkpoint", "rollback", "cp-001", "--yes"]).ok();
    assert_eq!(env.read("good"), "1");
}

#[test]
fn an_edited_table_is_noticed() {
    let env = env();
    env.write("a", "1");
    env.biv(&["checkpoint", "create", "-m", "true"]).ok();
    let sql =
        "UPDATE session_checkpoints SET message = 'false'; UPDATE sessions SET status = 'failed'";
    env.sql(sql).unwrap();
    assert_snapshot!(env.run("verify"), @"
    exit 1
    Checked 2 events, 1 pack with 4 objects, 1 checkpoint
      table `sessions` is not what the events say
      table `session_checkpoints` is not what the events say
    error: damage was found
    hint: `biv reconcile` brings back what can be; damaged files are kept aside, never deleted
    ");
}

/// Where a note of a hook would wait, in a store that has a checkpoint.
fn place_of_note(env: &TestEnv) -> PathBuf {
    env.write("a", "1");
    env.biv(&["checkpoint", "create"]).ok();
    let spool = env.store().join("spool");
    std::fs::create_dir_all(&spool).unwrap();
    spool.join("01990000-0000-7000-8000-000000000001-0123456789abcdef.hook")
}

/// It looks before anything is written, and what waits to be taken in is looked at as well.
#[test]
fn a_damaged_note_of_a_hook_is_named() {
    let env = env();
    let note = place_of_note(&env);
    std::fs::write(&note, "{}").unwrap();
    let verify = env.biv(&["verify"]);
    assert_eq!(verify.code, 1);
    let told = format!("a hook's note is damaged: `{}`", note.display());
    assert!(verify.stdout.contains(&told), "{}", verify.stdout);
    assert!(note.exists());
    env.biv(&["reconcile"]).ok();
    env.biv(&["verify"]).ok();
    assert!(!note.exists());
}

#[test]
fn a_link_in_place_of_a_hooks_note_is_set_aside_unread() {
    let env = env();
    let note = place_of_note(&env);
    let outside = env.root().join("outside");
    std::fs::write(&outside, "{}").unwrap();
    std::os::unix::fs::symlink(&outside, &note).unwrap();
    let verify = env.biv(&["verify"]);
    assert!(verify.stdout.contains("a hook's note is damaged"), "{}", verify.stdout);
    env.biv(&["checkpoint", "create"]).ok();
    assert!(note.symlink_metadata().is_err());
    assert_eq!(std::fs::read(outside).unwrap(), b"{}");
    env.biv(&["verify"]).ok();
}
