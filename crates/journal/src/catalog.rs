//! Where objects are: which pack, and at which offset the block starts.

use std::collections::HashMap;

use bivouac_core::id::{ObjectId, PackId};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::append::PackRow;
use crate::stored::parse;
use crate::{Journal, Result};

impl Journal {
    /// The pack and block of an object.
    pub fn locate(&self, id: &ObjectId) -> Result<Option<(PackId, u64)>> {
        let sql =
            "SELECT packs.id, objects.offset FROM objects JOIN packs ON packs.number = objects.pack
                   WHERE objects.id = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([id.as_bytes().as_slice()])?;
        match rows.next()? {
            Some(row) => Ok(Some((parse(row, 0, "packs")?, row.get::<_, i64>(1)? as u64))),
            None => Ok(None),
        }
    }

    /// Every pack the index knows, with the size it had.
    pub fn packs(&self) -> Result<Vec<(PackId, u64)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT id, size_bytes FROM packs ORDER BY number")?;
        let mut rows = statement.query([])?;
        let mut packs = Vec::new();
        while let Some(row) = rows.next()? {
            packs.push((parse(row, 0, "packs")?, row.get::<_, i64>(1)? as u64));
        }
        Ok(packs)
    }

    /// Everything the index says, for checking it.
    pub fn objects(&self) -> Result<HashMap<ObjectId, (PackId, u64)>> {
        let packs = pack_numbers(&self.connection)?;
        let mut statement = self.connection.prepare("SELECT id, pack, offset FROM objects")?;
        let mut rows = statement.query([])?;
        let mut objects = HashMap::new();
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_blob().ok().and_then(ObjectId::from_slice);
            let pack = packs.get(&row.get(1)?);
            if let (Some(id), Some(pack)) = (id, pack) {
                objects.insert(id, (*pack, row.get::<_, i64>(2)? as u64));
            }
        }
        Ok(objects)
    }

    pub fn n_packs(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM packs";
        let count: i64 = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// Bytes in all packs.
    pub fn pack_bytes(&self) -> Result<u64> {
        let sql = "SELECT coalesce(sum(size_bytes), 0) FROM packs";
        let total: i64 = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(total as u64)
    }

    /// Replaces packs by what was kept of them. `gone` are the objects nothing needs any more.
    pub fn replace_packs(
        &mut self,
        old: &[PackId],
        new: Option<&PackRow>,
        gone: &[ObjectId],
    ) -> Result<()> {
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(pack) = new {
            move_objects(&transaction, pack)?;
        }
        {
            let mut delete = transaction.prepare_cached("DELETE FROM objects WHERE id = ?")?;
            for id in gone {
                delete.execute([id.as_bytes().as_slice()])?;
            }
            let mut forget = transaction.prepare_cached("DELETE FROM packs WHERE id = ?")?;
            for id in old {
                forget.execute([id.to_string()])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Throws the index away and fills it with what the packs hold.
    pub fn rebuild_catalog(&mut self, packs: &[PackRow]) -> Result<()> {
        let transaction =
            self.writable()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch("DELETE FROM objects; DELETE FROM packs;")?;
        for pack in packs {
            add_pack(&transaction, pack)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Adds a pack. An object that another pack has already stays where it is.
pub(crate) fn add_pack(transaction: &Transaction<'_>, pack: &PackRow) -> Result<()> {
    let number = insert_pack(transaction, pack)?;
    let mut insert = transaction
        .prepare_cached("INSERT OR IGNORE INTO objects (id, pack, offset) VALUES (?, ?, ?)")?;
    for (id, offset) in in_key_order(pack) {
        insert.execute(params![id.as_bytes().as_slice(), number, offset as i64])?;
    }
    Ok(())
}

fn move_objects(transaction: &Transaction<'_>, pack: &PackRow) -> Result<()> {
    let number = insert_pack(transaction, pack)?;
    let mut update = transaction
        .prepare_cached("INSERT OR REPLACE INTO objects (id, pack, offset) VALUES (?, ?, ?)")?;
    for (id, offset) in in_key_order(pack) {
        update.execute(params![id.as_bytes().as_slice(), number, offset as i64])?;
    }
    Ok(())
}

/// Rows come into a table fastest in the order of its key.
fn in_key_order(pack: &PackRow) -> Vec<(ObjectId, u64)> {
    let mut objects = pack.objects.clone();
    objects.sort_unstable();
    objects
}

fn insert_pack(transaction: &Transaction<'_>, pack: &PackRow) -> Result<i64> {
    let known = transaction
        .prepare_cached("SELECT number FROM packs WHERE id = ?")?
        .query_row([pack.id.to_string()], |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    let mut insert =
        transaction.prepare_cached("INSERT INTO packs (id, size_bytes) VALUES (?, ?)")?;
    Ok(insert.insert(params![pack.id.to_string(), pack.size_bytes as i64])?)
}

fn pack_numbers(connection: &Connection) -> Result<HashMap<i64, PackId>> {
    let mut statement = connection.prepare("SELECT number, id FROM packs")?;
    let mut rows = statement.query([])?;
    let mut numbers = HashMap::new();
    while let Some(row) = rows.next()? {
        numbers.insert(row.get(0)?, parse(row, 1, "packs")?);
    }
    Ok(numbers)
}
