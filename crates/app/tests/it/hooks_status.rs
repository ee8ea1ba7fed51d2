//! `biv hooks status`

use insta::assert_snapshot;

use crate::env;

#[test]
fn it_says_who_tells_us() {
    let env = env();
    env.biv(&["hooks", "install", "--agent", "gemini", "--yes"]).ok();
    let text = env.run("hooks status");
    let line = text.lines().find(|line| line.starts_with("gemini")).unwrap();
    assert_snapshot!(line, @"gemini       user     installed      [root]/home/.gemini/settings.json");
    let path = env.home().join(".gemini/settings.json");
    let old = std::fs::read_to_string(&path).unwrap().replace("60000", "1");
    std::fs::write(&path, old).unwrap();
    let states = env.json("hooks status");
    let gemini = states.as_array().unwrap().iter().find(|it| it["agent"] == "gemini").unwrap();
    assert_eq!((&gemini["installed"], &gemini["outdated"]), (&false.into(), &true.into()));
}
