//! `SHOW …`: the kinds of things, and what is the same for all of them.

use super::utility_context::{UtilityContext, named, parsed, quoted, texts_in_parts};
use super::{describe, show_keys, show_names, show_server, show_tables};
use crate::catalog::{names, show_create};
use bowshot_api::{Error, Result};
use bowshot_sql::{RowFilter, Show, Shown, Tree};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, SelectItem, SetExpr, Statement};

/// The rows that are asked for.
///
/// # Errors
/// `NotFound` for what they are to be in, and for names that mean nothing.
pub(crate) fn rows(show: Show, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let Show { shown, within, filter } = show;
    let within = within.as_ref();
    match shown {
        Shown::Databases => show_names::databases(filter),
        Shown::Schemas => show_names::schemas(within, filter, asked),
        Shown::CreateTable(name) => created(&name, asked),
        Shown::CreateSchema(name) => show_names::create(&name, asked),
        Shown::Functions => show_names::functions(filter),
        Shown::Tables { full } => show_tables::tables(within, filter, asked, full),
        Shown::Views => show_tables::views(within, filter, asked),
        Shown::Models => show_tables::models(within, filter, asked),
        Shown::MaterializedViews => show_tables::materialized(within, filter, asked),
        Shown::Pipes => show_tables::pipes(filter),
        Shown::AllTables => show_tables::all(filter),
        Shown::TableStatus => show_tables::status(within, filter, asked),
        Shown::Columns { table, full } => show_tables::columns(&table, filter, asked, full),
        Shown::Keys(table) => show_keys::keys(&table, filter, asked),
        Shown::Settings => show_server::all(filter, asked),
        Shown::Variables => show_server::variables(filter, asked),
        Shown::Status => show_server::status(filter),
        Shown::Warnings => show_server::warnings(),
        Shown::Grants(about) => show_server::grants(about.as_deref(), asked),
        Shown::Processes => show_server::processes(filter),
        Shown::Engines => show_server::engines(filter),
        Shown::Collations => show_server::collations(filter),
        Shown::CharacterSets => show_server::character_sets(filter),
        Shown::Setting { name, column } => setting(name, column, asked),
        Shown::Name(name) => self::name(&name, asked),
    }
}

fn created(name: &ObjectName, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let (table, text) = (names::last(name)?.value, show_create::text_of(name, asked.names)?);
    parsed(&format!("SELECT {} AS table_name, {} AS create_statement", quoted(&table), quoted(&text)))
}

/// `SHOW name`: a setting, else a table, as DuckDB has it.
fn name(name: &str, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let unknown = match setting(name, name, asked) {
        Ok(shown) => return Ok(shown),
        Err(unknown) => unknown,
    };
    let parts: Vec<Ident> = name.split('.').map(Ident::new).collect();
    match asked.table(&ObjectName::from(parts)) {
        Ok(table) => describe::table(&table, asked.flavour()),
        Err(_) => Err(unknown),
    }
}

fn setting(name: &str, shown: &str, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let setting = asked.setting(name)?;
    parsed(&format!("SELECT {} AS {}", quoted(&setting.value), named(shown)))
}

/// What is shown, in parts, so that a condition can come between them.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    /// The select list; each item has its name.
    pub(super) items: &'a str,
    /// From FROM on, without an order.
    pub(super) from: &'a str,
    /// What the rows are sorted by.
    pub(super) order: &'a str,
}

/// The wanted rows, whose first column is what LIKE is about.
pub(super) fn filtered(listing: &Listing<'_>, filter: RowFilter) -> Result<Parsed> {
    let Listing { items, from, order } = listing;
    let whole = parsed(&format!("SELECT {items} {from} ORDER BY {order}"))?;
    let columns = columns_of(&whole);
    let names: Vec<String> = columns.iter().map(|column| named(column)).collect();
    // The order is that of the whole: a query within another one has none.
    let chosen = |condition: &str| {
        parsed(&format!(
            "SELECT {} FROM (SELECT {items}, {order} AS \"the place\" {from}) AS shown {condition} ORDER BY \"the place\"",
            names.join(", ")
        ))
    };
    match filter {
        RowFilter::All => Ok(whole),
        RowFilter::Like(pattern) => {
            let by = names.first().cloned().unwrap_or_default();
            chosen(&format!("WHERE {by} ILIKE {}", quoted(&pattern)))
        }
        RowFilter::Where(condition) => {
            let mut statement = chosen("")?;
            add_condition(&mut statement, *condition, &columns)?;
            Ok(statement)
        }
    }
}

/// The wanted ones of rows that are known already.
pub(super) fn filtered_texts(
    columns: &[&str],
    rows: &[Vec<Option<String>>],
    filter: RowFilter,
) -> Result<Parsed> {
    let (items, from) = texts_in_parts(columns, rows);
    filtered(&Listing { items: &items, from: &from, order: "place" }, filter)
}

fn add_condition(statement: &mut Parsed, mut condition: Expr, columns: &[String]) -> Result<()> {
    // The columns of what is shown are found whatever their case.
    condition.change_expressions(|expr| {
        if let Expr::Identifier(name) = expr
            && name.quote_style != Some('"')
            && let Some(column) = columns.iter().find(|column| column.eq_ignore_ascii_case(&name.value))
        {
            (name.value, name.quote_style) = (column.clone(), Some('"'));
        }
    });
    let select = match statement {
        Parsed::Statement(statement) => match statement.as_mut() {
            Statement::Query(query) => match query.body.as_mut() {
                SetExpr::Select(select) => Some(select),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let select = select.ok_or_else(|| Error::internal("a query of our own is none"))?;
    select.selection = Some(condition);
    Ok(())
}

fn columns_of(statement: &Parsed) -> Vec<String> {
    let Parsed::Statement(statement) = statement else { return Vec::new() };
    let Statement::Query(query) = statement.as_ref() else { return Vec::new() };
    let SetExpr::Select(select) = query.body.as_ref() else { return Vec::new() };
    let items = select.projection.iter();
    items
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
            _ => None,
        })
        .collect()
}
