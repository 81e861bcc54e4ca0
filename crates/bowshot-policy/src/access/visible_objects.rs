//! Which objects of the catalog a user sees.

use super::{Access, Limits, Reading};
use crate::rules::place_of;
use bowshot_tables::{Definition, Entry, EntryName, External, Snapshot, Table, View};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Access {
    /// The snapshot that is left for the user. Tables that are read in part have the columns that are seen, and no rows.
    pub fn seen(&self, all: &Snapshot) -> Snapshot {
        all.seen(
            |name, entry| self.seen_entry(name, entry),
            |catalog, schema| self.sees_schema(catalog, schema),
        )
    }

    fn seen_entry(&self, name: &EntryName, entry: &Entry) -> Option<Entry> {
        let own = self.owns(&place_of(name)) || self.is_always_seen(name);
        let limits = match self.reading(name) {
            // The text of a query names what may not be seen, and so does the place of files.
            Reading::All if own || !tells_of_others(entry) => return Some(entry.clone()),
            Reading::Unseen => return None,
            Reading::All => Limits::default(),
            Reading::Denied => Limits { columns: self.columns_of_rights(name), ..Limits::default() },
            Reading::Limited(limits) => limits,
        };
        Some(match entry {
            Entry::Table(table) => {
                Entry::Table(Arc::new(Table::new(left_of(table.definition(), limits.columns.as_ref()))))
            }
            Entry::View(view) => Entry::View(Arc::new(View { sql: String::new(), ..view.as_ref().clone() })),
            Entry::External(external) => Entry::External(Arc::new(External {
                location: String::new(),
                found: None,
                options: Vec::new(),
                ..external.as_ref().clone()
            })),
            Entry::Broken(broken) => Entry::Broken(Arc::clone(broken)),
        })
    }
}

/// A definition with these columns alone, and with nothing that is said of others.
fn left_of(definition: &Definition, columns: Option<&BTreeSet<String>>) -> Definition {
    let mut left = definition.clone();
    if let Some(query) = &mut left.materialized {
        query.sql.clear();
        query.sources.clear();
        query.last = None;
    }
    let Some(seen) = columns else { return left };
    let all_seen = |names: &[String]| names.iter().all(|name| seen.contains(name));
    left.columns.retain(|column| seen.contains(column.field.name()));
    left.primary_key = left.primary_key.filter(|key| all_seen(&key.columns));
    left.unique.retain(|key| all_seen(&key.columns));
    left.references.retain(|reference| all_seen(&reference.columns));
    // Their texts may name any column.
    left.checks.clear();
    left.clauses = None;
    left.generated.clear();
    left.identities.retain(|identity| seen.contains(&identity.column));
    left
}

fn tells_of_others(entry: &Entry) -> bool {
    match entry {
        Entry::Table(table) => table.definition().materialized.is_some(),
        Entry::View(_) | Entry::External(_) => true,
        Entry::Broken(_) => false,
    }
}
