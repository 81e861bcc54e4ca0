//! `FROM t FOR VERSION AS OF 3`, `… AS OF 'tag'` and `FROM t FOR TIMESTAMP AS OF '…'`: the planner asks its catalog for names only, so
//! the name carries which state is meant, in a form that no text can have.

use super::changes;
use crate::literal::quoted_text;
use crate::sqlparser_statement::STATE_NAME;
use crate::template::{meaning, quoted};
use crate::walk::{Tree, flow};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{
    DataType, Expr, FromTable, Ident, ObjectName, ObjectNamePart, Statement, TableAlias, TableFactor,
    TableVersion, TimezoneInfo, Value, VisitorMut,
};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Begins a name that carries a version. The tokenizer gives no name with it: [`mark`] refuses those of quoted ones.
pub(super) const MARK: char = '\u{2}';

/// Stands between the marks of a table that the session's own table of its name does not hide.
const SHARED: &str = "=";

/// Which state of a table is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsOf<'name> {
    /// The state of that number.
    Version(u64),
    /// The state at that time, as it was written.
    Time(&'name str),
    /// The state that a branch or a tag names.
    Reference(&'name str),
}

/// The name of a table and which state of it is meant, of a name that [`super::statement`] has made.
pub fn marked(name: &str) -> Option<(&str, AsOf<'_>)> {
    let (state, name) = name.strip_prefix(MARK)?.split_once(MARK)?;
    let state = match state.split_at_checked(1) {
        Some(("@", time)) => AsOf::Time(time),
        Some(("#", reference)) => AsOf::Reference(reference),
        _ => AsOf::Version(state.parse().ok()?),
    };
    Some((name, state))
}

/// A message in which such names, and those that carry changes, stand as those of their tables.
pub fn unmarked(message: &str) -> Cow<'_, str> {
    if !message.contains(MARK) {
        return Cow::Borrowed(message);
    }
    let mut pieces = message.split(MARK);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    while let (Some(what), Some(rest)) = (pieces.next(), pieces.next()) {
        plain.push_str(changes::behind(what, rest));
    }
    Cow::Owned(plain)
}

/// The name of a table, without which state or which changes of it are meant.
pub fn plain(name: &str) -> &str {
    let of_changes = || changes::changes(name).map(|changes| changes.table);
    marked(name).map(|(table, _)| table).or_else(of_changes).or_else(|| shared(name)).unwrap_or(name)
}

/// The name of a table of a schema, of a name that [`mark_shared`] has made.
pub fn shared(name: &str) -> Option<&str> {
    name.strip_prefix(MARK)?.strip_prefix(SHARED)?.strip_prefix(MARK)
}

/// Marks a table as that of its schema, whatever tables the session has.
pub fn mark_shared(name: &mut ObjectName, alias: &mut Option<TableAlias>) {
    let Some(table) = name.0.last().and_then(|part| part.as_ident()).map(meaning) else { return };
    if table.starts_with(MARK) {
        return;
    }
    name.0.pop();
    name.0.push(ObjectNamePart::Identifier(quoted(&format!("{MARK}{SHARED}{MARK}{table}"))));
    alias.get_or_insert(TableAlias { explicit: true, name: quoted(&table), columns: Vec::new(), at: None });
}

pub(super) fn mark(statement: &mut impl Tree) -> Result<()> {
    statement.try_walk(&mut Marks)
}

struct Marks;

impl VisitorMut for Marks {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        match changed(statement).into_iter().find(|factor| has_version(factor)) {
            Some(factor) => ControlFlow::Break(unchangeable(factor)),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<Error> {
        let reserved = |ident: &Ident| ident.value.contains(MARK) || ident.value.contains(super::MARK);
        match name.0.iter().filter_map(|part| part.as_ident()).any(reserved) {
            true => ControlFlow::Break(Error::invalid("names must not contain control characters")),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(with_version(factor))
    }
}

/// The tables whose rows a statement changes.
pub(super) fn changed(statement: &Statement) -> Vec<&TableFactor> {
    match statement {
        Statement::Update(update) => vec![&update.table.relation],
        Statement::Merge(merge) => vec![&merge.table],
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
            tables.iter().map(|table| &table.relation).collect()
        }
        _ => Vec::new(),
    }
}

fn has_version(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { version: Some(_), .. })
}

fn unchangeable(factor: &TableFactor) -> Error {
    let name = match factor {
        TableFactor::Table { name, .. } => name.to_string(),
        other => other.to_string(),
    };
    Error::unsupported(format!("an earlier version of `{name}` cannot be changed"))
        .with_hint("leave out the version; restore earlier rows with `INSERT INTO … SELECT * FROM …`")
}

fn with_version(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, version, .. } = factor else { return Ok(()) };
    let Some(version) = version.take() else { return Ok(()) };
    let state = match version {
        TableVersion::VersionAsOf(expr) => number(&expr)?,
        TableVersion::TimestampAsOf(expr) => match reference(&expr) {
            Some(state) => state,
            None => format!("@{}", time(&expr)?),
        },
        other => {
            return Err(Error::unsupported(format!("`{other}` is not supported"))
                .with_hint("write `FOR VERSION AS OF 3` or `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`"));
        }
    };
    let Some(last) = name.0.last().and_then(|part| part.as_ident()).cloned() else { return Ok(()) };
    let table = meaning(&last);
    name.0.pop();
    name.0.push(ObjectNamePart::Identifier(quoted(&format!("{MARK}{state}{MARK}{table}"))));
    // Its columns are named by the table's name, not by the marked one.
    alias.get_or_insert(TableAlias { explicit: true, name: quoted(&table), columns: Vec::new(), at: None });
    Ok(())
}

fn number(expr: &Expr) -> Result<String> {
    let refused = || {
        Error::new(ErrorKind::Syntax, format!("`{expr}` is not a table version")).with_hint(
            "write a number, as in `FOR VERSION AS OF 3`, or the name of a branch or a tag: `'v1'`",
        )
    };
    let Expr::Value(value) = expr else { return Err(refused()) };
    if matches!(value.value, Value::Placeholder(_)) {
        return Err(parameter());
    }
    let Value::Number(number, _) = &value.value else { return Err(refused()) };
    number.parse::<u64>().map(|number| number.to_string()).map_err(|_| refused())
}

/// A number in quotes, or the name of a branch or a tag, which stands where the parser takes a text.
fn reference(expr: &Expr) -> Option<String> {
    let name = quoted_text(expr)?.strip_prefix(STATE_NAME).filter(|name| !name.contains(MARK))?;
    Some(name.parse::<u64>().map_or_else(|_| format!("#{name}"), |number| number.to_string()))
}

fn time(expr: &Expr) -> Result<String> {
    let value = match expr {
        Expr::Value(value) => Some(&value.value),
        Expr::TypedString(typed) if is_moment(&typed.data_type) => Some(&typed.value.value),
        _ => None,
    };
    match value {
        Some(Value::Placeholder(_)) => Err(parameter()),
        Some(Value::SingleQuotedString(text)) if !text.contains(MARK) => Ok(text.clone()),
        _ => Err(Error::new(ErrorKind::Syntax, format!("`{expr}` is not a literal timestamp")).with_hint(
            "write `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`, in UTC or with a zone as `+01:00`",
        )),
    }
}

/// Of what a time without a zone is one in UTC: not of types that take the session's.
fn is_moment(data_type: &DataType) -> bool {
    let is_plain = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone);
    match data_type {
        DataType::Timestamp(_, zone) => is_plain(zone),
        DataType::Date => true,
        _ => false,
    }
}

/// A statement is planned before its parameters are there, and for all that may come.
fn parameter() -> Error {
    Error::unsupported("the version of a table cannot be a parameter")
        .with_hint("write it out, as in `FOR VERSION AS OF 3` or `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`")
}

#[cfg(test)]
mod tests {
    use super::{AsOf, marked, unmarked};

    #[test]
    fn names_carry_which_state_is_meant() {
        for (name, wanted) in [
            ("\u{2}7\u{2}t", Some(AsOf::Version(7))),
            ("\u{2}@2999-01-01\u{2}t", Some(AsOf::Time("2999-01-01"))),
            ("\u{2}#v1\u{2}t", Some(AsOf::Reference("v1"))),
            ("\u{2}x\u{2}t", None),
            ("t", None),
        ] {
            assert_eq!(marked(name), wanted.map(|wanted| ("t", wanted)), "{name:?}");
        }
    }

    #[test]
    fn messages_name_the_table() {
        for (message, shown) in [
            ("table 'lake.db.\u{2}7\u{2}t' not found", "table 'lake.db.t' not found"),
            ("`e1.main.\u{2}@2999-01-01\u{2}orders`, \u{2}1\u{2}t", "`e1.main.orders`, t"),
            (
                "table 'b.main.\u{2}changes\u{2}0\u{1e}@2999-01-01\u{1e}t' not found",
                "table 'b.main.t' not found",
            ),
            ("scan \u{2}changes\u{2}0\u{1e}\u{1e}t, \u{2}1\u{2}u", "scan t, u"),
            ("cut \u{2}changes\u{2}0", "cut 0"),
            ("t", "t"),
        ] {
            assert_eq!(unmarked(message), shown);
        }
    }
}
