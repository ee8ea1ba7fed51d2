//! Commits: which came since another one, and which are there at all.

use super::Repository;
use super::refs::is_hash;
use super::view::View;

/// More than anyone is told of.
const MOST_COMMITS: &str = "--max-count=10000";

/// The commits that one has and another has not, newest first: the short hash and the first line.
pub fn commits_between(repository: &Repository, then: &str, now: &str) -> Option<Vec<String>> {
    // An imported checkpoint can say anything, also something that git takes for an option.
    if !is_hash(then) || !is_hash(now) {
        return None;
    }
    let range = format!("{then}..{now}");
    let args = ["log", "--no-show-signature", MOST_COMMITS, "--format=%h %s", &range, "--"];
    let output = ask(repository, &args, Vec::new())?;
    Some(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

/// Is everything on a branch in HEAD, too?
pub fn is_merged(repository: &Repository, branch: &str) -> bool {
    let tip = repository.resolve(&format!("refs/heads/{branch}")).ok().flatten();
    let Some((tip, head)) = tip.zip(repository.commit()) else {
        return false;
    };
    ask(repository, &["merge-base", "--is-ancestor", &tip, &head], Vec::new()).is_some()
}

/// Branches and commits that are not in the repository.
pub fn missing_names(repository: &Repository, names: &[String]) -> Vec<String> {
    let commits: Vec<Option<String>> =
        names.iter().map(|name| find_ref(repository, name).or_else(|| as_hash(name))).collect();
    let mut question = String::new();
    for commit in commits.iter().flatten() {
        question.extend([commit, "^{commit}\n"]);
    }
    let answer = match question.is_empty() {
        true => Vec::new(),
        false => {
            ask(repository, &["cat-file", "--batch-check"], question.into()).unwrap_or_default()
        }
    };
    // One line for each question, in their order.
    let answer = String::from_utf8_lossy(&answer);
    let mut lines = answer.lines();
    let mut is_there = |commit: &Option<String>| {
        let line = commit.as_ref().and_then(|_| lines.next());
        line.is_some_and(|line| line.split(' ').nth(1) == Some("commit"))
    };
    let missing = names.iter().zip(&commits).filter(|(_, commit)| !is_there(commit));
    missing.map(|(name, _)| name.clone()).collect()
}

/// The commit a name stands for, looked for where git looks.
fn find_ref(repository: &Repository, name: &str) -> Option<String> {
    let places = ["refs/heads/", "refs/tags/", "refs/remotes/", "refs/", ""];
    let commit = |place: &&str| repository.resolve(&format!("{place}{name}")).ok().flatten();
    places.iter().find_map(commit)
}

/// A hash, in full or shortened.
fn as_hash(name: &str) -> Option<String> {
    let is_hash = (4..=64).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then(|| name.to_owned())
}

fn ask(repository: &Repository, args: &[&str], input: Vec<u8>) -> Option<Vec<u8>> {
    let view = View::open(repository).ok()?;
    view.git(&repository.top).args(args).with_input(input).output().ok()
}
