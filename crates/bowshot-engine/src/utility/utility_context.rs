//! What statements about the server can read: the caller, the catalog and the session.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_api::{Error, Reason, Result};
use bowshot_system_catalog::client::{ClientSlot, Flavour, NamedStatement, Setting};
use bowshot_tables::EntryName;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// What a statement about the server can read.
pub(crate) struct UtilityContext<'a> {
    pub(crate) names: &'a Names,
    pub(crate) visible: &'a Visible,
    pub(crate) client: &'a ClientSlot,
}

impl UtilityContext<'_> {
    pub(crate) fn flavour(&self) -> Flavour {
        self.visible.flavour()
    }

    pub(crate) fn settings(&self) -> Vec<Setting> {
        self.client.get().map(|client| client.settings()).unwrap_or_default()
    }

    /// One setting, under any of its names.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn setting(&self, name: &str) -> Result<Setting> {
        match self.client.get() {
            Some(client) => client.setting(name),
            None => Err(Error::not_found(format!("session option `{name}` not found"))
                .with_reason(Reason::UndefinedOption)),
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<NamedStatement> {
        self.client.get()?.named(name)
    }

    pub(crate) fn user(&self) -> &str {
        &self.visible.principal.name
    }

    /// The full name of a table or view that is there.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn table(&self, name: &ObjectName) -> Result<EntryName> {
        let full = self.names.resolve(name)?;
        // In MySQL, tables of the session hide those of the default schema also where that is named.
        let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &full.name);
        let (catalog, schema) = (&self.names.default_catalog, &self.names.default_schema);
        let may_be_own = (&full.catalog, &full.schema) == (catalog, schema);
        if may_be_own && self.flavour() == Flavour::MySql && self.visible.has(&own) {
            return Ok(own);
        }
        if self.visible.has(&full) {
            return Ok(full);
        }
        // A name of two parts may say catalog and table, where the schema is the one that is always there.
        if let [_, _] = name.0.as_slice() {
            let in_catalog = EntryName::new(&full.schema, DEFAULT_SCHEMA, &full.name);
            if self.visible.has(&in_catalog) {
                return Ok(in_catalog);
            }
        }
        let error = Error::not_found(format!("table `{full}` not found")).with_reason(Reason::UndefinedTable);
        Err(match self.visible.nearest(&full) {
            Some(nearest) => error.with_hint(format!("did you mean `{nearest}`?")),
            None => error.with_hint("list the tables with `SHOW ALL TABLES`"),
        })
    }

    /// Catalog and schema of a name of one or two parts: a schema of the catalog in force, else a catalog.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn schema(&self, name: &ObjectName) -> Result<(String, String)> {
        let (catalog, schema) = self.names.schema(name)?;
        if self.visible.has_schema(&catalog, &schema) {
            return Ok((catalog, schema));
        }
        if name.0.len() == 1 && self.visible.has_schema(&schema, DEFAULT_SCHEMA) {
            return Ok((schema, DEFAULT_SCHEMA.to_owned()));
        }
        if name.0.len() == 1 && schema == TEMPORARY_CATALOG {
            return Ok((schema, DEFAULT_SCHEMA.to_owned()));
        }
        let name = if name.0.len() == 1 { schema } else { format!("{catalog}.{schema}") };
        Err(Error::not_found(format!("schema `{name}` not found"))
            .with_reason(Reason::UndefinedSchema)
            .with_hint("list the schemas with `SHOW SCHEMAS`, the catalogs with `SHOW DATABASES`"))
    }
}

/// A statement of our own, written in standard SQL.
///
/// # Errors
/// `Internal`: what is written here is known to parse.
pub(super) fn parsed(sql: &str) -> Result<Parsed> {
    bowshot_sql::read_statement(sql).map(|statement| Parsed::Statement(Box::new(statement)))
}

/// A text as SQL has it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL has it, whatever is in it.
pub(super) fn named(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table of texts: the names of its columns, and rows in the order in which they are given.
///
/// # Errors
/// As [`parsed`].
pub(super) fn texts(columns: &[&str], rows: &[Vec<Option<String>>]) -> Result<Parsed> {
    let (items, from) = texts_in_parts(columns, rows);
    parsed(&format!("SELECT {items} {from} ORDER BY place"))
}

/// The same as a select list and what it selects from, which has a column `place` for the order.
pub(super) fn texts_in_parts(columns: &[&str], rows: &[Vec<Option<String>>]) -> (String, String) {
    let row = |(place, row): (usize, &Vec<Option<String>>)| {
        let values = row.iter().map(|value| match value {
            Some(text) => quoted(text),
            None => "CAST(NULL AS VARCHAR)".to_owned(),
        });
        let values: Vec<String> = std::iter::once(place.to_string()).chain(values).collect();
        format!("({})", values.join(", "))
    };
    let mut given: Vec<String> = rows.iter().enumerate().map(row).collect();
    let mut condition = "";
    if rows.is_empty() {
        given.push(row((0, &vec![None; columns.len()])));
        condition = " WHERE FALSE";
    }
    let inner: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let items = inner.iter().zip(columns).map(|(inner, name)| format!("{inner} AS {}", named(name)));
    let from = format!("FROM (VALUES {}) AS given(place, {}){condition}", given.join(", "), inner.join(", "));
    (items.collect::<Vec<_>>().join(", "), from)
}
