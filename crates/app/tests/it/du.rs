//! `biv du`

use crate::env;

#[test]
fn it_adds_up() {
    let env = env();
    env.write("a", "1")
        .write("noise", (0..200_000u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    env.biv(&["session", "new", "--name", "one"]).ok();
    env.biv(&["checkpoint", "create"]).ok();
    env.biv(&["session", "new", "--name", "two"]).ok();
    env.biv(&["checkpoint", "create", "two"]).ok();
    let usage = env.json("du");
    let on_disk: u64 = std::fs::read_dir(env.store().join("packs"))
        .unwrap()
        .map(|it| it.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(usage["pack_bytes"], on_disk);
    assert_eq!(usage["packs"], 2);
    // Both sessions share the file, so neither owns it.
    for session in usage["sessions"].as_array().unwrap() {
        assert!(session["own_bytes"].as_u64().unwrap() < 2_000, "{session}");
    }
    env.biv(&["checkpoint", "delete", "cp-001", "cp-002", "--yes"]).ok();
    let reclaimable = env.json("du")["reclaimable_bytes"].as_u64().unwrap();
    assert!(reclaimable > on_disk / 2, "{reclaimable} of {on_disk}");
    assert!(env.run("du").contains("packs"));
}
