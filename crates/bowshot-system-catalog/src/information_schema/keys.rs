//! Keys and conditions.

use crate::CatalogView;
use crate::information_schema::tables::full;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Rows, cells, tables};
use crate::listing::{About, Listed};
use crate::pg_catalog::constraints::{referred_columns, seen_referred};
use bowshot_tables::{Definition, Entry, EntryName, Key, Reference};

pub(crate) static TABLES: &[Defined] = tables! {
    table_constraints: constraint_catalog Text, constraint_schema Text, constraint_name Text,
        table_catalog Text, table_schema Text, table_name Text, constraint_type Text, is_deferrable Text,
        initially_deferred Text, enforced Text, nulls_distinct Text => Now(constraints);
    key_column_usage: constraint_catalog Text, constraint_schema Text, constraint_name Text,
        table_catalog Text, table_schema Text, table_name Text, column_name Text, ordinal_position Int,
        position_in_unique_constraint Int, referenced_table_schema Text, referenced_table_name Text,
        referenced_column_name Text => Now(key_columns);
    // MySQL's table of indexes: keys, since there are no indexes.
    statistics: table_catalog Text, table_schema Text, table_name Text, non_unique Int, index_schema Text,
        index_name Text, seq_in_index Int, column_name Text, collation Text, cardinality Int, nullable Text,
        index_type Text, index_comment Text => Now(statistics);
    constraint_column_usage: table_catalog Text, table_schema Text, table_name Text, column_name Text,
        constraint_catalog Text, constraint_schema Text, constraint_name Text => Now(usage);
    referential_constraints: constraint_catalog Text, constraint_schema Text, constraint_name Text,
        unique_constraint_catalog Text, unique_constraint_schema Text, unique_constraint_name Text,
        match_option Text, update_rule Text, delete_rule Text,
        // MySQL's.
        table_name Text, referenced_table_name Text => Now(referential);
    check_constraints: constraint_catalog Text, constraint_schema Text, constraint_name Text,
        check_clause Text, table_name Text => Now(checks);
};

/// What a key is called: PostgreSQL's name where the user gave none.
pub fn key_name(table: &EntryName, key: &Key, kind: KeyKind) -> String {
    key.name.clone().unwrap_or_else(|| match kind {
        KeyKind::Primary => format!("{}_pkey", table.name),
        KeyKind::Unique => format!("{}_{}_key", table.name, key.columns.join("_")),
    })
}

/// Which of its keys a table has its rows told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Primary,
    Unique,
}

impl KeyKind {
    pub(crate) fn in_sql(self) -> &'static str {
        if self == Self::Primary { "PRIMARY KEY" } else { "UNIQUE" }
    }
}

pub(crate) fn keys(listed: &Listed) -> Vec<(String, &Key, KeyKind)> {
    let keys = listed.definition().into_iter().flat_map(|definition| with_kinds(definition));
    keys.map(|(key, kind)| (key_name(&listed.name, key, kind), key, kind)).collect()
}

/// The keys of a table, the primary one first.
pub(crate) fn with_kinds(definition: &Definition) -> impl Iterator<Item = (&Key, KeyKind)> {
    let primary = definition.primary_key.iter().map(|key| (key, KeyKind::Primary));
    primary.chain(definition.unique.iter().map(|key| (key, KeyKind::Unique)))
}

/// What a pointer to another table is called.
pub fn reference_name(table: &EntryName, reference: &Reference) -> String {
    let own = || format!("{}_{}_fkey", table.name, reference.columns.join("_"));
    reference.name.clone().unwrap_or_else(own)
}

pub(crate) fn references(listed: &Listed) -> &[Reference] {
    listed.definition().map(|definition| definition.references.as_slice()).unwrap_or_default()
}

/// Catalog, schema and name of a constraint, which is where its table is.
fn constraint(listed: &Listed, name: &str) -> [Cell; 3] {
    cells![&listed.name.catalog, &listed.name.schema, name]
}

/// The names of all constraints of a table, with their kinds.
fn of_table(listed: &Listed) -> Vec<(String, &'static str)> {
    let Some(definition) = listed.definition() else { return Vec::new() };
    let mut all: Vec<_> = keys(listed).into_iter().map(|(name, _, kind)| (name, kind.in_sql())).collect();
    all.extend(definition.checks.iter().map(|check| (check.name.clone(), "CHECK")));
    let foreign = references(listed).iter();
    all.extend(foreign.map(|reference| (reference_name(&listed.name, reference), "FOREIGN KEY")));
    all
}

fn constraints(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        for (name, kind) in of_table(&listed) {
            // Nobody checks what points to other tables.
            let enforced = if kind == "FOREIGN KEY" { "NO" } else { "YES" };
            let distinct = (kind == "UNIQUE").then_some("YES");
            let rest = cells![kind, "NO", "NO", enforced, distinct];
            rows.add(constraint(&listed, &name).into_iter().chain(full(&listed)).chain(rest));
        }
    }
}

fn key_columns(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        for (name, key, _) in keys(&listed) {
            for (position, column) in key.columns.iter().enumerate() {
                let rest = cells![column, position + 1];
                rows.add(constraint(&listed, &name).into_iter().chain(full(&listed)).chain(rest));
            }
        }
        for reference in references(&listed) {
            let name = reference_name(&listed.name, reference);
            let other = other_seen(visible, &listed, reference);
            let columns = pointed_to(visible, &listed, reference).map(|(_, columns)| columns);
            let columns = columns.as_ref().or(other.as_ref().map(|_| &reference.referred));
            for (position, column) in reference.columns.iter().enumerate() {
                let place = position + 1;
                let (schema, table) =
                    (other.as_ref().map(|to| &to.schema), other.as_ref().map(|to| &to.name));
                let referred = columns.and_then(|columns| columns.get(position));
                let rest = cells![column, place, place, schema, table, referred];
                rows.add(constraint(&listed, &name).into_iter().chain(full(&listed)).chain(rest));
            }
        }
    }
}

fn statistics(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        for (name, key, kind) in keys(&listed) {
            let name = if kind == KeyKind::Primary { "PRIMARY" } else { name.as_str() };
            for (position, column) in key.columns.iter().enumerate() {
                let index = cells![0, &listed.name.schema, name, position + 1, column];
                let rest = index.into_iter().chain(cells!["A", Cell::Null, "", "HASH", ""]);
                rows.add(full(&listed).into_iter().chain(rest));
            }
        }
    }
}

/// All tables are looked through: what points to one that is asked about belongs to another.
fn usage(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for listed in visible.listed(&About::default()) {
        for (name, key, _) in keys(&listed) {
            for column in &key.columns {
                rows.add(full(&listed).into_iter().chain([column.into()]).chain(constraint(&listed, &name)));
            }
        }
        for reference in references(&listed) {
            let name = reference_name(&listed.name, reference);
            let Some((other, columns)) = pointed_to(visible, &listed, reference) else { continue };
            for column in &columns {
                let row = cells![&other.catalog, &other.schema, &other.name, column];
                rows.add(row.into_iter().chain(constraint(&listed, &name)));
            }
        }
    }
}

fn other_seen(visible: &CatalogView, listed: &Listed, reference: &Reference) -> Option<EntryName> {
    seen_referred(&listed.name, reference, (&visible.pinned, &visible.access))
}

/// The table and the columns that a reference points to, as far as the table may be seen.
fn pointed_to(
    visible: &CatalogView,
    listed: &Listed,
    reference: &Reference,
) -> Option<(EntryName, Vec<String>)> {
    let other = other_seen(visible, listed, reference)?;
    match visible.pinned.entry(&other)? {
        Entry::Table(table) => {
            let columns = referred_columns(reference, table.definition());
            Some((other, columns))
        }
        _ => None,
    }
}

fn referential(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        for reference in references(&listed) {
            let name = reference_name(&listed.name, reference);
            let unique = unique_name(visible, &listed, reference);
            let other = other_seen(visible, &listed, reference).map(|other| other.name);
            let [update, delete] = [&reference.on_update, &reference.on_delete]
                .map(|action| action.as_deref().unwrap_or("NO ACTION"));
            let rest = cells!["NONE", update, delete, &listed.name.name, other];
            rows.add(constraint(&listed, &name).into_iter().chain(unique).chain(rest));
        }
    }
}

/// Catalog, schema and name of the key that a reference points to.
fn unique_name(visible: &CatalogView, listed: &Listed, reference: &Reference) -> [Cell; 3] {
    let found = pointed_to(visible, listed, reference).and_then(|(other, columns)| {
        let Some(Entry::Table(table)) = visible.pinned.entry(&other) else { return None };
        let (key, kind) = with_kinds(table.definition()).find(|(key, _)| key.columns == columns)?;
        let name = key_name(&other, key, kind);
        Some(cells![other.catalog, other.schema, name])
    });
    found.unwrap_or([const { Cell::Null }; 3])
}

fn checks(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        let Some(definition) = listed.definition() else { continue };
        for check in &definition.checks {
            let rest = cells![&check.sql, &listed.name.name];
            rows.add(constraint(&listed, &check.name).into_iter().chain(rest));
        }
    }
}
