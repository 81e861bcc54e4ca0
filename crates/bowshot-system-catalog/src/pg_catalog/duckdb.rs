//! What DuckDB's and SQLite's clients ask: `duckdb_tables()` and its like, `sqlite_master`. The first are tables and table
//! functions of the same names.

use crate::client::Flavour;
use crate::information_schema::type_name;
use crate::lazy_table::Make::{Later, Now};
use crate::lazy_table::{Cell, Defined, Rows, cells, columns, tables};
use crate::listing::{About, Listed, What};
use crate::pg_catalog::oids;
use crate::{CatalogView, definition_text};
use bowshot_tables::EntryName;
use bowshot_types::names;
use datafusion::error::Result;
use futures::future::BoxFuture;

/// Those that can be called.
pub(crate) static FUNCTIONS: &[Defined] = tables! {
    duckdb_tables: database_name Text, database_oid Long, schema_name Text, schema_oid Long,
        table_name Text, table_oid Long, comment Text, internal Bool, temporary Bool, has_primary_key Bool,
        estimated_size Long, column_count Long, index_count Long, check_constraint_count Long, sql Text
        => Later(tables);

    duckdb_views: database_name Text, database_oid Long, schema_name Text, schema_oid Long, view_name Text,
        view_oid Long, comment Text, internal Bool, temporary Bool, sql Text
    => Now(|visible, about, rows| {
        for listed in visible.listed(about).into_iter().filter(Listed::is_view) {
            let (internal, temporary) = (listed.is_internal(), listed.is_temporary());
            let rest = cells![listed.comment(), internal, temporary, text_of(&listed, visible)];
            rows.add(names_of(&listed).into_iter().chain(rest));
        }
    });

    duckdb_columns: database_name Text, database_oid Long, schema_name Text, schema_oid Long,
        table_name Text, table_oid Long, column_name Text, column_index Int, comment Text, internal Bool,
        column_default Text, is_nullable Bool, data_type Text, data_type_id Long,
        character_maximum_length Int, numeric_precision Int, numeric_precision_radix Int, numeric_scale Int
        => Later(columns);

    duckdb_schemas: oid Long, database_name Text, database_oid Long, schema_name Text, comment Text,
        internal Bool, sql Text
    => Now(|visible, _, rows| {
        for (catalog, schema) in visible.all_schemas() {
            let internal = ["information_schema", "pg_catalog", "system"].contains(&schema.as_str());
            let (oid, database) = (oids::schema(&catalog, &schema), oids::catalog(&catalog));
            rows.add(cells![oid, catalog, database, schema, Cell::Null, internal]);
        }
    });

    duckdb_databases: database_name Text, database_oid Long, path Text, comment Text, internal Bool,
        type Text, readonly Bool
    => Now(|visible, _, rows| {
        for catalog in visible.catalog_names() {
            let oid = oids::catalog(&catalog);
            rows.add(cells![catalog, oid, Cell::Null, Cell::Null, false, "bowshot", false]);
        }
    });

    duckdb_settings: name Text, value Text, description Text, input_type Text, scope Text
    => Now(|visible, _, rows| {
        for setting in visible.settings() {
            rows.add(cells![setting.name, setting.value, setting.text, "VARCHAR", "SESSION"]);
        }
    });
};

pub(crate) static SQLITE: &[Defined] = &[of_sqlite("sqlite_master"), of_sqlite("sqlite_schema")];

const fn of_sqlite(name: &'static str) -> Defined {
    let columns = columns![type Text, name Text, tbl_name Text, rootpage Int, sql Text];
    Defined { name, columns, rows: Now(sqlite) }
}

/// Names and numbers of catalog, schema and table, as DuckDB's tables begin with them.
fn names_of(listed: &Listed) -> [Cell; 6] {
    let EntryName { catalog, schema, name } = &listed.name;
    let (database, table) = (oids::catalog(catalog), oids::table(&listed.name));
    cells![catalog, database, schema, oids::schema(catalog, schema), name, table]
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
            let checks = definition.map_or(0, |definition| definition.checks.len());
            let about = cells![listed.comment(), listed.is_internal(), listed.is_temporary()];
            let rest = cells![key, size, columns, usize::from(key), checks, text_of(&listed, visible)];
            rows.add(names_of(&listed).into_iter().chain(about).chain(rest));
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
                let comment = column.and_then(|column| column.comment.clone());
                let default = column.and_then(|column| column.default.clone());
                let first = cells![field.name(), position + 1, comment, listed.is_internal(), default];
                let (name, oid) = (type_name(field, Flavour::Bowshot), names::postgres(field).oid);
                let kind = cells![field.is_nullable(), name, oid, Cell::Null];
                let precision = digits.map(|(digits, _, _)| digits);
                let base = digits.map(|(_, base, _)| base);
                let numbers = cells![precision, base, digits.and_then(|(_, _, scale)| scale)];
                rows.add(names_of(&listed).into_iter().chain(first).chain(kind).chain(numbers));
            }
        }
        Ok(())
    })
}

fn sqlite(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed_of_users(about) {
        let kind = if listed.is_view() { "view" } else { "table" };
        let name = &listed.name.name;
        rows.add(cells![kind, name, name, 0, text_of(&listed, visible)]);
    }
}
