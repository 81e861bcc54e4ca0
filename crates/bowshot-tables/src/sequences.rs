//! The numbers that identity columns and sequences give. They are outside of transactions, as everywhere: a number that was given
//! is never given again, whatever became of its row, and there may be gaps.

use super::{Error, TableStore};
use parking_lot::Mutex;
use rusqlite::OptionalExtension;
use std::collections::HashMap;
use uuid::Uuid;

/// Numbers that are put aside with one write to disk.
const BLOCK: i64 = 32;

/// Not part of the catalog's layout: it is made when the first durable table needs it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS numbers (id TEXT PRIMARY KEY, next INTEGER NOT NULL) STRICT";

/// What has been given of each column, by the id of its identity.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<HashMap<Uuid, Reserved>>);

#[derive(Debug, Clone, Copy)]
struct Reserved {
    next: i64,
    /// How many more may be given before the disk has to hear of it.
    left: i64,
}

/// How a column is numbered.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// Of the column's identity.
    pub id: Uuid,
    pub start: i64,
    /// From one to the next; not zero.
    pub step: i64,
    /// Whether the numbers outlive the server.
    pub durable: bool,
}

impl TableStore {
    /// Gives so many numbers, and tells the first. Blocks where it writes to disk.
    ///
    /// # Errors
    /// `Invalid` when there are no more; when the disk fails.
    pub fn next_numbers(&self, numbering: &Numbering, count: usize) -> Result<i64, Error> {
        let count = i64::try_from(count).map_err(|_| exhausted())?;
        let mut all = self.numbers().0.lock();
        let reserved = match all.get(&numbering.id) {
            Some(reserved) if reserved.left >= count => *reserved,
            known => self.reserve(numbering, known.copied(), count)?,
        };
        let taken = numbering.step.checked_mul(count).ok_or_else(exhausted)?;
        let next = reserved.next.checked_add(taken).ok_or_else(exhausted)?;
        all.insert(numbering.id, Reserved { next, left: reserved.left - count });
        Ok(reserved.next)
    }

    /// Lets the numbers go on behind one that a row brought with it.
    pub fn skip_numbers(&self, numbering: &Numbering, used: i64) -> Result<(), Error> {
        let mut all = self.numbers().0.lock();
        let known = all.get(&numbering.id).copied();
        let next = match known {
            Some(known) => known.next,
            None => self.stored_number(numbering)?.unwrap_or(numbering.start),
        };
        let behind = if numbering.step > 0 { used >= next } else { used <= next };
        let Some(after) = used.checked_add(numbering.step).filter(|_| behind) else { return Ok(()) };
        let reserved = self.reserve(numbering, Some(Reserved { next: after, left: 0 }), 0)?;
        all.insert(numbering.id, reserved);
        Ok(())
    }

    /// Lets the numbers go on with this one, whatever was given before.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn set_numbers(&self, numbering: &Numbering, next: i64) -> Result<(), Error> {
        let mut all = self.numbers().0.lock();
        let reserved = self.reserve(numbering, Some(Reserved { next, left: 0 }), 0)?;
        all.insert(numbering.id, reserved);
        Ok(())
    }

    fn reserve(&self, numbering: &Numbering, known: Option<Reserved>, count: i64) -> Result<Reserved, Error> {
        let next = match known {
            Some(known) => known.next,
            None => self.stored_number(numbering)?.unwrap_or(numbering.start),
        };
        let left = count.max(BLOCK);
        let end = numbering.step.checked_mul(left).and_then(|taken| next.checked_add(taken));
        if let Some(folder) = self.folder().filter(|_| numbering.durable) {
            folder.catalog.write(|connection| {
                let failed = |error| folder.catalog.failed("cannot be written", &error);
                connection.execute_batch(TABLE).map_err(failed)?;
                connection
                    .execute(
                        "INSERT OR REPLACE INTO numbers (id, next) VALUES (?, ?)",
                        (numbering.id.to_string(), end.unwrap_or(i64::MAX)),
                    )
                    .map(drop)
                    .map_err(failed)
            })?;
        }
        Ok(Reserved { next, left })
    }

    fn stored_number(&self, numbering: &Numbering) -> Result<Option<i64>, Error> {
        let Some(folder) = self.folder().filter(|_| numbering.durable) else { return Ok(None) };
        folder.catalog.write(|connection| {
            let failed = |error| folder.catalog.failed("cannot be read", &error);
            connection.execute_batch(TABLE).map_err(failed)?;
            let stored = connection.query_row(
                "SELECT next FROM numbers WHERE id = ?",
                [numbering.id.to_string()],
                |row| row.get(0),
            );
            stored.optional().map_err(failed)
        })
    }
}

fn exhausted() -> Error {
    Error::Invalid("a sequence, or a column that numbers itself, has no more numbers".to_owned())
}
