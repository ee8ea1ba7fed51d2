//! Which databases another process has open, as far as its locks tell. A connection to a database with a
//! write-ahead log holds a lock as long as it is open. One to a database with a rollback journal only holds one
//! during a transaction, so no answer does not mean that no program has the database open.

use bivouac_core::operation::WhyLeft;
use bivouac_core::path::RelPath;
use rustix::process::{Flock, FlockOffsetType, FlockType};

use crate::beneath::Root;
use crate::database::{MAIN, SHM, members, set_apart};
use crate::plan::Plan;

/// A database that another process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    pub path: RelPath,
    /// The process, where the kernel names one.
    pub pid: Option<u32>,
}

/// Takes the databases out of a plan that another process has open, and answers which they are. That process
/// would go on with the files it has opened, and its last act as the last user of the database is to remove
/// `X-wal` by name: the one that a restore put there.
pub fn leave_in_use(root: &Root, plan: &mut Plan) -> Vec<InUse> {
    let mut found = Vec::new();
    let mut whys: Vec<Option<WhyLeft>> = vec![None; plan.steps.len()];
    for family in super::restore::families(&plan.steps) {
        let path = &plan.steps[family[MAIN]].path;
        let names = members(path.as_bytes());
        if let Some(pid) = [MAIN, SHM].into_iter().find_map(|at| holder(root, &names[at])) {
            found.push(InUse { path: path.clone(), pid });
            family.iter().for_each(|at| whys[*at] = Some(WhyLeft::ChangedMeanwhile));
        }
    }
    let (steps, left) = set_apart(std::mem::take(&mut plan.steps), whys);
    plan.steps = steps;
    plan.left_alone.extend(left);
    found
}

impl InUse {
    /// Is this one of the database's files?
    pub fn holds(&self, path: &RelPath) -> bool {
        members(self.path.as_bytes()).iter().any(|name| name == path.as_bytes())
    }
}

/// Who holds a lock on a file. The inner `None` stands for a lock that belongs to no process the kernel names.
fn holder(root: &Root, path: &[u8]) -> Option<Option<u32>> {
    let file = root.open_file(path).ok()?;
    let whole = Flock {
        start: 0,
        length: 0,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    let held = rustix::process::fcntl_getlk(&file, &whole).ok()??;
    Some(held.pid.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()))
}
