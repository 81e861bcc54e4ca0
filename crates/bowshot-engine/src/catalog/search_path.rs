//! The schemas in which a session looks for names that do not say theirs, where it has named several. Each such name gets the
//! schema in which it is found before anything is planned: plans, results and views are never about the path itself.
//!
//! What the caller may not see is not there, so that looking goes on in the next schema, as in PostgreSQL without USAGE.

use crate::catalog::Visible;
use crate::catalog::hidden_tables;
use crate::catalog::names::{Names, ident};
use crate::catalog::public::Schemas;
use crate::plan;
use bowshot_api::catalog_names::{
    DEFAULT_CATALOG, DEFAULT_SCHEMA, PG_CATALOG, PG_TEMP, PUBLIC, SYSTEM_SCHEMA, TEMPORARY_CATALOG,
};
use bowshot_api::{Error, Result};
use bowshot_policy::Access;
use bowshot_sql::rewrite::{changes, marked, qualify_bare_tables};
use bowshot_sql::{Dialect, DialectName, Offsets};
use bowshot_tables::EntryName;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::config::ConfigOptions;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Ident;

extensions_options! {
    /// In which schemas one session looks for names that do not say theirs.
    pub struct SearchPath {
        /// Their list as PostgreSQL writes it; empty where the default schema is the only one.
        pub schemas: String, default = String::new()
    }
}

impl ConfigExtension for SearchPath {
    const PREFIX: &'static str = "bowshot_search_path";
}

/// The key of [`SearchPath::schemas`] among the engine's options.
pub const SESSION_SEARCH_PATH: &str = "bowshot_search_path.schemas";

/// Where names are looked for anyway, or where nobody has anything.
const IMPLICIT: [&str; 4] = ["$user", PG_CATALOG, PG_TEMP, TEMPORARY_CATALOG];

/// The names in a list of schemas as PostgreSQL reads it: in lower case, unless they stand in double quotes.
pub fn split_path(list: &str) -> Vec<String> {
    let (mut names, mut name, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if in_quotes && characters.peek() == Some(&'"') => {
                characters.next();
                name.push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => names.push(std::mem::take(&mut name)),
            blank if !in_quotes && blank.is_whitespace() && name.is_empty() => {}
            other if in_quotes => name.push(other),
            other => name.push(other.to_ascii_lowercase()),
        }
    }
    names.push(name);
    names.iter().map(|name| name.trim_end().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The names in a list that are those of schemas to look into.
pub fn explicit_schemas(list: &str) -> Vec<String> {
    let mut names = split_path(list);
    names.retain(|name| !IMPLICIT.contains(&name.as_str()));
    names
}

impl Schemas<'_> {
    /// The schema of the default catalog that a name in a path means, if it is there and the caller may know it. The tables are
    /// to be those that the caller sees.
    fn find(&self, name: &str, access: &Access) -> Option<String> {
        let catalog = self.default_catalog;
        let is_there = match name {
            INFORMATION_SCHEMA => true,
            SYSTEM_SCHEMA => catalog == DEFAULT_CATALOG,
            _ if self.databases.has(catalog) => {
                self.databases.may_have_schema(catalog, name)
                    && access.sees_inside(&[catalog.to_owned(), name.to_owned()])
            }
            _ => self.pinned.has_schema(catalog, name),
        };
        match name {
            _ if is_there => Some(name.to_owned()),
            PUBLIC if self.has_alias(catalog) => Some(DEFAULT_SCHEMA.to_owned()),
            _ => None,
        }
    }

    /// The schemas of a list that are there, in its order.
    pub(crate) fn find_listed(&self, list: &str, access: &Access) -> Vec<String> {
        let mut found = Vec::new();
        for name in explicit_schemas(list) {
            if let Some(schema) = self.find(&name, access)
                && !found.contains(&schema)
            {
                found.push(schema);
            }
        }
        found
    }

    /// The schemas that are there of those in which names are looked for that do not say theirs: the default schema alone, where
    /// there is no path.
    pub(crate) fn find_searched(&self, options: &ConfigOptions, access: &Access) -> Vec<String> {
        match list(options) {
            Some(list) => self.find_listed(list, access),
            None => self.find(&options.catalog.default_schema, access).into_iter().collect(),
        }
    }
}

/// The list of schemas of a session that has named several.
pub(crate) fn list(options: &ConfigOptions) -> Option<&str> {
    let path = options.extensions.get::<SearchPath>()?;
    Some(path.schemas.as_str()).filter(|list| !list.is_empty())
}

/// Takes the path away, for texts that are read with a default schema of their own.
pub(crate) fn clear(options: &mut ConfigOptions) {
    if let Some(path) = options.extensions.get_mut::<SearchPath>() {
        path.schemas.clear();
    }
}

impl Visible {
    /// The schemas in which names are looked for after the default one.
    pub(crate) fn other_schemas(&self) -> Vec<String> {
        let options = self.options();
        if list(&options).is_none() {
            return Vec::new();
        }
        let catalog = &options.catalog;
        let (pinned, databases) = (&self.pinned, &self.parts.databases);
        let schemas = Schemas { pinned, databases, default_catalog: &catalog.default_catalog };
        let mut searched = schemas.find_searched(&options, &self.access);
        searched.retain(|schema| *schema != catalog.default_schema);
        searched
    }
}

/// Names the schema of each table that is found in a later schema of the path.
pub(crate) fn resolve(statement: &mut Statement, names: &Names, visible: &Visible) {
    hidden_tables::mark(statement, names, visible);
    qualify(statement, names, visible);
}

fn qualify(statement: &mut Statement, names: &Names, visible: &Visible) {
    if names.path.is_empty() {
        return;
    }
    match statement {
        Statement::Statement(statement) => {
            qualify_bare_tables(statement, |table| schema_of(table, names, visible));
        }
        Statement::Explain(explain) => qualify(&mut explain.statement, names, visible),
        _ => {}
    }
}

/// The later schema of the path that a table is in; `None` where it is found before, or nowhere.
fn schema_of(table: &Ident, names: &Names, visible: &Visible) -> Option<String> {
    let written = ident(table);
    let earlier = marked(&written).map(|(table, _)| table);
    let table = earlier.or_else(|| changes(&written).map(|changes| changes.table)).unwrap_or(&written);
    let is_input = names.pinned.input().is_some_and(|input| input.name() == table);
    let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, table);
    let is_in = |schema: &str| visible.has(&EntryName::new(names.default_catalog.as_str(), schema, table));
    if is_input || visible.pinned.entry(&own).is_some() || is_in(&names.default_schema) {
        return None;
    }
    names.path.iter().find(|schema| is_in(schema)).cloned()
}

/// The text of a view's query, with the schemas of tables that are found in a later schema of the path: a view means the same
/// tables whatever the path of its reader is, and whatever is made in the first schema later.
///
/// # Errors
/// `Unsupported` where a schema cannot be put into the text.
pub(crate) fn qualify_view(
    sql: String,
    dialect: DialectName,
    names: &Names,
    visible: &Visible,
) -> Result<String> {
    if names.path.is_empty() {
        return Ok(sql);
    }
    let options = visible.options();
    let limit = options.sql_parser.recursion_limit.get();
    let mut found = Vec::new();
    for parsed in &mut bowshot_sql::parse(&sql, Dialect::new(dialect), limit)? {
        let bowshot_sql::Statement::Sql(statement) = parsed else { continue };
        qualify_bare_tables(statement, |table| {
            let schema = schema_of(table, names, visible)?;
            found.push((table.span.start, schema));
            None
        });
    }
    found.sort_by_key(|(place, _)| *place);
    let quote = if dialect == DialectName::MySql { '`' } else { '"' };
    let (mut text, mut rest, mut offsets) = (String::new(), 0, Offsets::new(&sql));
    for (place, schema) in found {
        let Some(at) = offsets.of(place) else { continue };
        text.push_str(sql.get(rest..at).unwrap_or_default());
        text.push_str(&Ident::with_quote(quote, schema).to_string());
        text.push('.');
        rest = at;
    }
    text.push_str(sql.get(rest..).unwrap_or_default());
    check_qualified(&text, (options.as_ref(), dialect), names, visible)?;
    Ok(text)
}

/// Tables can be named in forms that are not looked into above.
fn check_qualified(
    text: &str,
    (options, dialect): (&ConfigOptions, DialectName),
    names: &Names,
    visible: &Visible,
) -> Result<()> {
    let Statement::Statement(mut statement) = plan::kept_query(options, text, dialect)? else {
        return Ok(());
    };
    let mut left = None;
    qualify_bare_tables(&mut statement, |table| {
        let schema = schema_of(table, names, visible)?;
        left.get_or_insert(schema);
        None
    });
    left.map_or(Ok(()), |schema| {
        Err(Error::unsupported("a view names a table that is not in the first schema of the search path")
            .with_hint(format!("write the name of the table with its schema `{schema}`")))
    })
}

#[cfg(test)]
mod tests {
    use super::{explicit_schemas, split_path};
    use bowshot_sql::join_path;

    #[test]
    fn lists_are_read_as_they_are_written() {
        for (list, expected) in [
            ("", vec![]),
            ("Sales, stock", vec!["sales", "stock"]),
            (r#""$user",public , "A,b""c""#, vec!["$user", "public", r#"A,b"c"#]),
            (" a b ,, \"\"", vec!["a b"]),
        ] {
            assert_eq!(split_path(list), expected, "{list}");
            assert_eq!(split_path(&join_path(&split_path(list))), expected, "{list}");
        }
        assert_eq!(explicit_schemas("\"$user\", pg_temp, a, pg_catalog"), ["a"]);
    }
}
