//! Finishing what an earlier command could not: a restore that was interrupted, at whatever point.

use bivouac_core::event::{Event, OperationFinished};
use bivouac_core::id::OperationId;
use bivouac_core::operation::{Operation, Outcome, WhyLeft};
use bivouac_core::path::RelPath;
use bivouac_core::sabotage::{self, Fault};
use bivouac_journal::query::KeptOperation;
use bivouac_snapshot::apply::apply;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::displaced::clean_up;
use bivouac_snapshot::ownership::Sharing;
use bivouac_snapshot::plan::Plan;
use bivouac_snapshot::stage::Staging;

use crate::lock::{Hold, Lock};
use crate::saving::is_marked;
use crate::{Engine, Error, Result};

impl Engine {
    /// Finishes interrupted operations of this workspace, and records a save whose process died. What is still
    /// running is left to its owner.
    pub(crate) fn heal(&mut self) -> Result<()> {
        let is_left = sabotage::is(Fault::HealSkipped);
        if is_left || !self.is_writable() {
            return Ok(());
        }
        if !is_marked(&self.home) && !self.has_unfinished()? {
            return Ok(());
        }
        if let Some(lock) = Lock::attempt(&self.home.workspace_lock(), Hold::Alone)? {
            self.heal_held(&lock)?;
        }
        Ok(())
    }

    /// The same, for whoever holds the workspace: nobody else can be at work. `true` when there was
    /// something to finish.
    pub(crate) fn heal_held(&mut self, lock: &Lock) -> Result<bool> {
        self.record_dead_save(lock);
        let unfinished = self.journal.unfinished_operations(&self.home.workspace_path())?;
        for operation in &unfinished {
            let notice = match self.finish_interrupted(operation) {
                Ok(notice) => notice,
                Err(error) => {
                    let kind = operation.operation.kind;
                    format!(
                        "the interrupted {kind} could not be finished: {}",
                        crate::error::in_one_line(&error)
                    )
                }
            };
            self.notices.push(notice);
        }
        Ok(!unfinished.is_empty())
    }

    fn has_unfinished(&self) -> Result<bool> {
        Ok(!self.journal.unfinished_operations(&self.home.workspace_path())?.is_empty())
    }

    fn finish_interrupted(&mut self, unfinished: &KeptOperation) -> Result<String> {
        let operation = &unfinished.operation;
        let kind = operation.kind;
        let _store_lock = self.use_store()?;
        let site = self.open_site(operation.id)?;
        let (outcome, notice) = match self.carry_out(&site, operation) {
            Ok(outcome) => {
                let outcome = Outcome { finished_later: true, ..outcome };
                let (written, removed) = (outcome.n_written, outcome.n_removed);
                (
                    outcome,
                    format!(
                        "finished the {kind} that was interrupted ({written} written, {removed} removed)"
                    ),
                )
            }
            Err(error) => {
                let outcome = self.take_back(&site, operation)?;
                let why = crate::error::in_one_line(&error);
                (
                    outcome,
                    format!(
                        "took back the {kind} that was interrupted, as it could not be finished: {why}"
                    ),
                )
            }
        };
        self.end_operation(Some(&site), unfinished, outcome)?;
        Ok(notice)
    }

    /// Opens the workspace and an operation's staging folder, to change files.
    pub(crate) fn open_site(&self, id: OperationId) -> Result<Site> {
        let root = self.root_to_change()?;
        let staging = Staging::open(&root, id)?;
        Ok(Site { root, staging })
    }

    /// Refuses a workspace in which another user could replace files while they are being restored,
    /// unless the person allowed it.
    pub fn check_may_restore(&self) -> Result<()> {
        self.root_to_change().map(drop)
    }

    fn root_to_change(&self) -> Result<Root> {
        let root = self.root()?;
        let path = self.home.workspace.clone();
        let sharing = root.sharing().map_err(Error::io(&path))?;
        if sharing == Sharing::Private || self.config.allow_shared {
            return Ok(root);
        }
        let user_config = self.home.user_config.clone();
        Err(Error::SharedWorkspace { path, sharing, user_config })
    }

    /// Applies an operation's stored plan, or what is left of it.
    pub(crate) fn carry_out(&self, site: &Site, operation: &Operation) -> Result<Outcome> {
        let plan = self.stored_plan(operation)?;
        self.apply_plan(site, &plan)
    }

    /// Puts everything an operation changed back as it was.
    pub(crate) fn take_back(&self, site: &Site, operation: &Operation) -> Result<Outcome> {
        let plan = self.stored_plan(operation)?;
        let outcome = self.apply_plan(site, &plan.inverted())?;
        Ok(Outcome { reverted: true, ..outcome })
    }

    /// Throws away what an operation displaced, then puts its end on record. Interrupted in between, it
    /// is finished once more, and finds nothing left to do. Without a site, the operation never began.
    pub(crate) fn end_operation(
        &mut self,
        site: Option<&Site>,
        kept: &KeptOperation,
        mut outcome: Outcome,
    ) -> Result<Outcome> {
        let id = kept.operation.id;
        let left = match site {
            Some(Site { root, staging }) => {
                clean_up(root, staging, &self.stored_plan(&kept.operation)?)?
            }
            None => Vec::new(),
        };
        for it in &left {
            let path = &it.path;
            self.notices.push(match it.why {
                WhyLeft::ChangedMeanwhile => format!(
                    "a program wrote to a file while it was replaced; what it wrote to is `{path}`"
                ),
                _ => format!("the empty folder `{path}` could not be removed; remove it by hand"),
            });
        }
        outcome.left_alone.extend(left);
        self.tell_without_set_id(&outcome.without_set_id);
        let finished = OperationFinished { id, outcome: outcome.clone() };
        self.record(kept.session_id, vec![Event::OperationFinished(finished)])?;
        Ok(outcome)
    }

    /// Files may be programs that no longer work without these bits, so the person is told.
    pub(crate) fn tell_without_set_id(&mut self, paths: &[RelPath]) {
        const MANY: usize = 5;
        if paths.is_empty() {
            return;
        }
        let mut names: Vec<String> =
            paths.iter().take(MANY).map(|path| format!("`{path}`")).collect();
        if paths.len() > MANY {
            names.push(format!("{} more", paths.len() - MANY));
        }
        self.notices.push(format!(
            "restored without set-user-id and set-group-id bits, because another user can write to the \
             workspace: {}",
            names.join(", ")
        ));
    }

    pub(crate) fn stored_plan(&self, operation: &Operation) -> Result<Plan> {
        let index = self.index();
        let bytes = self.objects(&index).get(&operation.plan)?;
        Ok(Plan::decode(&operation.plan, &bytes)?)
    }

    fn apply_plan(&self, Site { root, staging }: &Site, plan: &Plan) -> Result<Outcome> {
        let index = self.index();
        let objects = self.objects(&index);
        Ok(apply(root, staging, &objects, plan, self.progress.as_ref())?)
    }
}

/// A workspace that is being changed, and the folder in which contents wait. Both are held open from
/// the first change until the last.
pub(crate) struct Site {
    root: Root,
    staging: Staging,
}
