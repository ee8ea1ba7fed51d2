//! Which programs are run for a name

use serde_json::Value;

use crate::git_env;
use crate::untrusted_git::{marks, script, trap};

#[test]
fn a_workspace_brings_no_programs_of_its_own() {
    for path in [".:", ":", "bin:", "./bin:"] {
        let mut env = git_env();
        env.write("a", "1").write("Cargo.toml", "").write("package.json", "{}");
        env.git(&["add", "."]);
        env.git(&["commit", "-qm", "one"]);
        for name in [
            "git",
            "tmux",
            "codex",
            "claude",
            "node",
            "npm",
            "cargo",
            "rustc",
            "sh",
            "made-up-agent",
        ] {
            script(&env.path(name), &trap(&env, name));
            script(&env.path("bin").join(name), &trap(&env, name));
        }
        env.set("PATH", format!("{path}{}", std::env::var("PATH").unwrap()));
        env.write("a", "2");
        env.run("session new --agent codex --name work");
        for line in
            ["checkpoint create", "resume work --print", "rehydrate", "environment", "doctor"]
        {
            env.run(line);
            assert_eq!(marks(&env), Vec::<String>::new(), "{line} with {path}");
        }
        assert_eq!(env.json("checkpoint show latest")["git"]["unread"], Value::Null);
        // A person who means the file in the workspace says so.
        let run = env.run("run -- made-up-agent");
        assert!(run.contains("there is no program `made-up-agent`"), "{run}");
        assert_eq!(marks(&env), Vec::<String>::new(), "with {path}");
        env.run("run -- ./made-up-agent");
        assert_eq!(marks(&env), ["RAN-made-up-agent"], "with {path}");
    }
}
