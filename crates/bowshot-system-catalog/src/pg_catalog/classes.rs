//! Schemas, tables and views.

use crate::CatalogView;
use crate::information_schema::keys_of;
use crate::lazy_table::Make::{Later, Now};
use crate::lazy_table::{Cell, Defined, Rows, cells, replace, tables};
use crate::listing::{About, Listed};
use crate::pg_catalog::oids;
use bowshot_api::catalog_names::{PG_TEMP, TEMPORARY_CATALOG};
use bowshot_tables::EntryName;
use datafusion::error::Result;
use futures::future::BoxFuture;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_namespace: oid Long, nspname Text, nspowner Long, nspacl Texts
    => Now(|visible, _, rows| {
        let current = visible.default_names().0;
        let is_here = |catalog: &str| catalog == current || catalog == TEMPORARY_CATALOG;
        for (catalog, schema) in visible.schemas_within(is_here) {
            let oid = oids::schema(&catalog, &schema);
            // Under the name that finds its tables: PostgreSQL has a number behind it.
            let name = if catalog == TEMPORARY_CATALOG { PG_TEMP } else { schema.as_str() };
            rows.add(cells![oid, name, oids::OWNER]);
        }
    });

    pg_class: oid Long, relname Text, relnamespace Long, reltype Long, reloftype Long, relowner Long,
        relam Long, relfilenode Long, reltablespace Long, relpages Int, reltuples Long, relallvisible Int,
        relallfrozen Int, reltoastrelid Long, relhasindex Bool, relisshared Bool, relpersistence Text,
        relkind Text, relnatts Short, relchecks Short, relhasrules Bool, relhastriggers Bool,
        relhassubclass Bool, relrowsecurity Bool, relforcerowsecurity Bool, relispopulated Bool,
        relreplident Text, relispartition Bool, relrewrite Long, relfrozenxid Long, relminmxid Long,
        relacl Texts, reloptions Texts, relpartbound Text => Later(classes);

    pg_tables: schemaname Text, tablename Text, tableowner Text, tablespace Text, hasindexes Bool,
        hasrules Bool, hastriggers Bool, rowsecurity Bool
    => Now(|visible, about, rows| {
        for listed in here(visible, about).into_iter().filter(|listed| kind(listed) == "r") {
            let key = listed.definition().is_some_and(|definition| definition.primary_key.is_some());
            let (EntryName { schema, name, .. }, owner) = (&listed.name, &visible.principal.name);
            rows.add(cells![schema, name, owner, Cell::Null, key, false, false, false]);
        }
    });

    pg_views: schemaname Text, viewname Text, viewowner Text, definition Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let Some(view) = listed.view() else { continue };
            rows.add(cells![&listed.name.schema, &listed.name.name, &visible.principal.name, &view.sql]);
        }
    });

    pg_matviews: schemaname Text, matviewname Text, matviewowner Text, tablespace Text, hasindexes Bool,
        ispopulated Bool, definition Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let Some(sql) = listed.materialized() else { continue };
            let (EntryName { schema, name, .. }, owner) = (&listed.name, &visible.principal.name);
            rows.add(cells![schema, name, owner, Cell::Null, false, true, sql]);
        }
    });
};

/// The tables of the catalog in force, and the session's own: a connection of PostgreSQL's knows one database.
pub(crate) fn here(visible: &CatalogView, about: &About) -> Vec<Listed> {
    let (current, _) = visible.default_names();
    visible.listed_within(about, |catalog| catalog == current || catalog == TEMPORARY_CATALOG)
}

/// The sequences of the same catalogs.
pub(crate) fn sequences_here(visible: &CatalogView) -> Vec<Listed> {
    let (current, _) = visible.default_names();
    visible.sequences_within(|catalog| catalog == current || catalog == TEMPORARY_CATALOG)
}

/// The numbers of the tables of these names, and of those that have an index of such a name, with all of their indexes.
pub(crate) fn numbers(visible: &CatalogView, names: &[&str]) -> Vec<i64> {
    let mut numbers = Vec::new();
    for listed in here(visible, &About::default()).into_iter().chain(sequences_here(visible)) {
        let keys = keys_of(&listed);
        let is_named = |name: &str| names.contains(&name);
        if is_named(&listed.name.name) || keys.iter().any(|(index, ..)| is_named(index)) {
            numbers.push(oids::table(&listed.name));
            numbers.extend(keys.iter().map(|(index, ..)| oids::constraint(&listed.name, index)));
        }
    }
    numbers
}

fn classes<'a>(visible: &'a CatalogView, about: &'a About, rows: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for listed in here(visible, about) {
            // Those of a view are known when it is planned.
            let columns = match rows.reads("relnatts") {
                true => visible.columns_of(&listed).await.map_or(0, |schema| schema.fields().len()),
                false => 0,
            };
            rows.add(class(&listed, columns));
            for (name, key, _) in keys_of(&listed) {
                rows.add(index(&listed, &name, key.columns.len()));
            }
        }
        sequences_here(visible).iter().for_each(|sequence| rows.add(class(sequence, 1)));
        Ok(())
    })
}

fn class(listed: &Listed, columns: usize) -> Vec<Cell> {
    let (oid, name) = (oids::table(&listed.name), &listed.name.name);
    let definition = listed.definition();
    let key = definition.is_some_and(|definition| definition.primary_key.is_some());
    let checks = definition.map_or(0, |definition| definition.checks.len());
    let namespace = oids::schema(&listed.name.catalog, &listed.name.schema);
    let row_type = if listed.is_internal() { 0 } else { oids::row_type(&listed.name) };
    let (access_method, identity) = if listed.is_view() { (0, "n") } else { (2, "d") };
    let persistence = if listed.is_temporary() { "t" } else { "p" };
    let mut cells = Vec::from(cells![oid, name, namespace, row_type, 0, oids::OWNER, access_method, oid, 0]);
    // Tables have no pages: DuckDB would read those that there are by their numbers.
    cells.extend(cells![0, listed.rows().unwrap_or(-1), Cell::Null, Cell::Null, 0, key, false]);
    cells.extend(cells![persistence, kind(listed), columns, checks, listed.is_view()]);
    cells.extend(cells![false, false, false, false, true, identity, false]);
    cells
}

/// PostgreSQL's letter for what a table is.
fn kind(listed: &Listed) -> &'static str {
    match listed.materialized() {
        Some(_) => "m",
        None if listed.is_view() => "v",
        None if listed.definition().is_some_and(|definition| definition.sequence().is_some()) => "S",
        None => "r",
    }
}

/// The index that PostgreSQL would have for a key.
fn index(listed: &Listed, name: &str, columns: usize) -> Vec<Cell> {
    let mut cells = class(listed, columns);
    let oid = oids::constraint(&listed.name, name);
    replace(&mut cells, [(0, oid.into()), (1, name.into()), (3, 0.into()), (6, 403.into()), (7, oid.into())]);
    replace(&mut cells, [(14, false.into()), (17, "i".into()), (19, 0.into())]);
    cells
}
