//! Bringing a journal to the shape this version knows. What is true is migrated by numbered scripts;
//! what follows from it is dropped and made anew.

use bivouac_core::redact::Redactor;
use rusqlite::{Connection, TransactionBehavior};

use crate::{Result, projection, read};

/// Applied in order and never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_journal.sql"),
    include_str!("schema/0002_agents.sql"),
    include_str!("schema/0003_progress.sql"),
    include_str!("schema/0004_runs.sql"),
];

pub(crate) fn known_version() -> i64 {
    MIGRATIONS.len() as i64
}

pub(crate) fn version(connection: &Connection) -> Result<i64> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// The tables of what is true, empty.
pub(crate) fn create_truth(connection: &Connection) -> Result<()> {
    MIGRATIONS.iter().try_for_each(|script| Ok(connection.execute_batch(script)?))
}

/// Answers the version it found when that is newer than ours; then nothing was touched.
pub(crate) fn migrate(connection: &mut Connection) -> Result<Option<i64>> {
    let found = version(connection)?;
    if found >= known_version() {
        return Ok((found > known_version()).then_some(found));
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for script in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(script)?;
    }
    projection::create(&transaction)?;
    for stored in read::all(&transaction)? {
        projection::apply(&transaction, &stored, &Redactor::default())?;
    }
    // Whoever opens the store knows which values are secrets, and fills this.
    transaction.execute("DELETE FROM search", [])?;
    transaction.pragma_update(None, "user_version", known_version())?;
    transaction.commit()?;
    Ok(None)
}
