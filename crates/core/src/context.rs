//! What a branch's name says: which issue it is about, and where the project keeps what belongs to it.

use crate::work::slug;

/// What was read from a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub issue: Option<String>,
    pub branch: String,
    /// The part of the branch behind the issue.
    pub branch_name: String,
    /// Where the project keeps its plans for it, below the workspace.
    pub project_dir: String,
}

const PLANS: &str = "docs/implementation_plans";

/// Reads `PROJ-123_description`, with or without a folder before it. `#174` and `gh-174` are issues, too.
pub fn context(branch: &str) -> Option<Context> {
    branch.split('/').enumerate().find_map(|(place, part)| {
        let (issue, rest) = issue_at_start(part)?;
        let below: Vec<&str> = branch.split('/').skip(place + 1).collect();
        let rest = if below.is_empty() { rest.to_owned() } else { below.join("-") };
        let branch_name = if rest.is_empty() { slug(part) } else { rest };
        Some(of_issue(branch, &issue, &branch_name))
    })
}

/// What follows when a person says which issue it is.
pub fn of_issue(branch: &str, issue: &str, branch_name: &str) -> Context {
    let folder = issue.trim_start_matches('#');
    Context {
        issue: Some(issue.to_owned()),
        branch: branch.to_owned(),
        branch_name: branch_name.to_owned(),
        project_dir: format!("{PLANS}/{folder}/{}/", slug_of_branch(branch_name)),
    }
}

/// What follows when there is no issue.
pub fn without_issue(branch: &str) -> Context {
    let branch_name = slug_of_branch(branch);
    Context {
        issue: None,
        branch: branch.to_owned(),
        project_dir: format!("{PLANS}/_adhoc/{branch_name}/"),
        branch_name,
    }
}

/// Is it the key of an issue: `PROJ-123` or `#174`?
pub fn is_issue(text: &str) -> bool {
    issue_at_start(text).is_some_and(|(_, rest)| rest.is_empty())
}

/// A name that can be a folder.
pub fn slug_of_branch(branch: &str) -> String {
    let parts = branch.split(|letter: char| !letter.is_alphanumeric() && !"-_.".contains(letter));
    let name = parts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("-");
    match name.trim_matches('.') {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

fn issue_at_start(part: &str) -> Option<(String, &str)> {
    let of_tracker = || {
        let (key, rest) = part.split_once('-')?;
        let is_key = key.len() >= 2
            && key.starts_with(|letter: char| letter.is_ascii_uppercase())
            && key.chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
        let (number, rest) = number_at_start(rest)?;
        is_key.then(|| (format!("{key}-{number}"), rest))
    };
    let of_forge = || {
        let rest =
            ["#", "gh-", "GH-", "issue-", "issue_"].iter().find_map(|it| part.strip_prefix(it))?;
        let (number, rest) = number_at_start(rest)?;
        Some((format!("#{number}"), rest))
    };
    of_forge().or_else(of_tracker)
}

/// A number, and what follows behind a mark that ends it.
fn number_at_start(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let rest = match rest.strip_prefix(['_', '-']) {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => return None,
    };
    (!number.is_empty()).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_says_which_issue_it_is_about() {
        let check = |branch: &str, issue: &str, folder: &str| {
            let found = context(branch).unwrap_or_else(|| panic!("{branch}"));
            assert_eq!(found.issue.as_deref(), Some(issue), "{branch}");
            assert_eq!(
                found.project_dir,
                format!("docs/implementation_plans/{folder}/"),
                "{branch}"
            );
        };
        check("PROJ-123_add-auth", "PROJ-123", "PROJ-123/add-auth");
        check("feature/TAS-12_email-sender", "TAS-12", "TAS-12/email-sender");
        check("PROJ-7", "PROJ-7", "PROJ-7/proj-7");
        check("fix/#174-crash", "#174", "174/crash");
        check("issue-174_crash", "#174", "174/crash");
        check("PROJ-9/part-one", "PROJ-9", "PROJ-9/part-one");
        for branch in ["main", "feat/001-email-sender", "release-2", "PROJ-12abc", "v-1", ""] {
            assert_eq!(context(branch), None, "{branch}");
        }
        assert!(
            is_issue("PROJ-123") && is_issue("#174") && !is_issue("none") && !is_issue("PROJ-1_x")
        );
    }

    #[test]
    fn a_branch_without_an_issue_has_a_folder_all_the_same() {
        let found = without_issue("feat/001 email/../sender");
        assert_eq!(found.project_dir, "docs/implementation_plans/_adhoc/feat-001-email-..-sender/");
        assert_eq!(without_issue("..").project_dir, "docs/implementation_plans/_adhoc/unnamed/");
    }
}
