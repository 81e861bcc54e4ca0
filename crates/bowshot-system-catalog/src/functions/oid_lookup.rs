//! Tables and constraints by OID, built once per batch, so that a lookup for each row is not a search of all tables.

use crate::functions::sequences::{self, Sequence};
use crate::functions::{Call, relations};
use crate::pg_catalog::oids;
use bowshot_tables::{Definition, Entry, EntryName};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Tables and types by OID. It is filled at the first question.
#[derive(Debug, Default)]
pub(crate) struct OidLookup {
    tables: OnceCell<HashMap<i64, EntryName>>,
    /// By the types of their rows and of arrays of those.
    row_types: OnceCell<HashMap<i64, EntryName>>,
    constraints: OnceCell<HashMap<i64, EntryName>>,
    sequences: OnceCell<Vec<Sequence>>,
}

impl Call<'_> {
    /// The table or view of a number, those of the server about itself included.
    pub(crate) fn table(&self, oid: i64) -> Option<&EntryName> {
        let tables = self.numbered.tables.get_or_init(|| {
            let mut tables = HashMap::new();
            for name in relations::tables(self) {
                tables.entry(oids::table(&name)).or_insert(name);
            }
            tables
        });
        tables.get(&oid)
    }

    /// The table or view that a number is the type of the rows of, and whether it is that of arrays of them.
    pub(crate) fn row_type(&self, oid: i64) -> Option<(&EntryName, bool)> {
        let types = self.numbered.row_types.get_or_init(|| {
            let own = relations::tables(self).into_iter().filter(|name| !relations::is_internal(name));
            own.flat_map(|name| [(oids::row_type(&name), name.clone()), (oids::row_array(&name), name)])
                .collect()
        });
        let name = types.get(&oid)?;
        Some((name, oids::row_array(name) == oid))
    }

    /// The sequences, and the columns that number themselves.
    pub(crate) fn sequences(&self) -> &[Sequence] {
        self.numbered.sequences.get_or_init(|| sequences::all(self))
    }

    /// The table that a key, index or check belongs to, and its definition.
    pub(crate) fn constrained(&self, oid: i64) -> Option<(&EntryName, Arc<Definition>)> {
        let pinned = self.pinned();
        let constraints = self.numbered.constraints.get_or_init(|| {
            let mut constraints = HashMap::new();
            for (name, table) in pinned.own().tables().chain(pinned.shared().tables()) {
                for constraint in relations::constraints(&name, table.definition()) {
                    constraints.entry(oids::constraint(&name, &constraint)).or_insert_with(|| name.clone());
                }
            }
            constraints
        });
        let name = constraints.get(&oid)?;
        match pinned.entry(name) {
            Some(Entry::Table(table)) => Some((name, Arc::clone(table.definition()))),
            _ => None,
        }
    }
}
