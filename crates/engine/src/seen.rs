//! What git lets us conclude about the work, so that nobody has to write it down: commits that were made, and
//! branches that are worked on in folders of their own.

use bivouac_capture::git;
use bivouac_core::checkpoint::Checkpoint;
use bivouac_core::event::Event;
use bivouac_core::git::GitFacts;
use bivouac_core::text::Note;
use bivouac_core::work::{Commit, Work, Worktree, WorktreeStatus};

use crate::Engine;

/// So many commits are told one by one; more came from elsewhere.
const MANY_COMMITS: usize = 50;

impl Engine {
    /// What happened in git since the checkpoint before.
    pub(crate) fn seen_in_git(
        &self,
        parent: Option<&Checkpoint>,
        now: &GitFacts,
        work: &Work,
    ) -> Vec<Event> {
        let then =
            parent.and_then(|parent| parent.git.as_ref()).and_then(|git| git.head.as_deref());
        let moved = then.zip(now.head.as_deref()).filter(|(then, now)| then != now);
        let mut events = Vec::new();
        if let Some((then, head)) = moved {
            let commits = self.commits_since(then, head).unwrap_or_default();
            let known = |sha: &str| work.commits.iter().any(|it| it.sha == sha);
            let new = commits.iter().take(MANY_COMMITS).rev();
            let new = new.filter_map(|line| line.split_once(' ')).filter(|(sha, _)| !known(sha));
            events.extend(new.map(|(sha, subject)| {
                Event::CommitSeen(Box::new(Commit {
                    sha: sha.to_owned(),
                    subject: Some(Note::cut(subject)),
                    branch: now.branch.clone(),
                    ..Commit::default()
                }))
            }));
        }
        events.extend(self.seen_worktrees(now, work));
        events
    }

    fn seen_worktrees(&self, now: &GitFacts, work: &Work) -> Vec<Event> {
        let here = self.home.workspace_path();
        let others = now.worktrees.iter().filter(|it| it.path != here);
        let active: Vec<Worktree> = others
            .filter_map(|it| {
                Some(Worktree {
                    branch: it.branch.clone()?,
                    path: Some(it.path.to_string()),
                    status: Some(WorktreeStatus::Active),
                    ..Worktree::default()
                })
            })
            .collect();
        let is_new = |it: &&Worktree| !work.worktrees.iter().any(|known| known.branch == it.branch);
        let mut news: Vec<Worktree> = active.iter().filter(is_new).cloned().collect();
        // Only those that were seen, not merely told of, can be seen to go.
        let seen = work.worktrees.iter().filter(|it| it.by.is_none());
        for known in seen.filter(|it| it.status == Some(WorktreeStatus::Active)) {
            if active.iter().any(|it| it.branch == known.branch) {
                continue;
            }
            let repository = self.home.repository();
            let is_merged = repository.is_some_and(|it| git::is_merged(&it, &known.branch));
            let status = if is_merged { WorktreeStatus::Merged } else { WorktreeStatus::Removed };
            news.push(Worktree {
                branch: known.branch.clone(),
                status: Some(status),
                ..Worktree::default()
            });
        }
        news.into_iter().map(|it| Event::WorktreeChanged(Box::new(it))).collect()
    }
}
