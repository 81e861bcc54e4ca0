//! `SHOW …`: which kind of thing is asked for, and the words that all kinds share.

use super::asked::{Asked, named, parsed, quoted, texts_in_parts};
use super::parse::Words;
use super::{Expanded, describe, show_keys, show_names, show_server, show_tables};
use bowshot_api::{Error, Result};
use bowshot_sql::Tree;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, SelectItem, SetExpr, Statement, VisitorMut};
use std::ops::ControlFlow;

/// Which rows are wanted.
#[derive(Debug)]
pub(super) enum Wanted {
    All,
    /// `LIKE 'pattern'`, in any case as MySQL has it.
    Like(String),
    /// `WHERE condition` over the columns that are shown.
    Where(Box<Expr>),
}

/// The statement with the word SHOW taken; `None` for the kinds that are expanded elsewhere.
pub(super) fn recognise(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Option<Expanded>> {
    if words.peek().as_deref() == Some("create") {
        return show_names::create(words, asked);
    }
    let shown = if words.take_any(&["extended", "full"]) {
        let _ = words.take("full");
        with_modifier(words, asked, Modifier::Full)?
    } else if words.take_any(&["global", "session"]) {
        if words.peek().as_deref() == Some("authorization") {
            setting("session_authorization", "session authorization", asked)?
        } else {
            plain(words, asked)?
        }
    } else {
        plain(words, asked)?
    };
    Ok(Some(Expanded::Rows(Box::new(shown))))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    Full,
}

fn plain(words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    with_modifier(words, asked, Modifier::None)
}

fn with_modifier(mut words: Words<'_>, asked: &Asked<'_>, modifier: Modifier) -> Result<Parsed> {
    let Some(kind) = words.word() else { return Err(words.unexpected()) };
    match kind.as_str() {
        "databases" | "catalogs" => show_names::databases(words, asked),
        "schemas" => show_names::schemas(words, asked),
        "tables" => show_tables::tables(words, asked, modifier),
        "views" => show_tables::views(words, asked),
        "models" => show_tables::models(words, asked),
        "materialized" if words.take("views") => show_tables::materialised(words, asked),
        "all" if words.take("tables") => show_tables::all(words),
        "table" if words.take("status") => show_tables::status(words, asked),
        "columns" | "fields" => show_tables::columns(words, asked, modifier),
        "index" | "indexes" | "indices" | "keys" => show_keys::keys(words, asked),
        "functions" => show_names::functions(words),
        "all" => show_server::all(words, asked),
        "variables" => show_server::variables(words, asked),
        "status" => show_server::status(words),
        "warnings" | "errors" => show_server::warnings(words),
        "grants" => show_server::grants(words, asked),
        "processlist" => show_server::processes(words),
        "engines" => show_server::engines(words),
        "collation" => show_server::collations(words),
        "charset" => show_server::character_sets(words),
        "character" if words.take("set") => show_server::character_sets(words),
        _ => name(&kind, words, asked),
    }
}

/// `SHOW name`: a setting, else a table, as DuckDB has it.
fn name(first: &str, mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let known = match first {
        "time" if words.take("zone") => Some(("time_zone", "time zone")),
        "transaction" if words.take_all(&["isolation", "level"]) => {
            Some(("transaction_isolation", "transaction_isolation"))
        }
        "names" => Some(("client_encoding", "client_encoding")),
        _ => None,
    };
    if let Some((name, shown)) = known {
        words.end()?;
        return setting(name, shown, asked);
    }
    let mut full = first.to_owned();
    while words.take_token(&datafusion::sql::sqlparser::tokenizer::Token::Period) {
        full.push('.');
        full.push_str(&words.single()?);
    }
    if !words.at_end() {
        return Err(words.unexpected().with_hint(
            "SHOW takes DATABASES, SCHEMAS, TABLES, VIEWS, MODELS, COLUMNS FROM t, FUNCTIONS, ALL, or the name of a setting",
        ));
    }
    let unknown = match setting(&full, &full, asked) {
        Ok(shown) => return Ok(shown),
        Err(unknown) => unknown,
    };
    let parts: Vec<Ident> = full.split('.').map(Ident::new).collect();
    match asked.table(&ObjectName::from(parts)) {
        Ok(table) => describe::table(&table, asked.flavour()),
        Err(_) => Err(unknown),
    }
}

fn setting(name: &str, shown: &str, asked: &Asked<'_>) -> Result<Parsed> {
    let setting = asked.setting(name)?;
    parsed(&format!("SELECT {} AS {}", quoted(&setting.value), named(shown)))
}

/// `LIKE` and `WHERE` at the end of the statement.
pub(super) fn wanted(words: &mut Words<'_>) -> Result<Wanted> {
    let wanted = if words.take_any(&["like", "ilike"]) {
        Wanted::Like(words.string().ok_or_else(|| words.unexpected())?)
    } else if words.take("where") {
        Wanted::Where(Box::new(words.expression()?))
    } else {
        Wanted::All
    };
    words.end()?;
    Ok(wanted)
}

/// What is shown, in parts, so that a condition can come between them.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    /// The select list; each item has its name.
    pub(super) items: &'a str,
    /// From FROM on, without an order.
    pub(super) from: &'a str,
    /// What the rows are sorted by.
    pub(super) order: &'a str,
}

/// The wanted rows, whose first column is what LIKE is about.
pub(super) fn filtered(shown: &Shown<'_>, wanted: Wanted) -> Result<Parsed> {
    let Shown { items, from, order } = shown;
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
    match wanted {
        Wanted::All => Ok(whole),
        Wanted::Like(pattern) => {
            let by = names.first().cloned().unwrap_or_default();
            chosen(&format!("WHERE {by} ILIKE {}", quoted(&pattern)))
        }
        Wanted::Where(condition) => {
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
    wanted: Wanted,
) -> Result<Parsed> {
    let (items, from) = texts_in_parts(columns, rows);
    filtered(&Shown { items: &items, from: &from, order: "place" }, wanted)
}

fn add_condition(statement: &mut Parsed, mut condition: Expr, columns: &[String]) -> Result<()> {
    let _: ControlFlow<()> = condition.walk(&mut Spelled(columns));
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

/// The columns of what is shown are found whatever their case.
struct Spelled<'a>(&'a [String]);

impl VisitorMut for Spelled<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && name.quote_style != Some('"')
            && let Some(column) = self.0.iter().find(|column| column.eq_ignore_ascii_case(&name.value))
        {
            (name.value, name.quote_style) = (column.clone(), Some('"'));
        }
        ControlFlow::Continue(())
    }
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
