//! Which shell commands deserve a checkpoint before they run. A wrong yes costs one checkpoint, so a
//! command line is read roughly: quotes are dropped, and whatever could start a command does.

/// One risky command: a program and the words that must all be among its arguments. `a|b` is met by
/// either, `-rf` by `-r -f` and `-fr`, and `*` by any argument that a shell would expand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    program: Vec<String>,
    words: Vec<Vec<String>>,
}

/// What counts as risky.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub patterns: Vec<Pattern>,
    /// Deleting below these is everyday work.
    pub build_folders: Vec<String>,
}

impl Pattern {
    /// `None` for a pattern without words.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words =
            text.split_whitespace().map(|word| word.split('|').map(str::to_owned).collect());
        Some(Self { program: words.next()?, words: words.collect() })
    }

    fn matches(&self, program: &str, args: &[&str]) -> bool {
        self.program.iter().any(|name| name == program)
            && self.words.iter().all(|word| word.iter().any(|either| has_word(args, either)))
    }
}

/// The first risky command in a command line, if there is one.
pub fn find(command_line: &str, policy: &Policy) -> Option<String> {
    for command in simple_commands(command_line) {
        let words = own_words(&command);
        let Some((program, args)) = words.split_first() else {
            continue;
        };
        let program = program.rsplit('/').next().unwrap_or(program);
        let is_risky = policy.patterns.iter().any(|pattern| pattern.matches(program, args));
        if is_risky && !(program == "rm" && is_housekeeping(args, &policy.build_folders)) {
            return Some(words.join(" "));
        }
    }
    None
}

fn has_word(args: &[&str], word: &str) -> bool {
    if word == "*" {
        return args.iter().any(|arg| arg.contains(['*', '?', '[']));
    }
    match word.strip_prefix('-').filter(|flags| !flags.starts_with('-')) {
        Some(flags) => {
            flags.chars().all(|flag| args.iter().any(|arg| is_short(arg) && arg.contains(flag)))
        }
        None => args.iter().any(|arg| {
            *arg == word || arg.strip_prefix(word).is_some_and(|rest| rest.starts_with('='))
        }),
    }
}

fn is_short(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--")
}

/// Does it delete build products and nothing else?
fn is_housekeeping(args: &[&str], build_folders: &[String]) -> bool {
    let mut targets = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
    targets.peek().is_some()
        && targets.all(|target| {
            let mut parts = target.split('/');
            !target.contains("..")
                && parts.any(|part| build_folders.iter().any(|name| name == part))
        })
}

/// Cuts a command line wherever another command could begin.
fn simple_commands(command_line: &str) -> Vec<String> {
    let unquoted: String =
        command_line.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
    let commands = unquoted.split([';', '&', '|', '\n', '(', ')', '`', '{', '}']);
    commands.map(str::to_owned).collect()
}

/// A command's words from the program on that really runs: past assignments and programs that start
/// others.
fn own_words(command: &str) -> Vec<&str> {
    const STARTERS: [&str; 13] = [
        "sudo", "env", "command", "nohup", "time", "exec", "xargs", "then", "else", "do", "!", "$",
        "timeout",
    ];
    const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "dash"];
    let mut words: Vec<&str> = command.split_whitespace().collect();
    while let Some(first) = words.first().copied() {
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        let is_shell = SHELLS.contains(&first)
            && words.get(1).is_some_and(|flag| is_short(flag) && flag.contains('c'));
        if is_assignment {
            words.remove(0);
        } else if STARTERS.contains(&first) || is_shell {
            words.remove(0);
            // Their own options, and the number of seconds or arguments that may follow.
            let is_option = |word: &&str| {
                word.starts_with('-') || word.starts_with(|letter: char| letter.is_ascii_digit())
            };
            while words.first().is_some_and(is_option) {
                words.remove(0);
            }
        } else {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_destroy_work_is_found_and_everyday_work_is_not() {
        let patterns = [
            "rm -r|-f|*",
            "git reset|checkout|restore|clean|stash|rebase",
            "git push --force|--force-with-lease|-f",
            "mv *",
            "find -delete",
            "alembic upgrade|downgrade",
        ];
        let policy = Policy {
            patterns: patterns.iter().filter_map(|text| Pattern::parse(text)).collect(),
            build_folders: ["target", "node_modules", "dist"].map(str::to_owned).to_vec(),
        };
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(find(line, &policy).as_deref(), expected, "{line}");
        };
        check("rm -rf src", Some("rm -rf src"));
        check("rm -r -f src", Some("rm -r -f src"));
        check("cd x && sudo rm -fr .", Some("rm -fr ."));
        check("rm notes.txt", None);
        check("rm *.py", Some("rm *.py"));
        check("rm -rf target dist/app", None);
        check("rm -rf target/../src", Some("rm -rf target/../src"));
        check("rm -rf node_modules src", Some("rm -rf node_modules src"));
        check("bash -c 'rm -rf src'", Some("rm -rf src"));
        check("find . -name '*.o' | xargs -n 1 rm -f", Some("rm -f"));
        check("find . -type f -delete", Some("find . -type f -delete"));
        check("FOO=1 git reset --hard HEAD~1", Some("git reset --hard HEAD~1"));
        check("git status", None);
        check("git push origin main", None);
        check(
            "git push --force-with-lease=main origin",
            Some("git push --force-with-lease=main origin"),
        );
        check("git push -f", Some("git push -f"));
        check("mv *.rs old/", Some("mv *.rs old/"));
        check("mv a b", None);
        check("/usr/bin/git clean -fdx", Some("/usr/bin/git clean -fdx"));
        check("timeout 30 alembic upgrade head", Some("alembic upgrade head"));
        check("echo done", None);
        check("", None);
    }
}
