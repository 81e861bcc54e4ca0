//! Keys and conditions, and the indexes that PostgreSQL would have for the keys.

use crate::CatalogView;
use crate::functions::relations;
use crate::information_schema::{KeyKind, key_name, keys_of, reference_name, references, with_kinds};
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, cells, replace, tables};
use crate::listing::Listed;
use crate::pg_catalog::classes::here;
use crate::pg_catalog::oids;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Definition, Entry, EntryName, Key, Reference};

pub(crate) static TABLES: &[Defined] = tables! {
    pg_constraint: oid Long, conname Text, connamespace Long, contype Text, condeferrable Bool,
        condeferred Bool, conenforced Bool, convalidated Bool, conrelid Long, contypid Long, conindid Long,
        conparentid Long, confrelid Long, confupdtype Text, confdeltype Text, confmatchtype Text,
        conislocal Bool, coninhcount Short, connoinherit Bool, conperiod Bool, conkey Shorts,
        confkey Shorts, conpfeqop Longs, conppeqop Longs, conffeqop Longs, confdelsetcols Shorts,
        conexclop Longs, conbin Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let Some(definition) = listed.definition() else { continue };
            for (name, key, kind) in keys_of(&listed) {
                let index = oids::constraint(&listed.name, &name);
                let letter = if kind == KeyKind::Primary { "p" } else { "u" };
                rows.add(constraint(&listed, (&name, letter), index, (positions(&listed, key), Cell::Null)));
            }
            for check in &definition.checks {
                let text = Cell::from(&check.sql);
                rows.add(constraint(&listed, (&check.name, "c"), 0, (Cell::Null, text)));
            }
            for reference in references(&listed) {
                rows.add(foreign(visible, &listed, reference));
            }
        }
    });

    pg_index: indexrelid Long, indrelid Long, indnatts Short, indnkeyatts Short, indisunique Bool,
        indnullsnotdistinct Bool, indisprimary Bool, indisexclusion Bool, indimmediate Bool,
        indisclustered Bool, indisvalid Bool, indcheckxmin Bool, indisready Bool, indislive Bool,
        indisreplident Bool, indkey Vector, indcollation Oids, indclass Oids, indoption Vector,
        indexprs Text, indpred Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            for (name, key, kind) in keys_of(&listed) {
                rows.add(index(&listed, &name, key, kind));
            }
        }
    });

    pg_indexes: schemaname Text, tablename Text, indexname Text, tablespace Text, indexdef Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let (schema, table) = (&listed.name.schema, &listed.name.name);
            for (name, key, _) in keys_of(&listed) {
                let columns = key.columns.join(", ");
                let text = format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({columns})");
                rows.add(cells![schema, table, name, Cell::Null, text]);
            }
        }
    });
};

/// The constraints of a table that are commented on, with what is said.
pub(crate) fn comments<'a>(table: &EntryName, definition: &'a Definition) -> Vec<(String, &'a String)> {
    let keys = with_kinds(definition).map(|(key, kind)| (key_name(table, key, kind), &key.comment));
    let checks = definition.checks.iter().map(|check| (check.name.clone(), &check.comment));
    let references = definition.references.iter();
    let references = references.map(|other| (reference_name(table, other), &other.comment));
    let all = keys.chain(checks).chain(references);
    all.filter_map(|(name, comment)| Some((name, comment.as_ref()?))).collect()
}

/// The index that PostgreSQL would have for a key.
fn index(listed: &Listed, name: &str, key: &Key, kind: KeyKind) -> impl Iterator<Item = Cell> {
    let (oid, table) = (oids::constraint(&listed.name, name), oids::table(&listed.name));
    let (count, is_primary) = (key.columns.len(), kind == KeyKind::Primary);
    let first = cells![oid, table, count, count, true, false, is_primary, false, true, false];
    let rest = cells![true, false, true, true, false, positions(listed, key)];
    // How texts are compared, and which orders values, is the same everywhere.
    first.into_iter().chain(rest).chain(std::iter::repeat_n(Cell::Numbers(vec![0; count]), 3))
}

/// Places of the columns of a key, from one.
fn positions(listed: &Listed, key: &Key) -> Cell {
    places(listed.definition().map(AsRef::as_ref), &key.columns)
}

fn places(definition: Option<&Definition>, columns: &[String]) -> Cell {
    let Some(definition) = definition else { return Cell::Null };
    let positions = columns.iter().filter_map(|column| definition.position(column));
    Cell::Numbers(positions.map(|position| i64::try_from(position + 1).unwrap_or(i64::MAX)).collect())
}

/// What points to another table, which nobody enforces.
fn foreign(visible: &CatalogView, listed: &Listed, reference: &Reference) -> Vec<Cell> {
    let name = reference_name(&listed.name, reference);
    let key = places(listed.definition().map(AsRef::as_ref), &reference.columns);
    let mut cells = constraint(listed, (&name, "f"), 0, (key, Cell::Null));
    let seen = (&visible.pinned, &visible.access);
    let Some(referred) = seen_referred(&listed.name, reference, seen) else { return cells };
    let definition = match visible.pinned.entry(&referred) {
        Some(Entry::Table(table)) => Some(table.definition().as_ref()),
        _ => None,
    };
    let columns = definition.map_or_else(Vec::new, |definition| referred_columns(reference, definition));
    let [update, delete] =
        [&reference.on_update, &reference.on_delete].map(|action| action_letter(action.as_deref()).into());
    replace(&mut cells, [(6, false.into()), (12, oids::table(&referred).into()), (13, update), (14, delete)]);
    replace(&mut cells, [(15, "s".into()), (21, places(definition, &columns))]);
    cells
}

/// PostgreSQL's letter for what becomes of rows.
fn action_letter(action: Option<&str>) -> &'static str {
    match action {
        Some("RESTRICT") => "r",
        Some("CASCADE") => "c",
        Some("SET NULL") => "n",
        Some("SET DEFAULT") => "d",
        _ => "a",
    }
}

/// What a reference says of rows whose other row changes or goes, as PostgreSQL writes it: not what is so anyway.
pub(crate) fn actions(reference: &Reference) -> String {
    let mut text = String::new();
    for (event, action) in [("UPDATE", &reference.on_update), ("DELETE", &reference.on_delete)] {
        if let Some(action) = action.as_deref().filter(|action| *action != "NO ACTION") {
            text.push_str(&format!(" ON {event} {action}"));
        }
    }
    text
}

/// The table that a reference points to: beside its own where it names no schema.
fn referred(table: &EntryName, reference: &Reference) -> Option<EntryName> {
    match relations::parts(&reference.table)?.as_slice() {
        [name] => Some(EntryName::new(&table.catalog, &table.schema, name)),
        [schema, name] => Some(EntryName::new(&table.catalog, schema, name)),
        [catalog, schema, name] => Some(EntryName::new(catalog, schema, name)),
        _ => None,
    }
}

/// The same, if the user may know of it and of its columns. Tables of `pinned` have the columns that are seen.
pub(crate) fn seen_referred(
    table: &EntryName,
    reference: &Reference,
    (pinned, access): (&Pinned, &Access),
) -> Option<EntryName> {
    let other = referred(table, reference)?;
    let is_seen = match pinned.entry(&other) {
        _ if access.is_everything() => true,
        Some(Entry::Table(table)) => {
            let definition = table.definition();
            access.sees(&other) && reference.referred.iter().all(|name| definition.position(name).is_some())
        }
        _ => access.sees(&other),
    };
    is_seen.then_some(other)
}

/// The columns that a reference points to: those of the primary key where it names none.
pub(crate) fn referred_columns(reference: &Reference, definition: &Definition) -> Vec<String> {
    match (reference.referred.is_empty(), &definition.primary_key) {
        (true, Some(key)) => key.columns.clone(),
        _ => reference.referred.clone(),
    }
}

fn constraint(
    listed: &Listed,
    (name, kind): (&str, &str),
    index: i64,
    (key, text): (Cell, Cell),
) -> Vec<Cell> {
    let oid = oids::constraint(&listed.name, name);
    let schema = oids::schema(&listed.name.catalog, &listed.name.schema);
    let mut cells = Vec::from(cells![oid, name, schema, kind, false, false, true, true]);
    cells.extend(cells![oids::table(&listed.name), 0, index, 0, 0, " ", " ", " ", true, 0, true, false, key]);
    cells.extend([const { Cell::Null }; 6]);
    cells.push(text);
    cells
}
