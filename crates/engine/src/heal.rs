//! Finishing what an earlier command could not: a restore that was interrupted, at whatever point.

use bivouac_core::event::{Event, OperationFinished};
use bivouac_core::id::OperationId;
use bivouac_core::operation::{LeftAlone, Operation, Outcome, WhyLeft};
use bivouac_core::sabotage::{self, Fault};
use bivouac_journal::query::KeptOperation;
use bivouac_snapshot::apply::apply;
use bivouac_snapshot::displaced::clean_up;
use bivouac_snapshot::plan::Plan;

use crate::lock::{Hold, Lock};
use crate::{Engine, Result};

impl Engine {
    /// Finishes interrupted operations of this workspace. One that is still running is left to its owner.
    pub(crate) fn heal(&mut self) -> Result<()> {
        let is_left = sabotage::is(Fault::HealSkipped);
        if is_left || !self.is_writable() || !self.has_unfinished()? {
            return Ok(());
        }
        if let Some(lock) = Lock::attempt(&self.home.workspace_lock(), Hold::Alone)? {
            self.heal_held(&lock)?;
        }
        Ok(())
    }

    /// The same, for whoever holds the workspace: nobody else can be at work. `true` when there was
    /// something to finish.
    pub(crate) fn heal_held(&mut self, _lock: &Lock) -> Result<bool> {
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
        let (outcome, notice) = match self.carry_out(operation) {
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
                let outcome = self.take_back(operation)?;
                let why = crate::error::in_one_line(&error);
                (
                    outcome,
                    format!(
                        "took back the {kind} that was interrupted, as it could not be finished: {why}"
                    ),
                )
            }
        };
        self.end_operation(unfinished, outcome)?;
        Ok(notice)
    }

    /// Applies an operation's stored plan, or what is left of it.
    pub(crate) fn carry_out(&self, operation: &Operation) -> Result<Outcome> {
        let plan = self.stored_plan(operation)?;
        self.apply_plan(&plan, operation.id)
    }

    /// Puts everything an operation changed back as it was.
    pub(crate) fn take_back(&self, operation: &Operation) -> Result<Outcome> {
        let plan = self.stored_plan(operation)?;
        let outcome = self.apply_plan(&plan.inverted(), operation.id)?;
        Ok(Outcome { reverted: true, ..outcome })
    }

    /// Throws away what an operation displaced, then puts its end on record. Interrupted in between, it
    /// is finished once more, and finds nothing left to do.
    pub(crate) fn end_operation(
        &mut self,
        kept: &KeptOperation,
        mut outcome: Outcome,
    ) -> Result<Outcome> {
        let id = kept.operation.id;
        let plan = self.stored_plan(&kept.operation)?;
        for path in clean_up(&self.root()?, &plan, id)? {
            self.notices.push(format!(
                "a program wrote to a file while it was replaced; what it wrote to is `{path}`"
            ));
            outcome.left_alone.push(LeftAlone { path, why: WhyLeft::ChangedMeanwhile });
        }
        let finished = OperationFinished { id, outcome: outcome.clone() };
        self.record(kept.session_id, vec![Event::OperationFinished(finished)])?;
        Ok(outcome)
    }

    pub(crate) fn stored_plan(&self, operation: &Operation) -> Result<Plan> {
        let index = self.index();
        let bytes = self.objects(&index).get(&operation.plan)?;
        Ok(Plan::decode(&operation.plan, &bytes)?)
    }

    fn apply_plan(&self, plan: &Plan, id: OperationId) -> Result<Outcome> {
        let root = self.root()?;
        let index = self.index();
        let objects = self.objects(&index);
        Ok(apply(&root, &objects, plan, id, self.progress.as_ref())?)
    }
}
