//! Several ways forward.

use insta::assert_snapshot;
use serde_json::json;

use crate::env;

#[test]
fn options_keep_what_was_said_about_each() {
    let env = env();
    assert_snapshot!(env.run("fork-point open \"Feature X\" --option \"A: Server-side approach\" --pro \"Better SEO\" --con \"More load\" --files api/route.ts,lib/ --option \"B: Client-side approach\" --con \"No SEO\" --needed-from Architect"), @"
    Recorded fork_point.opened (feature-x-Feature X)
    note: opened session task-00000001
    ");
    let options = env.json("fork-point list")[0]["options"].clone();
    assert_eq!(options[0]["pros"], json!(["Better SEO"]));
    assert_eq!(options[0]["files"], json!(["api/route.ts", "lib/"]));
    assert_eq!(options[1]["cons"], json!(["No SEO"]));
    assert!(env.run("rehydrate").contains("Get a decision from Architect on feature-x Feature X."));
    assert_snapshot!(env.run("fork-point decide \"Feature X\" --option C"), @"
    exit 1
    error: there is no option `C`
    hint: the options are A, B
    ");
    assert_snapshot!(env.run("fork-point decide feature-x --option a --why \"SEO matters\""), @"Recorded fork_point.decided (feature-x-Feature X: A)");
    assert_snapshot!(env.run("fork-point list"), @"
    ID         What       Status      About
    feature-x  Feature X  decided: A  A: Server-side approach; B: Client-side approach · SEO matters
    ");
    assert_snapshot!(env.run("fork-point open Y --option server"), @"
    exit 2
    error: invalid value 'server' for '--option <LETTER: TITLE>': an option is written as `A: what it is`, not `server`

    For more information, try '--help'.
    ");
}
