//! `SHOW DATABASES`, `SHOW SCHEMAS`, `SHOW FUNCTIONS`, `SHOW CREATE SCHEMA`.

use super::Expanded;
use super::asked::{Asked, named, parsed, quoted};
use super::parse::Words;
use super::show::{Shown, filtered, wanted};
use bowshot_api::{Error, Reason, Result};
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;

/// What a database is depends on who asks: to MySQL it is what others call a schema.
pub(super) fn databases(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    if asked.flavour() == Flavour::MySql {
        return schemas(words, asked);
    }
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "catalog_name AS database_name",
        from: "FROM (SELECT DISTINCT catalog_name FROM information_schema.schemata) AS catalogs",
        order: "catalog_name",
    };
    filtered(&shown, wanted)
}

/// `SHOW SCHEMAS [FROM catalog] [LIKE …]`
pub(super) fn schemas(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let catalog = if words.take_any(&["from", "in"]) {
        let catalog = asked.names.catalog(&words.name()?)?;
        if !asked.visible.catalog_names().contains(&catalog) {
            return Err(Error::not_found(format!("catalog `{catalog}` not found"))
                .with_reason(Reason::UndefinedCatalog)
                .with_hint("list the catalogs with `SHOW DATABASES`"));
        }
        catalog
    } else {
        asked.names.default_catalog.clone()
    };
    let wanted = wanted(&mut words)?;
    let column = if asked.flavour() == Flavour::MySql { "Database" } else { "schema_name" };
    let items = format!("schema_name AS {}", named(column));
    let from = format!("FROM information_schema.schemata WHERE catalog_name = {}", quoted(&catalog));
    filtered(&Shown { items: &items, from: &from, order: "schema_name" }, wanted)
}

pub(super) fn functions(mut words: Words<'_>) -> Result<Parsed> {
    // `SHOW FUNCTIONS 'pattern'` and `SHOW FUNCTIONS LIKE 'pattern'` are the same.
    let wanted = match words.string() {
        Some(pattern) => {
            words.end()?;
            super::show::Wanted::Like(pattern)
        }
        None => wanted(&mut words)?,
    };
    let shown = Shown {
        items: "routine_name AS function_name, function_type, data_type AS return_type, description, syntax_example",
        from: "FROM (SELECT DISTINCT routine_name, function_type, data_type, description, syntax_example \
               FROM information_schema.routines) AS routines",
        order: "routine_name",
    };
    filtered(&shown, wanted)
}

/// `SHOW CREATE SCHEMA s`; of tables and views it is expanded where they are made.
pub(super) fn create(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Option<Expanded>> {
    if !words.take("create") || !words.take_any(&["schema", "database"]) {
        return Ok(None);
    }
    let _ = words.take_all(&["if", "not", "exists"]);
    let (catalog, schema) = asked.schema(&words.name()?)?;
    words.end()?;
    let text = format!("CREATE SCHEMA {}.{}", named(&catalog), named(&schema));
    let (name, statement, text) = match asked.flavour() {
        Flavour::MySql => {
            let text = format!("CREATE DATABASE `{}`", schema.replace('`', "``"));
            (named("Database"), named("Create Database"), text)
        }
        Flavour::Bowshot | Flavour::Postgres => (named("schema_name"), named("create_statement"), text),
    };
    let rows = parsed(&format!("SELECT {} AS {name}, {} AS {statement}", quoted(&schema), quoted(&text)))?;
    Ok(Some(Expanded::Rows(Box::new(rows))))
}
