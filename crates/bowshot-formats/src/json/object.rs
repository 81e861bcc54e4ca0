//! Objects under construction: which of their keys is which column.

use super::columns::{Column, Wrong};
use super::cursor::{Cursor, Trouble};
use arrow::array::ArrayRef;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Rows, or the values of one column.
pub(super) struct Object {
    keys: Keys,
    pub(super) columns: Vec<Column>,
    /// Whether keys that nobody knows are left out.
    closed: bool,
}

/// Keys in the order in which they came first.
#[derive(Default)]
struct Keys {
    names: Vec<Box<[u8]>>,
    places: HashMap<Box<[u8]>, usize>,
    /// The column of each key that is wanted.
    columns: Vec<Option<usize>>,
}

impl Keys {
    fn add(&mut self, name: &str, column: Option<usize>) {
        let name: Box<[u8]> = name.as_bytes().into();
        if let Entry::Vacant(vacant) = self.places.entry(name.clone()) {
            vacant.insert(self.names.len());
            self.names.push(name);
            self.columns.push(column);
        }
    }

    /// Keys mostly come in the order of the row before.
    fn find(&self, key: &[u8], expected: usize) -> Option<usize> {
        match self.names.get(expected) {
            Some(name) if name.as_ref() == key => Some(expected),
            _ => self.places.get(key).copied(),
        }
    }
}

impl Object {
    /// Rows of these columns, in a file whose other keys are `known`.
    pub(super) fn new<'a>(columns: Vec<Column>, known: impl Iterator<Item = &'a str>, closed: bool) -> Self {
        let by_name: HashMap<String, usize> =
            columns.iter().enumerate().map(|(place, column)| (column.name.clone(), place)).collect();
        let mut keys = Keys::default();
        known.for_each(|name| keys.add(name, by_name.get(name).copied()));
        columns.iter().enumerate().for_each(|(place, column)| keys.add(&column.name, Some(place)));
        Self { keys, columns, closed }
    }

    /// Takes the object that begins at the cursor as the row of that number.
    pub(super) fn take(&mut self, cursor: &mut Cursor<'_>, row: usize) -> Result<(), Trouble> {
        let mut more = cursor.enter(b'}')?;
        let mut expected = 0;
        while more {
            let key = cursor.key()?.meant()?;
            match self.keys.find(&key, expected) {
                Some(place) => {
                    expected = place + 1;
                    let column = self.keys.columns.get(place).copied().flatten();
                    match column.and_then(|column| self.columns.get_mut(column)) {
                        Some(column) => column.take(cursor, row)?,
                        None => {
                            cursor.skip()?;
                        }
                    }
                }
                None if self.closed => {
                    cursor.skip()?;
                }
                None => return Err(Trouble::Unknown(String::from_utf8_lossy(&key).into_owned())),
            }
            more = cursor.more(b'}')?;
        }
        Ok(())
    }

    /// Takes back the rows from that number on.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
    }

    pub(super) fn finish(&mut self, rows: usize) -> Result<Vec<ArrayRef>, Wrong> {
        self.columns.iter_mut().map(|column| column.finish(rows)).collect()
    }
}
