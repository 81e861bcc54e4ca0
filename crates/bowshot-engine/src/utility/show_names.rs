//! `SHOW DATABASES`, `SHOW SCHEMAS`, `SHOW FUNCTIONS`, `SHOW CREATE SCHEMA`.

use super::show::{Listing, filtered};
use super::utility_context::{UtilityContext, named, parsed, quoted};
use bowshot_api::{Error, Reason, Result};
use bowshot_sql::RowFilter;
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// Catalogs: what MySQL calls a database is a schema.
pub(super) fn databases(filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
        items: "catalog_name AS database_name",
        from: "FROM (SELECT DISTINCT catalog_name FROM information_schema.schemata) AS catalogs",
        order: "catalog_name",
    };
    filtered(&shown, filter)
}

/// `SHOW SCHEMAS [FROM catalog] [LIKE …]`
pub(super) fn schemas(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let catalog = if let Some(catalog) = within {
        let catalog = asked.names.catalog(catalog)?;
        if !asked.visible.catalog_names().contains(&catalog) {
            return Err(Error::not_found(format!("catalog `{catalog}` not found"))
                .with_reason(Reason::UndefinedCatalog)
                .with_hint("list the catalogs with `SHOW DATABASES`"));
        }
        catalog
    } else {
        asked.names.default_catalog.clone()
    };
    let column = if asked.flavour() == Flavour::MySql { "Database" } else { "schema_name" };
    let items = format!("schema_name AS {}", named(column));
    let from = format!("FROM information_schema.schemata WHERE catalog_name = {}", quoted(&catalog));
    filtered(&Listing { items: &items, from: &from, order: "schema_name" }, filter)
}

pub(super) fn functions(filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
        items: "routine_name AS function_name, function_type, data_type AS return_type, description, syntax_example",
        from: "FROM (SELECT DISTINCT routine_name, function_type, data_type, description, syntax_example \
               FROM information_schema.routines) AS routines",
        order: "routine_name",
    };
    filtered(&shown, filter)
}

/// `SHOW CREATE SCHEMA s`; of tables and views it is expanded where they are made.
pub(super) fn create(name: &ObjectName, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let (catalog, schema) = asked.schema(name)?;
    let text = format!("CREATE SCHEMA {}.{}", named(&catalog), named(&schema));
    let (name, statement, text) = match asked.flavour() {
        Flavour::MySql => {
            let text = format!("CREATE DATABASE `{}`", schema.replace('`', "``"));
            (named("Database"), named("Create Database"), text)
        }
        Flavour::Bowshot | Flavour::Postgres => (named("schema_name"), named("create_statement"), text),
    };
    parsed(&format!("SELECT {} AS {name}, {} AS {statement}", quoted(&schema), quoted(&text)))
}
