//! Which branch of a remote a branch follows, as the configuration says.

use super::config::Config;

/// The ref that stands for an upstream here, and what people call it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tracking {
    pub(super) reference: String,
    pub(super) name: String,
}

impl Tracking {
    pub(super) fn of(branch: &str, config: &Config) -> Option<Self> {
        let remote = config.text(&format!("branch.{branch}.remote"))?;
        let merge = config.text(&format!("branch.{branch}.merge"))?;
        let reference = match remote {
            "." => merge.to_owned(),
            remote => {
                let fetch = format!("remote.{remote}.fetch");
                let refspecs = config.all(&fetch).filter_map(|it| std::str::from_utf8(it).ok());
                { refspecs }.find_map(|refspec| map(refspec, merge))?
            }
        };
        let short = ["refs/heads/", "refs/remotes/"].into_iter();
        let short = { short }.find_map(|prefix| reference.strip_prefix(prefix));
        Some(Self { name: short.unwrap_or(&reference).to_owned(), reference })
    }
}

/// Where a refspec puts a ref.
fn map(refspec: &str, name: &str) -> Option<String> {
    let (from, to) = refspec.strip_prefix('+').unwrap_or(refspec).split_once(':')?;
    match (from.split_once('*'), to.split_once('*')) {
        (Some((before, after)), Some((start, end))) => {
            let middle = name.strip_prefix(before)?.strip_suffix(after)?;
            Some(format!("{start}{middle}{end}"))
        }
        _ => (from == name).then(|| to.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refspec_tells_where_a_branch_of_a_remote_is_kept() {
        let check = |refspec: &str, expected: Option<&str>| {
            assert_eq!(map(refspec, "refs/heads/main").as_deref(), expected, "{refspec}");
        };
        check("+refs/heads/*:refs/remotes/origin/*", Some("refs/remotes/origin/main"));
        check("refs/heads/main:refs/remotes/o/m", Some("refs/remotes/o/m"));
        check("refs/heads/m*n:refs/x/*/y", Some("refs/x/ai/y"));
        check("refs/tags/*:refs/tags/*", None);
        check("^refs/heads/main", None);
        check("refs/heads/main", None);
    }
}
