//! Ignore rules, exactly as git reads them: `.gitignore` at every level, the repository's
//! `info/exclude`, the user's global file. The same syntax serves `workspace.include` and `exclude`.
//!
//! A pattern is a row of tokens and matching walks all alternatives side by side, so that no
//! pattern, however wicked, takes more than pattern × path steps.

/// The patterns of one file, in order.
#[derive(Debug, Default)]
pub struct Rules {
    patterns: Vec<Pattern>,
}

/// What the last matching pattern of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ignore,
    Keep,
}

impl Rules {
    pub fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let lines = text.split(|byte| *byte == b'\n');
        Self { patterns: lines.filter_map(Pattern::parse).collect() }
    }

    pub fn from_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            patterns: lines
                .into_iter()
                .filter_map(|line| Pattern::parse(line.as_bytes()))
                .collect(),
        }
    }

    /// Judges a path given relative to the folder the rules stand in.
    pub fn judge(&self, path: &[u8], is_folder: bool) -> Option<Verdict> {
        let found = self.patterns.iter().rev().find(|pattern| pattern.matches(path, is_folder))?;
        Some(if found.is_negated { Verdict::Keep } else { Verdict::Ignore })
    }

    /// Could a pattern that names a place (`data/*.db`) match something below this folder?
    pub fn may_match_below(&self, folder: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| pattern.may_match_below(folder))
    }
}

#[derive(Debug)]
struct Pattern {
    tokens: Vec<Token>,
    is_negated: bool,
    only_folders: bool,
    /// It has a slash, so it is matched against the whole path; else against the last name.
    is_anchored: bool,
    /// The folders an anchored pattern spells out: `data/cache` for `data/cache/*.db`.
    literal_folder: Vec<u8>,
    /// The longest part without wildcards. A path that lacks it is not looked at any closer: an ignore file can have
    /// thousands of patterns with many wildcards each.
    needed: Vec<u8>,
}

#[derive(Debug, PartialEq)]
enum Token {
    Byte(u8),
    /// `?`: any byte but a slash.
    AnyByte,
    /// `[…]`: the bytes it allows.
    Class(Box<[bool; 256]>),
    /// `*`: any bytes but slashes.
    Star,
    /// `**/`: any number of whole folders, none included.
    Folders,
    /// `/**` at the end: everything inside.
    Everything,
}

impl Pattern {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut text = trim_trailing_spaces(line);
        if text.first() == Some(&b'#') {
            return None;
        }
        let is_negated = text.first() == Some(&b'!');
        if is_negated {
            text = &text[1..];
        }
        let only_folders = text.last() == Some(&b'/');
        if only_folders {
            text = &text[..text.len() - 1];
        }
        if text.is_empty() {
            return None;
        }
        let is_anchored = text.contains(&b'/');
        let text = text.strip_prefix(b"/").unwrap_or(text);
        let tokens = tokenize(text)?;
        let literal_folder = literal_folder(&tokens);
        let needed = longest_literal(&tokens);
        Some(Self { tokens, is_negated, only_folders, is_anchored, literal_folder, needed })
    }

    fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        if self.only_folders && !is_folder {
            return false;
        }
        let text = match self.is_anchored {
            true => path,
            false => path.rsplit(|byte| *byte == b'/').next().unwrap_or(path),
        };
        contains(text, &self.needed) && matches(&self.tokens, text)
    }

    fn may_match_below(&self, folder: &[u8]) -> bool {
        let literal = self.literal_folder.as_slice();
        self.is_anchored
            && !literal.is_empty()
            && (is_within(literal, folder) || is_within(folder, literal))
    }
}

fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Trailing spaces do not count, unless the last one is escaped.
fn trim_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        let step = if line[at] == b'\\' && at + 1 < line.len() { 2 } else { 1 };
        if line[at] != b' ' {
            end = at + step;
        }
        at += step;
    }
    &line[..end]
}

/// `None` for a pattern that can never match, such as an open bracket.
fn tokenize(text: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => {
                tokens.push(Token::Byte(*text.get(at + 1)?));
                at += 2;
            }
            b'?' => {
                tokens.push(Token::AnyByte);
                at += 1;
            }
            b'[' => {
                let (class, next) = parse_class(text, at + 1)?;
                tokens.push(Token::Class(class));
                at = next;
            }
            b'*' => {
                let (token, next) = parse_stars(text, at);
                tokens.push(token);
                at = next;
            }
            byte => {
                tokens.push(Token::Byte(byte));
                at += 1;
            }
        }
    }
    Some(tokens)
}

/// Two stars or more are special when they are a whole component. git strips what is literal at the
/// start of a pattern before it looks, so there stars after plain letters are special too.
fn parse_stars(text: &[u8], start: usize) -> (Token, usize) {
    let end = start + text[start..].iter().take_while(|byte| **byte == b'*').count();
    let is_plain = |byte: &u8| !matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let opens = text[..start].iter().all(is_plain) || text[start - 1] == b'/';
    match text.get(end) {
        Some(b'/') if opens && end - start >= 2 => (Token::Folders, end + 1),
        None if opens && end - start >= 2 => (Token::Everything, end),
        _ => (Token::Star, end),
    }
}

/// Reads a bracket expression whose `[` stands just before `start`.
fn parse_class(text: &[u8], start: usize) -> Option<(Box<[bool; 256]>, usize)> {
    let mut allowed = Box::new([false; 256]);
    let mut at = start;
    let is_negated = matches!(text.get(at), Some(b'!' | b'^'));
    if is_negated {
        at += 1;
    }
    let first = at;
    loop {
        let byte = *text.get(at)?;
        if byte == b']' && at > first {
            break;
        }
        if byte == b'['
            && text.get(at + 1) == Some(&b':')
            && let Some((name, next)) = posix_class(text, at + 2)
        {
            add_posix_class(&mut allowed, name)?;
            at = next;
            continue;
        }
        let (low, after_low) = class_byte(text, at)?;
        if text.get(after_low) == Some(&b'-')
            && text.get(after_low + 1).is_some_and(|byte| *byte != b']')
        {
            let (high, after_high) = class_byte(text, after_low + 1)?;
            (low..=high).for_each(|byte| allowed[usize::from(byte)] = true);
            at = after_high;
        } else {
            allowed[usize::from(low)] = true;
            at = after_low;
        }
    }
    if is_negated {
        allowed.iter_mut().for_each(|it| *it = !*it);
    }
    // A slash is only ever matched by a slash.
    allowed[usize::from(b'/')] = false;
    Some((allowed, at + 1))
}

fn class_byte(text: &[u8], at: usize) -> Option<(u8, usize)> {
    match *text.get(at)? {
        b'\\' => Some((*text.get(at + 1)?, at + 2)),
        byte => Some((byte, at + 1)),
    }
}

/// The name in `[:name:]` that starts at `start`, and where it ends.
fn posix_class(text: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let close = text[start..].iter().position(|byte| *byte == b']')? + start;
    let name = text[start..close].strip_suffix(b":")?;
    Some((name, close + 1))
}

fn add_posix_class(allowed: &mut [bool; 256], name: &[u8]) -> Option<()> {
    let belongs: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| (b' '..=b'~').contains(byte),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    (0..=255u8).filter(belongs).for_each(|byte| allowed[usize::from(byte)] = true);
    Some(())
}

fn literal_folder(tokens: &[Token]) -> Vec<u8> {
    let mut literal = Vec::new();
    for token in tokens {
        let Token::Byte(byte) = token else { break };
        literal.push(*byte);
    }
    if literal.len() < tokens.len() {
        let slash = literal.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        literal.truncate(slash);
    }
    literal
}

fn longest_literal(tokens: &[Token]) -> Vec<u8> {
    let runs = tokens.split(|token| !matches!(token, Token::Byte(_)));
    let bytes = |run: &[Token]| -> Vec<u8> {
        let byte = |token: &Token| if let Token::Byte(byte) = token { Some(*byte) } else { None };
        run.iter().filter_map(byte).collect()
    };
    runs.max_by_key(|run| run.len()).map(bytes).unwrap_or_default()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|it| it == part)
}

/// Walks the text once with the set of token positions that are alive.
fn matches(tokens: &[Token], text: &[u8]) -> bool {
    let mut alive = vec![false; tokens.len() + 1];
    let mut next = vec![false; tokens.len() + 1];
    arrive(tokens, &mut alive, 0);
    for byte in text {
        next.fill(false);
        for (place, token) in tokens.iter().enumerate().filter(|(place, _)| alive[*place]) {
            let (stays, moves_on) = token.take(*byte);
            next[place] |= stays;
            if moves_on {
                arrive(tokens, &mut next, place + 1);
            }
        }
        if !next.contains(&true) {
            return false;
        }
        std::mem::swap(&mut alive, &mut next);
    }
    alive[tokens.len()]
}

/// Enters a position, and those behind it that can be reached without a byte.
fn arrive(tokens: &[Token], alive: &mut [bool], mut place: usize) {
    while !std::mem::replace(&mut alive[place], true) {
        match tokens.get(place) {
            Some(Token::Star | Token::Folders | Token::Everything) => place += 1,
            Some(Token::Byte(_) | Token::AnyByte | Token::Class(_)) | None => return,
        }
    }
}

impl Token {
    /// Can the token stay here after this byte, and can it be done with it?
    fn take(&self, byte: u8) -> (bool, bool) {
        match self {
            Self::Byte(own) => (false, *own == byte),
            Self::AnyByte => (false, byte != b'/'),
            Self::Class(allowed) => (false, allowed[usize::from(byte)]),
            Self::Star => (byte != b'/', byte != b'/'),
            Self::Folders => (true, byte == b'/'),
            Self::Everything => (true, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;
    use std::process::Stdio;

    use proptest::prelude::*;

    use super::*;

    fn check(rules: &str, path: &str, is_folder: bool, expected: Option<Verdict>) {
        let found = Rules::parse(rules.as_bytes()).judge(path.as_bytes(), is_folder);
        assert_eq!(found, expected, "{rules:?} on {path:?}");
    }

    #[test]
    fn patterns_mean_what_git_says() {
        use Verdict::{Ignore, Keep};
        check("node_modules/", "a/node_modules", true, Some(Ignore));
        check("node_modules/", "a/node_modules", false, None);
        check("*.pyc", "a/b.pyc", false, Some(Ignore));
        check("/build", "build", true, Some(Ignore));
        check("/build", "a/build", true, None);
        check("a/b", "a/b", false, Some(Ignore));
        check("a/b", "x/a/b", false, None);
        check("**/logs", "logs", true, Some(Ignore));
        check("**/logs", "a/b/logs", true, Some(Ignore));
        check("a/**/z", "a/z", false, Some(Ignore));
        check("a/**/z", "a/b/c/z", false, Some(Ignore));
        check("abc/**", "abc/x/y", false, Some(Ignore));
        check("abc/**", "abc", true, None);
        check("*.log\n!keep.log", "keep.log", false, Some(Keep));
        check("# comment", "# comment", false, None);
        check("\\#odd", "#odd", false, Some(Ignore));
        check("\\!odd", "!odd", false, Some(Ignore));
        check("trailing   ", "trailing", false, Some(Ignore));
        check("kept\\ ", "kept ", false, Some(Ignore));
        check("windows\r", "windows", false, Some(Ignore));
        check("[a-c]x[!0-9]", "bxz", false, Some(Ignore));
        check("[a-c]x[!0-9]", "bx1", false, None);
        check("[[:digit:]]*", "7up", false, Some(Ignore));
        check("foo[", "foo[", false, None);
        check("a?c", "a/c", false, None);
        check("a*c/d", "abbc/d", false, Some(Ignore));
        check("a*c/d", "ab/c/d", false, None);
    }

    #[test]
    fn a_wicked_pattern_takes_no_longer_than_its_size() {
        let pattern = "*a".repeat(200) + "b";
        let path = "a".repeat(20_000);
        check(&pattern, &path, false, None);
    }

    #[test]
    fn places_below_an_ignored_folder_can_be_named() {
        let may = |pattern: &str, folder: &str| {
            Rules::from_lines([pattern]).may_match_below(folder.as_bytes())
        };
        assert!(may("data/cache/*.db", "data"));
        assert!(may("data/cache/*.db", "data/cache"));
        assert!(may("data/**", "data/x"));
        assert!(may("/data/local.db", "data"));
        assert!(!may("data/cache/*.db", "database"));
        assert!(!may("*.db", "data"));
    }

    /// What git itself says about each path, with these rules in the root `.gitignore`.
    fn git_says(repo: &Path, rules: &[u8], paths: &[String]) -> Vec<bool> {
        fs::write(repo.join(".gitignore"), rules).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test's own question to git")]
        let mut git = std::process::Command::new("git")
            .args(["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"])
            .current_dir(repo)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input: Vec<u8> =
            paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let mut stdin = git.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let output = git.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        // Each answer is: source, line, pattern, path. A pattern that starts with `!` keeps.
        let answers = fields.chunks_exact(4);
        answers.map(|answer| !answer[2].is_empty() && !answer[2].starts_with(b"!")).collect()
    }

    /// Ours, with the rule that what is in an ignored folder is ignored.
    fn we_say(rules: &Rules, path: &str, is_folder: bool) -> bool {
        let folders = path.match_indices('/').map(|(slash, _)| (&path[..slash], true));
        let mut places = folders.chain([(path, is_folder)]);
        places.any(|(place, is_folder)| {
            rules.judge(place.as_bytes(), is_folder) == Some(Verdict::Ignore)
        })
    }

    #[test]
    fn random_rules_agree_with_git() {
        let repo = tempfile::tempdir().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test's own question to git")]
        let status = std::process::Command::new("git")
            .args(["init", "-q"])
            .current_dir(repo.path())
            .status();
        assert!(status.unwrap().success());
        let pattern = "!?/?(\\*\\*/)?([ab.]|\\*|\\?|\\[ab\\]|\\[!a\\]|\\\\a){1,3}(/(\\*\\*|[ab*?]{1,3})){0,2}/?( |\\\\ )?";
        let rules =
            proptest::collection::vec(proptest::string::string_regex(pattern).unwrap(), 1..4);
        let path = proptest::string::string_regex("[ab.]{1,3}(/[ab ]{1,3}){0,3}").unwrap();
        let paths = proptest::collection::vec(path, 20);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
        runner
            .run(&(rules, paths), |(rules, mut paths)| {
                // Names git refuses as paths are not our question.
                paths.retain(|path| path.split('/').all(|name| name != "." && name != ".."));
                let text = rules.join("\n");
                let ours = Rules::parse(text.as_bytes());
                let git = git_says(repo.path(), text.as_bytes(), &paths);
                prop_assert_eq!(git.len(), paths.len());
                for (path, git) in paths.iter().zip(git) {
                    prop_assert_eq!(we_say(&ours, path, false), git, "{:?} on {:?}", text, path);
                }
                Ok(())
            })
            .unwrap();
    }
}
