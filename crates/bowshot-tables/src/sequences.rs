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
    /// `None` when the last one has been given.
    next: Option<i64>,
    /// How many more may be given before the disk has to hear of it.
    left: i64,
}

#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// Of the column's identity.
    pub id: Uuid,
    pub start: i64,
    /// From one to the next; not zero.
    pub step: i64,
    pub durable: bool,
}

impl Numbering {
    fn limit(&self) -> i64 {
        if self.step > 0 { i64::MAX } else { i64::MIN }
    }

    /// The number so many steps behind another one; `None` beyond the limit.
    fn after(&self, number: i64, count: i64) -> Option<i64> {
        i64::try_from(i128::from(number) + i128::from(self.step) * i128::from(count)).ok()
    }

    fn remaining(&self, from: i64) -> i64 {
        let distance = i128::from(self.limit()) - i128::from(from);
        let count = distance.checked_div(i128::from(self.step)).map_or(0, |steps| steps + 1);
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    fn exhausted(&self) -> Error {
        let end = if self.step > 0 { "maximum" } else { "minimum" };
        Error::Exhausted { end, limit: self.limit() }
    }
}

impl TableStore {
    /// Gives so many numbers, and tells the first. Blocks where it writes to disk.
    pub fn next_numbers(&self, numbering: &Numbering, count: usize) -> Result<i64, Error> {
        let count = i64::try_from(count).map_err(|_| numbering.exhausted())?;
        let mut all = self.numbers().0.lock();
        let reserved = match all.get(&numbering.id).copied() {
            Some(reserved) if reserved.left >= count => reserved,
            known => self.reserve(numbering, self.next_number(numbering, known)?, count)?,
        };
        let first = reserved.next.ok_or_else(|| numbering.exhausted())?;
        let next = numbering.after(first, count);
        all.insert(numbering.id, Reserved { next, left: reserved.left - count });
        Ok(first)
    }

    /// Lets the numbers go on behind one that a row brought with it.
    pub fn skip_numbers(&self, numbering: &Numbering, used: i64) -> Result<(), Error> {
        let mut all = self.numbers().0.lock();
        let next = self.next_number(numbering, all.get(&numbering.id).copied())?;
        let is_behind = next.is_some_and(|next| if numbering.step > 0 { used >= next } else { used <= next });
        let Some(after) = numbering.after(used, 1).filter(|_| is_behind) else { return Ok(()) };
        let reserved = self.reserve(numbering, Some(after), 0)?;
        all.insert(numbering.id, reserved);
        Ok(())
    }

    /// Lets the numbers go on with this one, whatever was given before; `None` for no more.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn set_numbers(&self, numbering: &Numbering, next: Option<i64>) -> Result<(), Error> {
        let mut all = self.numbers().0.lock();
        let reserved = self.reserve(numbering, next, 0)?;
        all.insert(numbering.id, reserved);
        Ok(())
    }

    fn reserve(&self, numbering: &Numbering, next: Option<i64>, count: i64) -> Result<Reserved, Error> {
        let remaining = next.map_or(0, |next| numbering.remaining(next));
        if count > remaining {
            return Err(numbering.exhausted());
        }
        let left = count.max(BLOCK).min(remaining);
        // Numbers go on towards their limit, so that none goes on with the other end: it stands for no more numbers.
        let end = next.and_then(|next| numbering.after(next, left)).unwrap_or(!numbering.limit());
        if let Some(folder) = self.folder().filter(|_| numbering.durable) {
            folder.catalog.write(|connection| {
                let failed = |error| folder.catalog.failed("cannot be written", &error);
                connection.execute_batch(TABLE).map_err(failed)?;
                connection
                    .execute(
                        "INSERT OR REPLACE INTO numbers (id, next) VALUES (?, ?)",
                        (numbering.id.to_string(), end),
                    )
                    .map(drop)
                    .map_err(failed)
            })?;
        }
        Ok(Reserved { next, left })
    }

    fn next_number(&self, numbering: &Numbering, known: Option<Reserved>) -> Result<Option<i64>, Error> {
        if let Some(known) = known {
            return Ok(known.next);
        }
        let start = Some(numbering.start);
        let Some(folder) = self.folder().filter(|_| numbering.durable) else { return Ok(start) };
        let stored: Option<i64> = folder.catalog.write(|connection| {
            let failed = |error| folder.catalog.failed("cannot be read", &error);
            connection.execute_batch(TABLE).map_err(failed)?;
            let stored = connection.query_row(
                "SELECT next FROM numbers WHERE id = ?",
                [numbering.id.to_string()],
                |row| row.get(0),
            );
            stored.optional().map_err(failed)
        })?;
        Ok(stored.map_or(start, |next| Some(next).filter(|next| *next != !numbering.limit())))
    }
}
