//! `FROM t FOR VERSION AS OF 3` and `FROM t FOR TIMESTAMP AS OF '…'`: the planner asks its catalog for names only, so the name
//! carries which state is meant, in a form that no text can have.

use crate::template::{meaning, quoted};
use crate::walk::Tree;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, TableVersion, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// Begins a name that carries a version. The tokenizer gives no name with it: [`mark`] refuses those of quoted ones.
pub(super) const MARK: char = '\u{2}';

/// Which state of a table is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsOf<'name> {
    /// The state of that number.
    Version(u64),
    /// The state at that time, as it was written.
    Time(&'name str),
}

/// The name of a table and which state of it is meant, of a name that [`super::statement`] has made.
pub fn marked(name: &str) -> Option<(&str, AsOf<'_>)> {
    let (state, name) = name.strip_prefix(MARK)?.split_once(MARK)?;
    let state = match state.strip_prefix('@') {
        Some(time) => AsOf::Time(time),
        None => AsOf::Version(state.parse().ok()?),
    };
    Some((name, state))
}

pub(super) fn mark(statement: &mut impl Tree) -> Result<()> {
    match statement.walk(&mut Marks) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Marks;

impl VisitorMut for Marks {
    type Break = Error;

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<Error> {
        let reserved = |ident: &Ident| ident.value.contains(MARK) || ident.value.contains(super::MARK);
        match name.0.iter().filter_map(|part| part.as_ident()).any(reserved) {
            true => ControlFlow::Break(Error::invalid("names must not contain control characters")),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match with_version(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn with_version(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, version, .. } = factor else { return Ok(()) };
    let Some(version) = version.take() else { return Ok(()) };
    let state = match version {
        TableVersion::VersionAsOf(expr) => number(&expr)?,
        TableVersion::TimestampAsOf(expr) => format!("@{}", time(&expr)?),
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
        Error::new(ErrorKind::Syntax, format!("`{expr}` is no version of a table"))
            .with_hint("write a number, as in `FOR VERSION AS OF 3`")
    };
    let Expr::Value(value) = expr else { return Err(refused()) };
    let Value::Number(number, _) = &value.value else { return Err(refused()) };
    number.parse::<u64>().map(|number| number.to_string()).map_err(|_| refused())
}

fn time(expr: &Expr) -> Result<String> {
    let text = match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    text.ok_or_else(|| {
        Error::new(ErrorKind::Syntax, format!("`{expr}` is no point in time"))
            .with_hint("write `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`, in UTC or with a zone as `+01:00`")
    })
}
