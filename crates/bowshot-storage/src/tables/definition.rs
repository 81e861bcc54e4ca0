//! What a table is, apart from its rows.

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, Arrow type, and `nullable == false` for NOT NULL.
    pub field: FieldRef,
    /// SQL expression of the value that a row gets that names none.
    pub default: Option<String>,
    /// What the user says about the column.
    pub comment: Option<String>,
}

/// A condition that each row fulfils or leaves unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name of the constraint.
    pub name: String,
    /// SQL expression over the columns.
    pub sql: String,
}

/// Columns whose values together tell a row from all others.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Name of the constraint, if the user gave one.
    pub name: Option<String>,
    /// Names of the columns, in the order of the key.
    pub columns: Vec<String>,
}

/// Where the rows of a table are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// In memory; table and rows end with the server.
    #[default]
    Memory,
    /// In the data folder, see [`durable`](super::durable). Columns have the types of [`super::durable_type`].
    Durable,
}

/// Columns and constraints of a table. Constraints are kept here and enforced by the engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definition {
    /// Where the rows are kept. Stays as it is while the table is there.
    pub storage: Storage,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// The primary key. Rows that are added to a table that has one conflict with every other change of the table.
    pub primary_key: Option<Key>,
    /// Conditions on each row.
    pub checks: Vec<Check>,
    /// What the user says about the table.
    pub comment: Option<String>,
}

impl Definition {
    /// The Arrow schema of the columns, without metadata. Made anew by each call; a table keeps its own.
    pub fn schema(&self) -> SchemaRef {
        let plain = |column: &Column| {
            if column.field.metadata().is_empty() {
                Arc::clone(&column.field)
            } else {
                Arc::new(column.field.as_ref().clone().with_metadata(HashMap::new()))
            }
        };
        Arc::new(Schema::new(self.columns.iter().map(plain).collect::<Vec<_>>()))
    }

    /// Whether table and rows outlive the server.
    pub fn is_durable(&self) -> bool {
        self.storage == Storage::Durable
    }

    /// Place of the column of exactly this name.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|candidate| candidate.field.name() == column)
    }
}
