//! What DuckDB's and SQLite's clients ask: `duckdb_tables()` and its like, `sqlite_master`. The first are tables and table
//! functions of the same names.

use crate::client::Flavour;
use crate::information_schema::type_name;
use crate::lazy_table::{Cell, Defined, Kind, Rows, columns};
use crate::listing::{About, Listed, What};
use crate::pg_catalog::classes::ready;
use crate::pg_catalog::oids;
use crate::{CatalogView, definition_text};
use bowshot_types::names;
use datafusion::error::Result;
use futures::future::BoxFuture;

/// Those that can be called.
pub(crate) static FUNCTIONS: &[&Defined] = &[&COLUMNS, &DATABASES, &SCHEMAS, &SETTINGS, &TABLES, &VIEWS];

pub(crate) static TABLES: Defined = Defined {
    name: "duckdb_tables",
    columns: columns![
        database_name Text, database_oid Long, schema_name Text, schema_oid Long, table_name Text,
        table_oid Long, comment Text, internal Bool, temporary Bool, has_primary_key Bool,
        estimated_size Long, column_count Long, index_count Long, check_constraint_count Long, sql Text
    ],
    rows: tables,
};

pub(crate) static VIEWS: Defined = Defined {
    name: "duckdb_views",
    columns: columns![
        database_name Text, database_oid Long, schema_name Text, schema_oid Long, view_name Text,
        view_oid Long, comment Text, internal Bool, temporary Bool, sql Text
    ],
    rows: |visible, about, rows| {
        for listed in visible.listed(about).into_iter().filter(Listed::is_view) {
            let rest = [listed.is_internal().into(), listed.is_temporary().into(), text_of(&listed, visible)];
            rows.add(names_of(&listed).into_iter().chain([listed.comment().into()]).chain(rest));
        }
        ready()
    },
};

pub(crate) static COLUMNS: Defined = Defined {
    name: "duckdb_columns",
    columns: columns![
        database_name Text, database_oid Long, schema_name Text, schema_oid Long, table_name Text,
        table_oid Long, column_name Text, column_index Int, comment Text, internal Bool, column_default Text,
        is_nullable Bool, data_type Text, data_type_id Long, character_maximum_length Int,
        numeric_precision Int, numeric_precision_radix Int, numeric_scale Int
    ],
    rows: columns,
};

pub(crate) static SCHEMAS: Defined = Defined {
    name: "duckdb_schemas",
    columns: columns![
        oid Long, database_name Text, database_oid Long, schema_name Text, comment Text, internal Bool,
        sql Text
    ],
    rows: |visible, _, rows| {
        for (catalog, schema) in visible.all_schemas() {
            let internal = ["information_schema", "pg_catalog", "system"].contains(&schema.as_str());
            let (oid, database) = (oids::schema(&catalog, &schema), oids::catalog(&catalog));
            rows.add([
                oid.into(),
                catalog.into(),
                database.into(),
                schema.into(),
                Cell::Null,
                internal.into(),
            ]);
        }
        ready()
    },
};

pub(crate) static DATABASES: Defined = Defined {
    name: "duckdb_databases",
    columns: columns![
        database_name Text, database_oid Long, path Text, comment Text, internal Bool, type Text,
        readonly Bool
    ],
    rows: |visible, _, rows| {
        for catalog in visible.catalog_names() {
            let oid = oids::catalog(&catalog);
            let cells = [oid.into(), Cell::Null, Cell::Null, false.into(), "bowshot".into(), false.into()];
            rows.add([Cell::from(catalog)].into_iter().chain(cells));
        }
        ready()
    },
};

pub(crate) static SETTINGS: Defined = Defined {
    name: "duckdb_settings",
    columns: columns![name Text, value Text, description Text, input_type Text, scope Text],
    rows: |visible, _, rows| {
        for setting in visible.settings() {
            let (name, text) = (Cell::from(setting.name), Cell::from(setting.text));
            rows.add([name, setting.value.into(), text, "VARCHAR".into(), "SESSION".into()]);
        }
        ready()
    },
};

pub(crate) static SQLITE_MASTER: Defined = Defined {
    name: "sqlite_master",
    columns: SQLITE_COLUMNS,
    rows: |visible, about, rows| {
        sqlite(visible, about, rows);
        ready()
    },
};

pub(crate) static SQLITE_SCHEMA: Defined = Defined {
    name: "sqlite_schema",
    columns: SQLITE_COLUMNS,
    rows: |visible, about, rows| {
        sqlite(visible, about, rows);
        ready()
    },
};

const SQLITE_COLUMNS: &[(&str, Kind)] = columns![type Text, name Text, tbl_name Text, rootpage Int, sql Text];

/// Names and numbers of catalog, schema and table, as DuckDB's tables begin with them.
fn names_of(listed: &Listed) -> [Cell; 6] {
    let name = &listed.name;
    [
        (&name.catalog).into(),
        oids::catalog(&name.catalog).into(),
        (&name.schema).into(),
        oids::schema(&name.catalog, &name.schema).into(),
        (&name.name).into(),
        oids::table(name).into(),
    ]
}

/// The statement that would make it again; null for what no statement makes.
fn text_of(listed: &Listed, visible: &CatalogView) -> Cell {
    match &listed.what {
        What::Table(table) | What::Part(table) => {
            let seen = (&visible.pinned, &visible.access);
            definition_text::table_text(&listed.name, table.definition(), visible.is_durable, seen).into()
        }
        What::View(view) => definition_text::view_text(&listed.name, view).into(),
        What::External(external) => definition_text::external_text(&listed.name, external).into(),
        What::Broken | What::Files | What::System | What::Standard => Cell::Null,
    }
}

fn tables<'a>(visible: &'a CatalogView, about: &'a About, rows: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for listed in visible.listed(about).into_iter().filter(|listed| !listed.is_view()) {
            let columns = visible.columns_of(&listed).await.map(|schema| schema.fields().len());
            let definition = listed.definition();
            let key = definition.is_some_and(|definition| definition.primary_key.is_some());
            let size = match &listed.what {
                What::Table(table) => Some(table.rows().cast_signed()),
                _ => None,
            };
            let rest = [
                listed.comment().into(),
                listed.is_internal().into(),
                listed.is_temporary().into(),
                key.into(),
                size.into(),
                columns.into(),
                usize::from(key).into(),
                definition.map_or(0, |definition| definition.checks.len()).into(),
                text_of(&listed, visible),
            ];
            rows.add(names_of(&listed).into_iter().chain(rest));
        }
        Ok(())
    })
}

fn columns<'a>(visible: &'a CatalogView, about: &'a About, rows: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for listed in visible.listed(about) {
            let Some(schema) = visible.columns_of(&listed).await else { continue };
            for (position, field) in schema.fields().iter().enumerate() {
                let column = listed.definition().and_then(|definition| definition.columns.get(position));
                let digits = names::number_digits(field.data_type());
                let rest = [
                    field.name().into(),
                    (position + 1).into(),
                    column.and_then(|column| column.comment.clone()).into(),
                    listed.is_internal().into(),
                    column.and_then(|column| column.default.clone()).into(),
                    field.is_nullable().into(),
                    type_name(field, Flavour::Bowshot).into(),
                    names::postgres(field).oid.into(),
                    Cell::Null,
                    digits.map(|(digits, _, _)| digits).into(),
                    digits.map(|(_, base, _)| base).into(),
                    digits.and_then(|(_, _, scale)| scale).into(),
                ];
                rows.add(names_of(&listed).into_iter().chain(rest));
            }
        }
        Ok(())
    })
}

fn sqlite(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed_of_users(about) {
        let kind = if listed.is_view() { "view" } else { "table" };
        let name = &listed.name.name;
        rows.add([kind.into(), name.into(), name.into(), 0.into(), text_of(&listed, visible)]);
    }
}
