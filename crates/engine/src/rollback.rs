//! Going back, and taking that back. Plan, show, save, record, apply, record: in this order, always.

use std::collections::HashMap;

use bivouac_core::checkpoint::{Checkpoint, Coverage, Trigger};
use bivouac_core::event::Event;
use bivouac_core::id::{CheckpointId, ObjectId, OperationId};
use bivouac_core::operation::{History, LeftAlone, Operation, OperationKind, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::sabotage::{self, Fault};
use bivouac_core::session::Session;
use bivouac_journal::query::{KeptCheckpoint, KeptOperation};
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::database;
use bivouac_snapshot::database::in_use::{InUse, leave_in_use};
use bivouac_snapshot::diff::{Filter, Trees};
use bivouac_snapshot::path_set::PathSet;
use bivouac_snapshot::plan::{self, Plan};
use bivouac_snapshot::tree::Entry;
use bivouac_snapshot::verify::unreadable;

use crate::excluded::Excluded;
use crate::look::Look;
use crate::save::{Draft, SaveRequest, Saved};
use crate::{Engine, Error, Result};

/// What a restore would do. Nothing has been touched.
pub struct RestorePlan {
    pub kind: OperationKind,
    /// The checkpoint gone back to, for a rollback.
    pub target: Option<Checkpoint>,
    pub session: Session,
    pub plan: Plan,
    /// What the workspace holds now that no checkpoint covers.
    pub coverage: Coverage,
    /// Databases that stay as they are because another process has them open.
    pub in_use: Vec<InUse>,
    /// What a rollback does not restore because it is excluded.
    pub excluded: Excluded,
    forced: PathSet,
}

impl RestorePlan {
    /// The same for the same target, the same steps and the same contents, and for nothing else. Consent to a
    /// plan is consent to this.
    pub fn id(&self) -> String {
        let mut said = format!("{} {:?}\n", self.kind, self.target.as_ref().map(|it| it.id));
        said.push_str(&ObjectId::of(&self.plan.encode()).to_string());
        ObjectId::of(said.as_bytes()).to_string().chars().take(16).collect()
    }
}

/// What a restore did.
pub struct RestoreReport {
    pub operation: OperationId,
    /// Holds everything as it was before.
    pub safety: Checkpoint,
    pub outcome: Outcome,
}

impl Engine {
    /// Plans to make the workspace, or some paths of it, what a checkpoint holds.
    pub fn plan_rollback(&self, kept: &KeptCheckpoint, paths: Vec<RelPath>) -> Result<RestorePlan> {
        let target = &kept.taken.checkpoint;
        let session = self.session(Some(&target.session_id.to_string()))?;
        if session.workspace != self.home.workspace_path() {
            let workspace = session.workspace.to_string();
            return Err(Error::OtherWorkspace { handle: target.handle.clone(), workspace });
        }
        let _store_lock = self.use_store()?;
        let filter = Filter::new(paths);
        let (mut plan, look, forced) = self.plan_covered(
            |trees, look| {
                check_paths(trees, [&look.tree, &target.tree], filter.paths())?;
                Ok(plan::plan(trees, &look.tree, &target.tree, &filter)?)
            },
            &target.tree,
        )?;
        let in_use = leave_in_use(&self.root()?, &mut plan);
        let excluded = {
            let index = self.index();
            let objects = self.objects(&index);
            let trees = Trees::with_fresh(&objects, &look.fresh);
            let roots = [(&look.tree, &look.coverage), (&target.tree, &target.coverage)];
            // What cannot be read shows where it matters; this is only for telling.
            self.excluded_in(&trees, roots, &filter).unwrap_or_default()
        };
        Ok(RestorePlan {
            kind: OperationKind::Rollback,
            target: Some(target.clone()),
            session,
            plan,
            coverage: look.coverage,
            in_use,
            excluded,
            forced,
        })
    }

    /// Plans to take back the last operation that was not taken back yet.
    pub fn plan_undo(&self) -> Result<RestorePlan> {
        let of = self.whole_history()?.undo.ok_or(Error::NothingTo { what: "undo" })?;
        self.plan_inverse(of, OperationKind::Undo { of })
    }

    /// Plans to take back the last undo.
    pub fn plan_redo(&self) -> Result<RestorePlan> {
        let of = self.whole_history()?.redo.ok_or(Error::NothingTo { what: "redo" })?;
        self.plan_inverse(of, OperationKind::Redo { of })
    }

    /// What `undo` and `redo` can take next. Without its safety checkpoint, an operation cannot be taken
    /// back.
    pub fn history(&self) -> Result<History> {
        let mut history = self.whole_history()?;
        for next in [&mut history.undo, &mut history.redo] {
            let operation = next.map(|id| self.journal.operation(id)).transpose()?.flatten();
            if let Some(it) = operation
                && !self.journal.has_checkpoint(it.operation.safety)?
            {
                *next = None;
            }
        }
        Ok(history)
    }

    fn whole_history(&self) -> Result<History> {
        let operations = self.journal.operations(&self.home.workspace_path())?;
        let happened =
            |it: &&KeptOperation| it.outcome.as_ref().is_some_and(|outcome| !outcome.reverted);
        Ok(History::of(
            operations.iter().filter(happened).map(|it| (it.operation.id, &it.operation.kind)),
        ))
    }

    /// Every path an operation touched goes back to what it was before; other paths are none of its business.
    fn plan_inverse(&self, of: OperationId, kind: OperationKind) -> Result<RestorePlan> {
        let _store_lock = self.use_store()?;
        let undone = self.journal.operation(of)?.ok_or(Error::SafetyGone)?;
        let safety = self
            .journal
            .checkpoint(undone.operation.safety)?
            .ok_or(Error::SafetyGone)?
            .taken
            .checkpoint;
        let session = self.session(Some(&undone.session_id.to_string()))?;
        let stored = self.stored_plan(&undone.operation)?;
        let left_alone = undone.outcome.map(|outcome| outcome.left_alone).unwrap_or_default();
        let done = database::carried_out(stored.steps, &left_alone);
        let (mut plan, look, forced) = self.plan_covered(
            |trees, look| {
                let (steps, changed) =
                    database::set_apart_changed(trees, &look.tree, done.clone())?;
                let wanted = steps.into_iter().map(|step| (step.path, step.before));
                let mut plan = plan::plan_paths(trees, &look.tree, &safety.tree, wanted)?;
                plan.left_alone.extend(changed);
                Ok(plan)
            },
            &safety.tree,
        )?;
        let in_use = leave_in_use(&self.root()?, &mut plan);
        Ok(RestorePlan {
            kind,
            target: None,
            session,
            plan,
            coverage: look.coverage,
            in_use,
            excluded: Excluded::default(),
            forced,
        })
    }

    /// Plans, and where the goal names paths that no checkpoint would cover now (they came to be
    /// ignored since), looks again with those covered: then they are safe to replace.
    fn plan_covered(
        &self,
        make: impl Fn(&Trees<'_>, &Look) -> Result<Plan>,
        goal: &ObjectId,
    ) -> Result<(Plan, Look, PathSet)> {
        let index = self.index();
        let objects = self.objects(&index);
        let look = self.look(&PathSet::default())?;
        let trees = Trees::with_fresh(&objects, &look.fresh);
        let plan = make(&trees, &look)?;
        let mut uncovered = Vec::new();
        for left in plan.left_alone.iter().filter(|left| left.why == WhyLeft::Uncovered) {
            files_below(&trees, goal, &left.path, &mut uncovered)?;
        }
        if uncovered.is_empty() {
            return Ok((plan, look, PathSet::default()));
        }
        let forced: PathSet = uncovered.into_iter().collect();
        let look = self.look(&forced)?;
        let plan = make(&Trees::with_fresh(&objects, &look.fresh), &look)?;
        Ok((plan, look, forced))
    }

    /// Carries a plan out: first a safety checkpoint, then the plan on record, then file by file.
    pub fn restore(&mut self, restore: RestorePlan) -> Result<RestoreReport> {
        self.check_may_restore()?;
        let lock = self.lock_workspace()?;
        if self.heal_held(&lock)? {
            return Err(Error::PlanOutdated { what: restore.kind });
        }
        self.check_floor()?;
        let id = OperationId::new(self.clock.new_id());
        let mut request = SaveRequest::new(Trigger::Safety);
        request.message = Some(safety_message(&restore).parse()?);
        let draft = Draft {
            operation: Some(id),
            forced: restore.forced,
            ..Draft::new(CheckpointId::new(self.clock.new_id()), request)
        };
        let Saved::Taken(saved) = self.save_draft(&restore.session, &draft, &lock)? else {
            unreachable!("a safety checkpoint is always taken")
        };
        let safety = saved.checkpoint;
        let _store_lock = self.use_store()?;
        let plan = self.settle(restore.plan, &safety)?.encode();
        let operation = Operation {
            id,
            kind: restore.kind,
            workspace: self.home.workspace_path(),
            target: restore.target.map(|target| target.id),
            safety: safety.id,
            plan: ObjectId::of(&plan),
            started_at: self.clock.now(),
        };
        let started = KeptOperation { session_id: restore.session.id, operation, outcome: None };
        self.begin_operation(&started, &plan)?;
        let outcome = self.apply_or_take_back(&started)?;
        Ok(RestoreReport { operation: id, safety, outcome })
    }

    /// Between the plan and the safety checkpoint, files may have changed or come to be ignored, and
    /// what was saved long ago may have been damaged since. Only what can be given back is touched.
    fn settle(&self, plan: Plan, safety: &Checkpoint) -> Result<Plan> {
        let index = self.index();
        let objects = self.objects(&index);
        let none_fresh = HashMap::new();
        let contents = plan.steps.iter().filter_map(|step| step.before?.content());
        let unreadable = unreadable(&objects, contents)?;
        let trees = Trees::with_fresh(&objects, &none_fresh);
        let mut plan = plan.settle(&trees, &safety.tree, &unreadable)?;
        leave_in_use(&self.root()?, &mut plan);
        Ok(plan)
    }

    /// Puts an operation on record, before it touches anything.
    fn begin_operation(&mut self, started: &KeptOperation, plan: &[u8]) -> Result<()> {
        let pack = self.store_object(ObjectKind::Plan, plan)?;
        let event = Event::OperationStarted(Box::new(started.operation.clone()));
        self.record_with(started.session_id, vec![event], pack.as_ref())?;
        Ok(())
    }

    /// What fails half-way is put back; what cannot even be put back is left to the next command.
    fn apply_or_take_back(&mut self, started: &KeptOperation) -> Result<Outcome> {
        let site = match self.open_site(started.operation.id) {
            Ok(site) => site,
            Err(error) => {
                let outcome = Outcome { reverted: true, ..Outcome::default() };
                self.end_operation(None, started, outcome)?;
                return Err(Error::PutBack { source: Box::new(error), left: Vec::new() });
            }
        };
        match self.carry_out(&site, &started.operation) {
            Ok(outcome) => self.end_operation(Some(&site), started, outcome),
            Err(error) => {
                let outcome = match sabotage::is(Fault::HalfLeft) {
                    true => Outcome::default(),
                    false => self.take_back(&site, &started.operation)?,
                };
                let outcome = self.end_operation(Some(&site), started, outcome)?;
                let is_touched =
                    |it: &LeftAlone| !matches!(it.why, WhyLeft::Uncovered | WhyLeft::Unreadable);
                let left = outcome.left_alone.into_iter().filter(is_touched);
                let left = left.map(|it| it.path).collect();
                Err(Error::PutBack { source: Box::new(error), left })
            }
        }
    }

    /// Makes an entry in git's stash, because a person asked for one. `None` when there is nothing to stash.
    pub fn stash(&mut self, restore: &RestorePlan) -> Result<Option<String>> {
        let repository = self.home.repository().ok_or(Error::NotGit)?;
        Ok(bivouac_capture::git::stash(&repository, &format!("biv: {}", safety_message(restore)))?)
    }
}

fn safety_message(restore: &RestorePlan) -> String {
    match &restore.target {
        Some(target) => format!("before {} to {}", restore.kind, target.handle),
        None => format!("before {}", restore.kind),
    }
}

/// A path that is in neither tree is a slip of the finger; one that neither captured is out of reach.
pub(crate) fn check_paths(
    trees: &Trees<'_>,
    roots: [&ObjectId; 2],
    paths: &[RelPath],
) -> Result<()> {
    for path in paths {
        let mut found = Vec::new();
        for root in roots {
            found.extend(trees.find(root, path)?);
        }
        if found.is_empty() {
            return Err(Error::NoSuchPath { path: path.clone() });
        }
        if let [Entry::Gap { why, .. }, ..] = found[..]
            && found.iter().all(Entry::is_gap)
        {
            return Err(Error::NotCovered { path: path.clone(), why });
        }
    }
    Ok(())
}

/// Every file and link of a tree at a path and below it. A stored tree may be deep, so this does not recurse.
fn files_below(
    trees: &Trees<'_>,
    root: &ObjectId,
    path: &RelPath,
    files: &mut Vec<RelPath>,
) -> Result<()> {
    let mut waiting = vec![path.clone()];
    while let Some(path) = waiting.pop() {
        match trees.find(root, &path)? {
            Some(Entry::Folder { tree, .. }) => {
                let child = |name| path.join(name).expect("a decoded tree has only plain names");
                waiting.extend(trees.get(&tree)?.entries().map(|(name, _)| child(name)));
            }
            Some(Entry::File(_) | Entry::Link(_)) => files.push(path),
            Some(Entry::Gap { .. }) | None => {}
        }
    }
    Ok(())
}
