//! `biv config`, and the errors about it

use insta::assert_snapshot;

use crate::env;

#[test]
fn every_setting_is_shown_with_its_source() {
    let mut env = env();
    std::fs::create_dir_all(env.home().join(".config/bivouac")).unwrap();
    std::fs::write(env.home().join(".config/bivouac/config.toml"), "[store]\nbudget = \"5GB\"\n")
        .unwrap();
    env.write(
        "bivouac.toml",
        "[checkpoint]\nauto_interval_seconds = 5\n[workspace]\ninclude = [\"data/*.db\"]\n",
    );
    env.set("BIV_CHECKPOINT_RETENTION_DAYS", "30");
    assert_snapshot!(env.run("config show"), @r#"
    [agents]
    build_folders = ["target", "node_modules", "dist", "build", "out", "__pycache__", ".cache", ".next", ".venv", "coverage", "tmp"] # default
    prices = ["claude-opus-4-5 5 25 0.5 6.25", "claude-opus-4-1 15 75 1.5 18.75", "claude-sonnet-4-5 3 15 0.3 3.75", "claude-haiku-4-5 1 5 0.1 1.25", "gpt-5 1.25 10 0.125 0", "gpt-5-codex 1.25 10 0.125 0", "gpt-5-mini 0.25 2 0.025 0", "gemini-2.5-pro 1.25 10 0.31 0", "gemini-2.5-flash 0.3 2.5 0.075 0"] # default
    risky = ["rm -r|-f|*", "git reset|checkout|switch|restore|clean|stash|rebase|filter-branch|filter-repo", "git push --force|--force-with-lease|-f|--delete|--mirror", "git branch -D", "git worktree remove", "mv *", "find -delete", "find -exec", "shred", "truncate", "dd", "rsync --delete", "alembic upgrade|downgrade", "prisma migrate|db", "rails db:migrate|db:drop|db:reset|db:rollback", "rake db:migrate|db:drop|db:reset|db:rollback", "python|python3 migrate|flush", "manage.py migrate|flush", "knex migrate:latest|migrate:rollback", "sequelize db:migrate|db:drop", "flyway", "liquibase", "drizzle-kit push|migrate", "diesel migration|database", "sqlx migrate|database", "docker system|volume", "terraform apply|destroy", "kubectl delete"] # default

    [approvals]
    command = []                                 # default

    [checkpoint]
    auto_interval_seconds = 5                    # [root]/project/bivouac.toml
    max_file_size = "100MB"                      # default
    max_per_session = 20                         # default
    retention_days = 30                          # BIV_CHECKPOINT_RETENTION_DAYS
    triggers = ["periodic", "detach", "error", "complete", "shutdown", "turn", "task", "spawn", "compact", "end"] # default

    [environment]
    allow = []                                   # default

    [export]
    on_checkpoint = []                           # default

    [memory]
    command = []                                 # default

    [run]
    grace_seconds = 5                            # default

    [store]
    auto_gc = false                              # BIV_STORE_AUTO_GC
    budget = "5GB"                               # [root]/home/.config/bivouac/config.toml
    compression_level = 3                        # default
    min_free = "0"                               # BIV_STORE_MIN_FREE

    [workspace]
    allow_shared = false                         # default
    exclude = []                                 # default
    include = ["data/*.db"]                      # [root]/project/bivouac.toml
    "#);
    assert_snapshot!(env.run("config path"), @"
    user       [root]/home/.config/bivouac/config.toml
    workspace  [root]/project/bivouac.toml
    ");
    assert_eq!(env.json("config show")["checkpoint.retention_days"]["value"], 30);
}

#[test]
fn a_slip_names_what_was_meant() {
    let env = env();
    env.write("a", "1").write("bivouac.toml", "[checkpoint]\nmax_per_sesion = 5\n");
    assert_snapshot!(env.run("checkpoint create"), @"
    Saved checkpoint cp-20260121-001 of task-00000001: 2 files
    note: `bivouac.toml` is not used: unknown key `checkpoint.max_per_sesion` in `[root]/project/bivouac.toml`; did you mean `checkpoint.max_per_session`?
    ");
    env.write("bivouac.toml", "[checkpoint]\nretention_days = \"a week\"\n");
    assert_snapshot!(env.run("config show"), @r#"
    exit 1
    error: `checkpoint.retention_days` in `[root]/project/bivouac.toml` is "a week", and it must be a number of days
    hint: `biv config show --defaults` shows what a value looks like
    "#);
    env.write("bivouac.toml", "[checkpoint\n");
    assert_snapshot!(env.run("config show"), @"
    exit 1
    error: `[root]/project/bivouac.toml` is not valid TOML: line 1: unclosed table, expected `]`
    hint: correct it, or remove it
    ");
    env.write("bivouac.toml", "[store]\nbudget = \"1GB\"\n");
    assert_snapshot!(env.run("config show"), @"
    exit 1
    error: `store.budget` is for your own configuration, so a workspace cannot set it
    hint: remove it from `bivouac.toml`; if you want it, put it into `[root]/home/.config/bivouac/config.toml`
    ");
}

#[test]
fn a_misspelt_variable_is_a_slip_and_the_defaults_can_always_be_seen() {
    let mut env = env();
    env.set("BIV_CHECKPOINT_MAX_PER_SESION", "5");
    assert_snapshot!(env.run("status"), @"
    exit 1
    error: the variable `BIV_CHECKPOINT_MAX_PER_SESION` is no setting
    hint: did you mean `BIV_CHECKPOINT_MAX_PER_SESSION`?
    ");
    assert!(env.run("config show --defaults").contains("max_per_session = 20"));
}
