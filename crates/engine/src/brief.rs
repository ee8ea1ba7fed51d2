//! What a model is told: a notice that there is unfinished work, or all it needs to go on.

use bivouac_capture::git;
use bivouac_core::briefing::{self, BRIEFING_TOKENS, Facts, Format, Who};
use bivouac_core::git::GitFacts;
use bivouac_core::id::{ObjectId, SessionId};
use bivouac_core::observation::is_own_command;
use bivouac_core::session::Session;
use bivouac_core::work::{Thing, Work};
use bivouac_journal::query::{CheckpointFilter, KeptCheckpoint};
use bivouac_snapshot::diff::{Filter, Trees, diff};
use bivouac_snapshot::path_set::PathSet;

use crate::look::Look;
use crate::{Engine, Error, Result};

/// A checkpoint, what git said then, and the files that changed since.
type Since = (Option<KeptCheckpoint>, Option<GitFacts>, Vec<String>);

/// So many messages are looked at; the budget decides how many are told.
const LAST_WORDS: u32 = 40;
/// The same for events.
const LAST_EVENTS: u32 = 12;

impl Engine {
    /// Tells of unfinished work of this workspace, other than that of `own`, if there is any.
    pub(crate) fn notice(&self, own: Option<SessionId>) -> Result<Option<String>> {
        let Some(session) = self.unfinished(own)? else {
            return Ok(None);
        };
        let work = self.journal.work(session.id)?;
        Ok(Some(briefing::notice(&session, &work, self.redactor())))
    }

    /// The newest session here that is open, has been worked on, and whose agent is gone.
    fn unfinished(&self, own: Option<SessionId>) -> Result<Option<Session>> {
        for session in self.journal.open_sessions(&self.home.workspace_path(), 20)? {
            if Some(session.id) == own || self.twin(&session)?.is_some() {
                continue;
            }
            let has_history = self.journal.last_checkpoint(session.id)?.is_some()
                || !self.journal.conversations(session.id)?.is_empty();
            if has_history {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// All a fresh agent needs to go on with a session.
    pub fn briefing(&self, session: &Session) -> Result<String> {
        let facts = self.facts(session)?;
        Ok(briefing::briefing(&facts, Format::Text, BRIEFING_TOKENS)?)
    }

    /// Everything a briefing is made of, as it is now.
    pub fn facts(&self, session: &Session) -> Result<Facts> {
        let (kept, git_then, changed) = self.since_checkpoint(session)?.unwrap_or_default();
        let git_now = self.git_now();
        let heads = git_then
            .as_ref()
            .and_then(|it| it.head.as_deref())
            .zip(git_now.as_ref().and_then(|it| it.head.as_deref()))
            .filter(|(then, now)| then != now);
        let commits = heads.and_then(|(then, now)| self.commits_since(then, now));
        let (mut said, trouble) = self.journal.last_words(session.id, LAST_WORDS)?;
        said.retain(|it| it.who == Who::Agent || !is_own_command(it.words.as_str()));
        let work = self.journal.work(session.id)?;
        let recent = self.journal.recent_progress(session.id, LAST_EVENTS)?;
        Ok(Facts {
            session: session.clone(),
            now: self.clock.now(),
            checkpoint: kept.map(|kept| kept.taken.checkpoint),
            missing: self.missing(&work, git_then.as_ref()),
            git_then,
            git_now,
            n_commits_since: commits.as_ref().map(|it| it.len() as u64),
            commits_since: commits.unwrap_or_default().into_iter().take(20).collect(),
            changed,
            recent: recent.iter().filter_map(|event| work.told(event)).collect(),
            work,
            asked: self.journal.approvals(session.id)?,
            goes_on_at: self.limit_ahead(session)?.map(|ends| self.clock.in_short(ends)),
            trouble,
            said,
            remembered: Vec::new(),
            redactor: self.redactor().clone(),
        })
    }

    /// The newest checkpoint that can be read, what git said then, and what changed since.
    fn since_checkpoint(&self, session: &Session) -> Result<Option<Since>> {
        let is_here = session.workspace == self.home.workspace_path();
        let look = |kept: KeptCheckpoint| -> Result<Since> {
            let git_then = self.git_facts(&kept)?;
            let changed = match is_here {
                true => self.changed_since(&kept.taken.checkpoint.tree)?,
                false => Vec::new(),
            };
            Ok((Some(kept), git_then, changed))
        };
        let Some(newest) = self.journal.last_checkpoint(session.id)? else {
            return Ok(None);
        };
        let newest_id = newest.taken.checkpoint.id;
        let mut found = look(newest);
        if is_unreadable(&found) {
            let session = Some(session.id);
            let filter = CheckpointFilter { session, ..CheckpointFilter::default() };
            let older = self.journal.checkpoints(&filter)?.into_iter().rev();
            let mut older = older.filter(|kept| kept.taken.checkpoint.id != newest_id);
            while let (true, Some(kept)) = (is_unreadable(&found), older.next()) {
                found = look(kept);
            }
        }
        match is_unreadable(&found) {
            true => Ok(None),
            false => found.map(Some),
        }
    }

    /// What the work names and is not there: paths, branches, commits.
    fn missing(&self, work: &Work, git_then: Option<&GitFacts>) -> Vec<String> {
        let artifacts = work.artifacts.iter().filter(|it| !it.is_over()).map(|it| &it.place);
        let files = work.tasks.iter().flat_map(|it| it.files.iter().flatten());
        let outputs = work.steps.iter().flat_map(|it| it.outputs.iter().flatten());
        let paths = artifacts.chain(files).chain(outputs.map(|it| &it.path));
        let mut missing: Vec<String> = Vec::new();
        for path in paths.filter(|path| !path.contains("://")) {
            let is_there = self.home.workspace.join(path).symlink_metadata().is_ok();
            if !is_there && !missing.contains(path) {
                missing.push(path.clone());
            }
        }
        let branches = work.worktrees.iter().filter(|it| !it.is_over()).map(|it| it.branch.clone());
        let commits = git_then.and_then(|it| it.head.clone());
        let names: Vec<String> = branches.chain(commits).collect();
        if let Some(repository) = self.home.repository() {
            missing.extend(git::missing_names(&repository, &names));
        }
        missing
    }

    pub(crate) fn git_now(&self) -> Option<GitFacts> {
        let repository = self.home.repository()?;
        let reading = git::read(&repository, &self.home.workspace, None, &git::Changed::Unknown);
        Some(reading.facts)
    }

    /// The commits between two, newest first: `sha subject`.
    pub(crate) fn commits_since(&self, then: &str, now: &str) -> Option<Vec<String>> {
        git::commits_between(&self.home.repository()?, then, now)
    }

    /// Files that are not as in a tree.
    pub(crate) fn changed_since(&self, tree: &ObjectId) -> Result<Vec<String>> {
        let _store_lock = self.use_store()?;
        self.changed_in(tree, &self.look(&PathSet::default())?)
    }

    /// The same for a hook while its agent waits, with the help of a watcher.
    pub(crate) fn quickly_changed_since(&self, tree: &ObjectId) -> Result<Vec<String>> {
        let _store_lock = self.use_store()?;
        self.changed_in(tree, &self.look_quickly()?)
    }

    fn changed_in(&self, tree: &ObjectId, look: &Look) -> Result<Vec<String>> {
        let found = self.changed(tree, look);
        match is_unreadable(&found) {
            true => self.changed(tree, &self.look_anew()?),
            false => found,
        }
    }

    fn changed(&self, tree: &ObjectId, look: &Look) -> Result<Vec<String>> {
        let index = self.index();
        let objects = self.objects(&index);
        let trees = Trees::with_fresh(&objects, &look.fresh);
        let changes = diff(&trees, tree, &look.tree, &Filter::default())?;
        let told = changes.iter().filter(|change| crate::compare::kind_of(change).is_some());
        Ok(told.map(|change| change.path.to_string()).collect())
    }
}

fn is_unreadable<T>(found: &Result<T>) -> bool {
    found.as_ref().is_err_and(Error::is_unreadable)
}
