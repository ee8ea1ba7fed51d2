//! What a workspace's `bivouac.toml` may decide by itself. The file comes with a clone, a pull or an agent's
//! edit, so without the user's consent it may only widen protection: save more often, capture more, keep
//! longer. Every key has one rule in [`KEYS`], and a key without a rule needs consent.

/// A value, as far as protection depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, a number of seconds or days, or a size in bytes.
    Number(u64),
    List(Vec<String>),
}

/// How the value of a key bears on protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A larger number protects more.
    Larger,
    /// A larger number protects more, up to this one.
    LargerUpTo(u64),
    /// A smaller number protects more.
    Smaller,
    /// Every entry adds protection.
    Adds,
    /// Every entry takes protection away.
    Takes,
    /// The list has exceptions (`!pattern`), so that neither more nor fewer entries are surely harmless: only
    /// the user's own list counts.
    UsersOnly,
    /// The list names documents to write. These are written inside the workspace, all others outside.
    WritesInside(&'static [&'static str]),
    /// The value does not bear on protection.
    Free,
    /// The key is about the whole store, names a program to run, or says what may be kept about the machine or whom
    /// the user trusts. A workspace that sets it is an error, whatever its value.
    Forbidden,
}

/// A key, its rule, and what a value that needs consent would do.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub rule: Rule,
    effect: &'static str,
}

const fn key(name: &'static str, rule: Rule, effect: &'static str) -> Key {
    Key { name, rule, effect }
}

/// Every key of the configuration.
pub const KEYS: [Key; 20] = [
    key("checkpoint.auto_interval_seconds", Rule::Smaller, "saves less often"),
    key("checkpoint.max_per_session", Rule::Larger, "keeps fewer checkpoints"),
    key("checkpoint.retention_days", Rule::Larger, "keeps checkpoints for a shorter time"),
    key("checkpoint.triggers", Rule::Adds, "saves on fewer occasions"),
    key("checkpoint.max_file_size", Rule::Larger, "leaves out more large files"),
    key("workspace.include", Rule::Adds, "captures fewer ignored files"),
    key("workspace.exclude", Rule::UsersOnly, "changes which files are left out"),
    key("workspace.allow_shared", Rule::Forbidden, ""),
    key("agents.risky", Rule::Adds, "saves before fewer risky commands"),
    key("agents.build_folders", Rule::Takes, "saves before fewer deletions"),
    key("agents.prices", Rule::Free, ""),
    key(
        "run.grace_seconds",
        Rule::LargerUpTo(TEN_MINUTES),
        "changes how long a command may take to end",
    ),
    key("export.on_checkpoint", Rule::WritesInside(&["handoff", "session-checkpoint"]), DROPS),
    key("approvals.command", Rule::Forbidden, ""),
    key("memory.command", Rule::Forbidden, ""),
    key("environment.allow", Rule::Forbidden, ""),
    key("store.budget", Rule::Forbidden, ""),
    key("store.min_free", Rule::Forbidden, ""),
    key("store.compression_level", Rule::Forbidden, ""),
    key("store.auto_gc", Rule::Forbidden, ""),
];

/// A command that is told to end, by a shutdown or its timeout, must end at some time.
const TEN_MINUTES: u64 = 600;
const DROPS: &str = "stops writing documents that you asked for";
const WRITES_OUTSIDE: &str = "writes files outside the workspace";
const UNKNOWN: &str = "has an effect that this version does not know";

/// What becomes of a value that a workspace's file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds as it is.
    Holds,
    /// Of a list, only this holds without consent. `effect` is what the rest would do.
    HoldsInPart { list: Vec<String>, effect: &'static str },
    /// Without consent, the user's own value stands. `effect` is what this one would do.
    NeedsConsent { effect: &'static str },
}

/// May a workspace set this key at all?
pub fn is_forbidden(name: &str) -> bool {
    rule_of(name).is_some_and(|key| key.rule == Rule::Forbidden)
}

/// Judges what a workspace's file asks for against `own`, what holds without that file.
pub fn judge(name: &str, own: &Value, asked: &Value) -> Verdict {
    let Some(Key { rule, effect, .. }) = rule_of(name) else {
        return Verdict::NeedsConsent { effect: UNKNOWN };
    };
    if own == asked {
        return Verdict::Holds;
    }
    match (rule, own, asked) {
        (Rule::Free, ..) => Verdict::Holds,
        (Rule::Larger, Value::Number(own), Value::Number(asked)) if asked > own => Verdict::Holds,
        (Rule::LargerUpTo(most), Value::Number(own), Value::Number(asked))
            if asked > own && *asked <= most =>
        {
            Verdict::Holds
        }
        (Rule::Smaller, Value::Number(own), Value::Number(asked)) if asked < own => Verdict::Holds,
        (Rule::Adds, Value::List(own), Value::List(asked)) => add(own, asked, effect),
        (Rule::Takes, Value::List(own), Value::List(asked)) => take(own, asked, effect),
        (Rule::WritesInside(inside), Value::List(own), Value::List(asked)) => {
            write_inside(inside, own, asked)
        }
        _ => Verdict::NeedsConsent { effect },
    }
}

fn rule_of(name: &str) -> Option<Key> {
    KEYS.into_iter().find(|key| key.name == name)
}

/// Patterns are judged from the last to the first, and `!pattern` makes an exception. So what the user wrote
/// comes last: whatever stands before it, the user's patterns match what they matched.
fn add(own: &[String], asked: &[String], effect: &'static str) -> Verdict {
    let drops = own.iter().any(|entry| !asked.contains(entry));
    let excepts = !own.is_empty() && asked.iter().any(|entry| entry.starts_with('!'));
    if !drops && !excepts {
        return Verdict::Holds;
    }
    in_part([&without(asked, own), own].concat(), own, effect)
}

fn take(own: &[String], asked: &[String], effect: &'static str) -> Verdict {
    if asked.iter().all(|entry| own.contains(entry)) {
        return Verdict::Holds;
    }
    let both = own.iter().filter(|entry| asked.contains(entry)).cloned().collect();
    in_part(both, own, effect)
}

fn write_inside(inside: &[&str], own: &[String], asked: &[String]) -> Verdict {
    let mut new = without(asked, own);
    let n_new = new.len();
    new.retain(|entry| inside.contains(&entry.as_str()));
    let list = [own, &new].concat();
    if new.len() < n_new {
        in_part(list, own, WRITES_OUTSIDE)
    } else if own.iter().any(|entry| !asked.contains(entry)) {
        in_part(list, own, DROPS)
    } else {
        Verdict::Holds
    }
}

fn in_part(list: Vec<String>, own: &[String], effect: &'static str) -> Verdict {
    match list == own {
        true => Verdict::NeedsConsent { effect },
        false => Verdict::HoldsInPart { list, effect },
    }
}

fn without(list: &[String], others: &[String]) -> Vec<String> {
    list.iter().filter(|entry| !others.contains(entry)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        match text.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::List(text.split_whitespace().map(str::to_owned).collect()),
        }
    }

    /// `own` is what holds without the file, `asked` what the file says; `holds` is what comes of it: `yes`,
    /// `no`, or the list that is left.
    fn check(name: &str, own: &str, asked: &str, holds: &str) {
        let found = match judge(name, &value(own), &value(asked)) {
            Verdict::Holds => "yes".to_owned(),
            Verdict::NeedsConsent { .. } => "no".to_owned(),
            Verdict::HoldsInPart { list, .. } => list.join(" "),
        };
        assert_eq!(found, holds, "{name}: {asked} over {own}");
    }

    #[test]
    fn numbers_may_only_move_towards_more_protection() {
        check("checkpoint.auto_interval_seconds", "30", "10", "yes");
        check("checkpoint.auto_interval_seconds", "30", "30", "yes");
        check("checkpoint.auto_interval_seconds", "30", "300", "no");
        for name in [
            "checkpoint.max_per_session",
            "checkpoint.retention_days",
            "checkpoint.max_file_size",
            "run.grace_seconds",
        ] {
            check(name, "20", "21", "yes");
            check(name, "20", "20", "yes");
            check(name, "20", "1", "no");
        }
        // A command that is told to end must end at some time.
        check("run.grace_seconds", "20", "600", "yes");
        check("run.grace_seconds", "20", "601", "no");
    }

    #[test]
    fn lists_that_add_protection_may_only_grow() {
        for name in ["checkpoint.triggers", "agents.risky"] {
            check(name, "turn end", "turn end phase", "yes");
            check(name, "turn end", "phase", "phase turn end");
            check(name, "turn end", "turn", "no");
            check(name, "turn end", "", "no");
            check(name, "", "turn", "yes");
        }
    }

    #[test]
    fn an_exception_takes_nothing_from_what_the_user_includes() {
        check("workspace.include", "", "data/ !data/tmp", "yes");
        check("workspace.include", "data/", "data/ logs/", "yes");
        check("workspace.include", "data/", "data/ !data/keep", "!data/keep data/");
        check("workspace.include", "data/", "!data/", "!data/ data/");
    }

    #[test]
    fn lists_that_take_protection_away_may_only_shrink() {
        check("agents.build_folders", "target dist", "target", "yes");
        check("agents.build_folders", "target dist", "", "yes");
        check("agents.build_folders", "target dist", "target src", "target");
        check("agents.build_folders", "target dist", "target dist src", "no");
    }

    #[test]
    fn only_the_user_says_what_is_left_out() {
        check("workspace.exclude", "", "*", "no");
        check("workspace.exclude", "*.mp4", "*.mp4", "yes");
        check("workspace.exclude", "*.mp4", "", "no");
        check("workspace.exclude", "*.log !keep.log", "*.log", "no");
    }

    #[test]
    fn documents_may_only_be_written_inside_the_workspace() {
        let name = "export.on_checkpoint";
        check(name, "", "handoff session-checkpoint", "yes");
        check(name, "", "memory", "no");
        check(name, "", "handoff memory checkpoint-md", "handoff");
        check(name, "memory", "memory handoff", "yes");
        check(name, "memory", "handoff", "memory handoff");
        check(name, "memory", "", "no");
        let effect = |own, asked| match judge(name, &value(own), &value(asked)) {
            Verdict::NeedsConsent { effect } => effect,
            other => panic!("{other:?}"),
        };
        assert_eq!(effect("", "memory"), "writes files outside the workspace");
        assert_eq!(effect("memory", ""), "stops writing documents that you asked for");
    }

    #[test]
    fn a_value_of_another_kind_or_an_unknown_key_needs_consent() {
        check("checkpoint.max_per_session", "20", "many", "no");
        check("checkpoint.triggers", "turn", "5", "no");
        check("colours.background", "1", "2", "no");
        check("agents.prices", "a 1", "b 2", "yes");
    }

    #[test]
    fn every_key_has_one_rule() {
        let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
        assert!(is_forbidden("store.budget") && !is_forbidden("workspace.exclude"));
    }
}
