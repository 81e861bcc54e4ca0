//! What a table is, apart from its rows.

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use std::sync::Arc;
use uuid::Uuid;

/// Key of a field's metadata under which stands what SQL declares of the column beyond its Arrow type.
pub const DECLARED: &str = "bowshot:type";
/// Key of the metadata that a column has in queries whose texts are compared without the blanks at their end: CHAR(n).
pub const PADDED: &str = "bowshot:padded";
/// The extension type that columns of an enumerated type have in queries; their labels stand in the declaration.
pub const ENUM: &str = "bowshot.enum";
/// What the keys of the extension type and of its parameters begin with.
const EXTENSION_KEYS: &str = "ARROW:extension:";
/// The extension type of JSON, which is text.
const JSON: &str = "arrow.json";

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

/// A column whose rows number themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// Name of the column.
    pub column: String,
    /// Of the counter, which stays with the column whatever it is called.
    pub id: Uuid,
    /// The first number.
    pub start: i64,
    /// From one to the next.
    pub step: i64,
    /// Whether no statement may give another value.
    pub always: bool,
}

/// A column that is computed from the others of its row.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// Name of the column.
    pub column: String,
    /// SQL expression over the other columns.
    pub sql: String,
}

/// Columns that point to rows of another table, as the user says; nobody checks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Name of the constraint.
    pub name: Option<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The other table, as SQL.
    pub table: String,
    /// Its columns; its primary key without any.
    pub referred: Vec<String>,
}

/// The query whose rows a table has.
#[derive(Debug, Clone, PartialEq)]
pub struct Materialized {
    /// The query.
    pub sql: String,
    /// Name of the dialect that it is written in.
    pub dialect: String,
    /// Catalog of names that do not say theirs.
    pub default_catalog: String,
    /// Schema of names that do not say theirs.
    pub default_schema: String,
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
    /// The primary key. Rows that are added to a table that has one may conflict with rows that others add.
    pub primary_key: Option<Key>,
    /// Other columns of which no two rows have the same values, unless one is null. Named as the primary key is.
    pub unique: Vec<Key>,
    /// Conditions on each row.
    pub checks: Vec<Check>,
    /// Columns that number themselves.
    pub identities: Vec<Identity>,
    /// Columns that are computed.
    pub generated: Vec<Generated>,
    /// What the user says about rows of other tables.
    pub references: Vec<Reference>,
    /// The query whose rows these are, for a materialised view: no statement changes them but REFRESH.
    pub materialized: Option<Materialized>,
    /// What the user says about the table.
    pub comment: Option<String>,
    /// What the statement that made the table says of where its rows lie. Has no meaning here, and is kept to be shown.
    pub clauses: Option<String>,
}

impl Definition {
    /// The Arrow schema of the columns, without metadata. Made anew by each call; a table keeps its own.
    pub fn schema(&self) -> SchemaRef {
        let plain = |column: &Column| {
            if column.field.metadata().is_empty() {
                return Arc::clone(&column.field);
            }
            // Bytes that are UUIDs become other texts than bytes do.
            let extension = column.field.metadata().get(EXTENSION).filter(|name| *name == UUID);
            let kept = extension.map(|name| (EXTENSION.to_owned(), name.clone()));
            Arc::new(column.field.as_ref().clone().with_metadata(kept.into_iter().collect()))
        };
        Arc::new(Schema::new(self.columns.iter().map(plain).collect::<Vec<_>>()))
    }

    /// The columns of `plain`, which are these, with what operators ask for: JSONB has no spelling, CHAR(n) is padded,
    /// ENUM has an order of its own, and JSON is more than a text.
    pub(super) fn for_operators(&self, plain: &SchemaRef) -> SchemaRef {
        let marked = |column: &Column| {
            let metadata = column.field.metadata();
            match metadata.get(DECLARED).map(String::as_str) {
                Some("JSONB") => Some(metadata.clone()),
                Some(declared) if declared.starts_with("ENUM") => {
                    let extension = (EXTENSION.to_owned(), ENUM.to_owned());
                    Some([(DECLARED.to_owned(), declared.to_owned()), extension].into())
                }
                Some(declared) if declared.starts_with("CHAR(") => {
                    Some([(PADDED.to_owned(), String::new())].into())
                }
                // A cast to text takes the extension type away, and would leave the declaration.
                _ if metadata.get(EXTENSION).is_some_and(|name| name == JSON) => {
                    let extension = metadata.iter().filter(|(key, _)| key.starts_with(EXTENSION_KEYS));
                    Some(extension.map(|(key, value)| (key.clone(), value.clone())).collect())
                }
                _ => None,
            }
        };
        if self.columns.iter().all(|column| marked(column).is_none()) {
            return Arc::clone(plain);
        }
        let fields = plain.fields().iter().zip(&self.columns).map(|(field, column)| match marked(column) {
            Some(metadata) => Arc::new(field.as_ref().clone().with_metadata(metadata)),
            None => Arc::clone(field),
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The primary key and all others.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.primary_key.iter().chain(&self.unique)
    }

    /// How a column numbers its rows, if it does.
    pub fn identity(&self, column: &str) -> Option<&Identity> {
        self.identities.iter().find(|identity| identity.column == column)
    }

    /// How a column is computed, if it is.
    pub fn generated(&self, column: &str) -> Option<&Generated> {
        self.generated.iter().find(|generated| generated.column == column)
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
