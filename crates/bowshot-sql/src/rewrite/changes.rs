//! `FROM table_changes('sales.orders', 3, 7)`: the changes of a table between two of its versions or times. The planner asks its
//! catalog for names only, so the name of the table carries the range, in a form that no text can have.

use super::versions::{AsOf, MARK, changed};
use crate::calls::values;
use crate::literal::{literal, number};
use crate::template::{meaning, quoted};
use crate::walk::{Tree, flow};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Statement, TableAlias,
    TableFactor, TableFunctionArgs, Value, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// What the function is called, and what qualifies its columns.
const FUNCTION: &str = "table_changes";
/// Tells the name from one that carries a version, or files.
const CHANGES: &str = "changes";
/// The named argument that asks for what comes too, and what stands for it in the place of the last version.
const FOLLOW: &str = "follow";
const ENDLESS: &str = ">";
/// Between the parts of the name.
const PART: char = '\u{1e}';
/// Begins a time, so that it is no version.
const TIME: char = '@';
/// Parts of the name of a table: catalog, schema and table.
const MAX_PARTS: usize = 3;

/// The changes of a table that are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedChanges<'name> {
    /// The name of the table in its schema.
    pub table: &'name str,
    /// The first version, or the time from which on.
    pub from: AsOf<'name>,
    /// The last version, or the time until which; `None` for the newest version.
    pub to: Option<AsOf<'name>>,
    /// Whether those are meant too that are still to come.
    pub follows: bool,
}

/// The changes that a name carries which [`super::statement`] has made.
pub fn changes(name: &str) -> Option<NamedChanges<'_>> {
    let (what, rest) = name.strip_prefix(MARK)?.split_once(MARK)?;
    if what != CHANGES {
        return None;
    }
    let mut parts = rest.splitn(3, PART);
    let from = carried(parts.next()?)?;
    let (to, follows) = match parts.next()? {
        "" => (None, false),
        ENDLESS => (None, true),
        text => (Some(carried(text)?), false),
    };
    Some(NamedChanges { table: parts.next()?, from, to, follows })
}

/// What stands behind the second mark of a name in a message: of one that carries changes, the table stands behind their range.
pub(super) fn behind<'text>(what: &str, rest: &'text str) -> &'text str {
    if what == CHANGES { rest.splitn(3, PART).last().unwrap_or(rest) } else { rest }
}

fn carried(text: &str) -> Option<AsOf<'_>> {
    match text.strip_prefix(TIME) {
        Some(time) => Some(AsOf::Time(time)),
        None => text.parse().ok().map(AsOf::Version),
    }
}

pub(super) fn mark(statement: &mut impl Tree) -> Result<()> {
    statement.try_walk(&mut Marks)
}

struct Marks;

impl VisitorMut for Marks {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        let of_changes = |factor: &&TableFactor| match factor {
            TableFactor::Table { name, args: Some(_), .. } => is_function(name),
            _ => false,
        };
        match changed(statement).iter().any(of_changes) {
            true => ControlFlow::Break(
                Error::unsupported("the result of `table_changes` is read-only")
                    .with_hint("name the table itself"),
            ),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(with_changes(factor))
    }
}

fn with_changes(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args, with_ordinality, .. } = factor else { return Ok(()) };
    let Some(arguments) = args.as_ref().filter(|_| is_function(name)) else { return Ok(()) };
    if *with_ordinality {
        return Err(Error::unsupported(
            "WITH ORDINALITY is not supported for `table_changes`: its rows have no order",
        )
        .with_hint("`row_number() OVER (ORDER BY …)` counts rows"));
    }
    *name = named(arguments)?;
    *args = None;
    alias.get_or_insert(TableAlias { explicit: true, name: quoted(FUNCTION), columns: Vec::new(), at: None });
    Ok(())
}

fn is_function(name: &ObjectName) -> bool {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return false };
    ident.value.eq_ignore_ascii_case(FUNCTION)
}

/// The name of the table, which carries the range.
fn named(arguments: &TableFunctionArgs) -> Result<ObjectName> {
    let (plain, follows) = match arguments.args.as_slice() {
        [plain @ .., last] => {
            follows(last).map_or((arguments.args.as_slice(), false), |follows| (plain, follows))
        }
        [] => return Err(misused()),
    };
    let given = values(plain).filter(|_| arguments.settings.is_none()).ok_or_else(misused)?;
    let (table, from, to) = match given.as_slice() {
        [table, from] if follows => (table, from, ENDLESS.to_owned()),
        [table, from] => (table, from, String::new()),
        [table, from, to] if !follows => (table, from, moment(to)?),
        _ => return Err(misused()),
    };
    let mut parts = table_name(table)?;
    let from = moment(from)?;
    let last = meaning(&parts.pop().ok_or_else(misused)?);
    let marked = format!("{MARK}{CHANGES}{MARK}{from}{PART}{to}{PART}{last}");
    let parts = parts.into_iter().chain([quoted(&marked)]).map(ObjectNamePart::Identifier);
    Ok(ObjectName(parts.collect()))
}

/// What `follow => true` or `follow => false` says.
fn follows(argument: &FunctionArg) -> Option<bool> {
    let (name, value) = match argument {
        FunctionArg::Named { name, arg, .. } => (name, arg),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (name, arg),
        _ => return None,
    };
    match value {
        FunctionArgExpr::Expr(Expr::Value(value)) if name.value.eq_ignore_ascii_case(FOLLOW) => {
            match value.value {
                Value::Boolean(follows) => Some(follows),
                _ => None,
            }
        }
        _ => None,
    }
}

fn misused() -> Error {
    Error::invalid(format!(
        "`{FUNCTION}` takes the name of a table as a text, a first version or time, and perhaps a last one or `{FOLLOW} => true`"
    ))
    .with_hint(format!(
        "write {FUNCTION}('sales.orders', 3), {FUNCTION}('orders', 3, 7) or {FUNCTION}('orders', '2026-01-31 12:00:00')"
    ))
}

/// The parts of a name that is written in a text, each in quotes or not.
fn table_name(expr: &Expr) -> Result<Vec<Ident>> {
    let text = literal(expr).and_then(text_of).ok_or_else(misused)?;
    let refused = || {
        Error::invalid(format!("`{text}` is not a valid table name"))
            .with_hint("write 'table', 'schema.table' or 'catalog.schema.table'; odd names in double quotes: '\"my table\"'")
    };
    if text.contains(char::is_control) {
        return Err(Error::invalid("names must not contain control characters"));
    }
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(|_| refused())?;
    let name = parser.parse_object_name(false).map_err(|_| refused())?;
    let is_whole = parser.peek_token().token == Token::EOF && name.0.len() <= MAX_PARTS;
    let parts = name.0.iter().map(|part| part.as_ident().cloned()).collect::<Option<Vec<Ident>>>();
    parts.filter(|_| is_whole).ok_or_else(refused)
}

/// A version as a number, or a time behind its mark.
fn moment(expr: &Expr) -> Result<String> {
    let refused = || {
        Error::invalid(format!("`{expr}` is neither a table version nor a timestamp")).with_hint(
            "write a number, as in 3, or a time, as in '2026-01-31 12:00:00', in UTC or with a zone as `+01:00`",
        )
    };
    if let Some(number) = number(expr) {
        return number.parse::<u64>().map(|number| number.to_string()).map_err(|_| refused());
    }
    let time = time(expr).filter(|time| !time.contains(char::is_control)).ok_or_else(refused)?;
    Ok(format!("{TIME}{time}"))
}

/// The text of a time: `'…'`, `TIMESTAMP '…'`, `CAST('…' AS TIMESTAMP)`, and the same of dates.
fn time(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => time(inner),
        Expr::TypedString(typed) if is_time(&typed.data_type) => text_of(&typed.value.value),
        Expr::Cast { expr, data_type, .. } if is_time(data_type) => time(expr),
        other => literal(other).and_then(text_of),
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Datetime(_) | DataType::Date)
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::DoubleQuotedString(text)
        | Value::NationalStringLiteral(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{changes, mark};
    use sqlparser::dialect::GenericDialect;
    use sqlparser::parser::Parser;

    fn marked(sql: &str) -> Result<String, String> {
        let mut statement = Parser::parse_sql(&GenericDialect {}, sql).unwrap().remove(0);
        mark(&mut statement).map_err(|error| error.to_string())?;
        Ok(statement.to_string())
    }

    #[test]
    fn other_names_carry_none() {
        let text = marked("SELECT * FROM t, table_changes, other('t', 3)").unwrap();
        assert_eq!(text.split('"').find_map(changes), None);
        assert_eq!(super::super::marked("\u{2}changes\u{2}3\u{1e}\u{1e}t"), None);
        assert_eq!(super::super::files("\u{2}changes\u{2}3\u{1e}\u{1e}t"), None);
        assert_eq!(changes("\u{2}3\u{2}t"), None);
    }

    #[test]
    fn changes_are_read_alone() {
        for sql in [
            "DELETE FROM table_changes('t', 3)",
            "UPDATE table_changes('t', 3) SET a = 1",
            "SELECT * FROM table_changes('t', 3) WITH ORDINALITY",
        ] {
            let error = marked(sql).unwrap_err();
            assert!(error.contains("change"), "{sql}: {error}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (arguments, part) in [
            ("", "takes the name"),
            ("'t'", "takes the name"),
            ("t, 3", "takes the name"),
            ("'t', 1, 2, 3", "takes the name"),
            ("'t', from => 3", "takes the name"),
            ("'t', 3, 7, follow => true", "takes the name"),
            ("'t', 3, follow => 1", "takes the name"),
            ("'t u', 3", "is not a valid table name"),
            ("'a.b.c.d', 3", "is not a valid table name"),
            ("'', 3", "is not a valid table name"),
            ("'\"a\u{2}\"', 3", "control characters"),
            ("'t', -1", "is neither a table version"),
            ("'t', 1.5", "is neither a table version"),
            ("'t', $1", "is neither a table version"),
            ("'t', 3 + 1", "is neither a table version"),
            ("'t', INTERVAL '1 day'", "is neither a table version"),
        ] {
            let error = marked(&format!("SELECT * FROM table_changes({arguments})")).unwrap_err();
            assert!(error.contains(part), "{arguments}: {error}");
        }
    }
}
