//! Schemas, tables and views.

use crate::CatalogView;
use crate::information_schema::keys_of;
use crate::lazy_table::{Cell, Defined, Rows, columns};
use crate::listing::{About, Listed};
use crate::pg_catalog::oids;
use bowshot_api::catalog_names::{PG_TEMP, TEMPORARY_CATALOG};
use datafusion::error::Result;
use futures::future::BoxFuture;

pub(crate) static NAMESPACE: Defined = Defined {
    name: "pg_namespace",
    columns: columns![oid Long, nspname Text, nspowner Long, nspacl Texts],
    rows: |visible, _, rows| {
        let current = visible.default_names().0;
        let is_here = |catalog: &str| catalog == current || catalog == TEMPORARY_CATALOG;
        for (catalog, schema) in visible.schemas_within(is_here) {
            let oid = Cell::from(oids::schema(&catalog, &schema));
            // Under the name that finds its tables: PostgreSQL has a number behind it.
            let name = if catalog == TEMPORARY_CATALOG { PG_TEMP.into() } else { schema.into() };
            rows.add([oid, name, oids::OWNER.into()]);
        }
        ready()
    },
};

pub(crate) static CLASS: Defined = Defined {
    name: "pg_class",
    columns: columns![
        oid Long, relname Text, relnamespace Long, reltype Long, reloftype Long, relowner Long, relam Long,
        relfilenode Long, reltablespace Long, relpages Int, reltuples Long, relallvisible Int,
        relallfrozen Int, reltoastrelid Long, relhasindex Bool, relisshared Bool, relpersistence Text,
        relkind Text, relnatts Short, relchecks Short, relhasrules Bool, relhastriggers Bool,
        relhassubclass Bool, relrowsecurity Bool, relforcerowsecurity Bool, relispopulated Bool,
        relreplident Text, relispartition Bool, relrewrite Long, relfrozenxid Long, relminmxid Long,
        relacl Texts, reloptions Texts, relpartbound Text
    ],
    rows: classes,
};

pub(crate) static TABLES: Defined = Defined {
    name: "pg_tables",
    columns: columns![
        schemaname Text, tablename Text, tableowner Text, tablespace Text, hasindexes Bool, hasrules Bool,
        hastriggers Bool, rowsecurity Bool
    ],
    rows: |visible, about, rows| {
        for listed in here(visible, about).into_iter().filter(|listed| kind(listed) == "r") {
            let key = listed.definition().is_some_and(|definition| definition.primary_key.is_some());
            let (schema, name) = (Cell::from(&listed.name.schema), Cell::from(&listed.name.name));
            let owner = Cell::from(&visible.principal.name);
            rows.add([schema, name, owner, Cell::Null, key.into(), false.into(), false.into(), false.into()]);
        }
        ready()
    },
};

pub(crate) static VIEWS: Defined = Defined {
    name: "pg_views",
    columns: columns![schemaname Text, viewname Text, viewowner Text, definition Text],
    rows: |visible, about, rows| {
        for listed in here(visible, about) {
            let Some(view) = listed.view() else { continue };
            let owner = Cell::from(&visible.principal.name);
            rows.add([(&listed.name.schema).into(), (&listed.name.name).into(), owner, (&view.sql).into()]);
        }
        ready()
    },
};

pub(crate) static MATVIEWS: Defined = Defined {
    name: "pg_matviews",
    columns: columns![
        schemaname Text, matviewname Text, matviewowner Text, tablespace Text, hasindexes Bool,
        ispopulated Bool, definition Text
    ],
    rows: |visible, about, rows| {
        for listed in here(visible, about) {
            let Some(sql) = listed.materialized() else { continue };
            let (schema, name) = (Cell::from(&listed.name.schema), Cell::from(&listed.name.name));
            let owner = Cell::from(&visible.principal.name);
            rows.add([schema, name, owner, Cell::Null, false.into(), true.into(), sql.into()]);
        }
        ready()
    },
};

pub(crate) fn ready<'a>() -> BoxFuture<'a, Result<()>> {
    Box::pin(std::future::ready(Ok(())))
}

/// The tables of the catalog in force, and the session's own: a connection of PostgreSQL's knows one database.
pub(crate) fn here(visible: &CatalogView, about: &About) -> Vec<Listed> {
    let (current, _) = visible.default_names();
    visible.listed_within(about, |catalog| catalog == current || catalog == TEMPORARY_CATALOG)
}

/// The numbers of the tables of these names, and of those that have an index of such a name, with all of their indexes.
pub(crate) fn numbers(visible: &CatalogView, names: &[&str]) -> Vec<i64> {
    let mut numbers = Vec::new();
    for listed in here(visible, &About::default()) {
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
        Ok(())
    })
}

fn class(listed: &Listed, columns: usize) -> [Cell; 28] {
    let oid = oids::table(&listed.name);
    let row_count = listed.rows().unwrap_or(-1);
    let definition = listed.definition();
    let key = definition.is_some_and(|definition| definition.primary_key.is_some());
    [
        oid.into(),
        (&listed.name.name).into(),
        oids::schema(&listed.name.catalog, &listed.name.schema).into(),
        if listed.is_internal() { 0 } else { oids::row_type(&listed.name) }.into(),
        0.into(),
        oids::OWNER.into(),
        if listed.is_view() { 0 } else { 2 }.into(),
        oid.into(),
        0.into(),
        // Tables have no pages: DuckDB would read those that there are by their numbers.
        0.into(),
        row_count.into(),
        Cell::Null,
        Cell::Null,
        0.into(),
        key.into(),
        false.into(),
        if listed.is_temporary() { "t" } else { "p" }.into(),
        kind(listed).into(),
        columns.into(),
        definition.map_or(0, |definition| definition.checks.len()).into(),
        listed.is_view().into(),
        false.into(),
        false.into(),
        false.into(),
        false.into(),
        true.into(),
        if listed.is_view() { "n" } else { "d" }.into(),
        false.into(),
    ]
}

/// PostgreSQL's letter for what a table is.
fn kind(listed: &Listed) -> &'static str {
    match listed.materialized() {
        Some(_) => "m",
        None if listed.is_view() => "v",
        None => "r",
    }
}

/// The index that PostgreSQL would have for a key.
fn index(listed: &Listed, name: &str, columns: usize) -> [Cell; 28] {
    let mut cells = class(listed, columns);
    let oid = oids::constraint(&listed.name, name);
    for (place, cell) in [
        (0, Cell::from(oid)),
        (1, name.into()),
        (3, 0.into()),
        (6, 403.into()),
        (7, oid.into()),
        (14, false.into()),
        (17, "i".into()),
        (19, 0.into()),
    ] {
        if let Some(there) = cells.get_mut(place) {
            *there = cell;
        }
    }
    cells
}
