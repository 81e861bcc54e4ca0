//! `CYCLE` and `SEARCH` of recursive queries, as columns that both terms compute: the way to a row, and whether it has been there.

use crate::recursion_clauses::{APART, CARRIED};
use crate::template::{self, meaning};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Cte, Expr, Ident, Query, Select, SelectItem, SetExpr, SetOperator, TableAliasColumnDef, TableFactor,
};

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_change_queries(in_query)
}

fn in_query(query: &mut Query) -> Result<()> {
    for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        let carried = |lock: &sqlparser::ast::LockClause| {
            let name = lock.of.as_ref()?.0.last()?.as_ident()?;
            name.value.strip_prefix(CARRIED).map(str::to_owned)
        };
        let clauses: Vec<String> = table.query.locks.iter().filter_map(carried).collect();
        table.query.locks.retain(|lock| carried(lock).is_none());
        for clause in clauses {
            Clause::read(&clause)?.apply(table)?;
        }
    }
    Ok(())
}

/// A clause in its parts.
enum Clause {
    Cycle { columns: Vec<Ident>, mark: Ident, values: Box<(Expr, Expr)>, way: Ident },
    Search { breadth: bool, columns: Vec<Ident>, order: Ident },
}

fn invalid() -> Error {
    Error::invalid("invalid CYCLE or SEARCH clause of a recursive query")
        .with_hint("write `CYCLE a SET is_cycle USING way` or `SEARCH DEPTH FIRST BY a SET place`")
}

fn name(word: &str) -> Result<Ident> {
    match template::expression(word, &[])? {
        Expr::Identifier(name) => Ok(name),
        _ => Err(invalid()),
    }
}

impl Clause {
    /// Of its words.
    fn read(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(APART).filter(|word| !word.is_empty()).collect();
        let is =
            |at: usize, wanted: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(wanted));
        let place = |wanted: &str| words.iter().position(|word| word.eq_ignore_ascii_case(wanted));
        let set = place("SET").ok_or_else(invalid)?;
        let word = |at: usize| words.get(at).copied().ok_or_else(invalid);
        let names = |from: usize| {
            let words = words.get(from..set).unwrap_or_default().iter();
            words.filter(|word| **word != ",").map(|word| name(word)).collect::<Result<Vec<Ident>>>()
        };
        if is(0, "CYCLE") {
            let using = place("USING").ok_or_else(invalid)?;
            let value = |at| word(at).and_then(|word| template::expression(word, &[]));
            let values = match place("TO") {
                Some(to) if is(to + 2, "DEFAULT") => (value(to + 1)?, value(to + 3)?),
                Some(_) => return Err(invalid()),
                None => (template::expression("true", &[])?, template::expression("false", &[])?),
            };
            let values = Box::new(values);
            let (mark, way) = (name(word(set + 1)?)?, name(word(using + 1)?)?);
            return Ok(Self::Cycle { columns: names(1)?, mark, values, way });
        }
        let breadth = is(1, "BREADTH");
        if !(breadth || is(1, "DEPTH")) || !is(2, "FIRST") || !is(3, "BY") {
            return Err(invalid());
        }
        Ok(Self::Search { breadth, columns: names(4)?, order: name(word(set + 1)?)? })
    }

    fn apply(&self, table: &mut Cte) -> Result<()> {
        let mut terms = Terms::of(table)?;
        match self {
            Self::Cycle { columns, mark, values, way } => {
                let (first, next) = (terms.first_value(columns)?, terms.next_value(columns)?);
                let been = terms.call("array_has(w, v)", &[("w", &terms.before(way)), ("v", &next)])?;
                let (yes, no) = values.as_ref();
                let marked =
                    terms.call("CASE WHEN b THEN y ELSE n END", &[("b", &been), ("y", yes), ("n", no)])?;
                let on = terms.call("m IS DISTINCT FROM y", &[("m", &terms.before(mark)), ("y", yes)])?;
                let begun = terms.call("make_array(v)", &[("v", &first)])?;
                let gone = terms.call("array_append(w, v)", &[("w", &terms.before(way)), ("v", &next)])?;
                terms.add(mark, no.clone(), marked);
                terms.add(way, begun, gone);
                terms.restrict(on)
            }
            Self::Search { breadth: false, columns, order } => {
                let (first, next) = (terms.first_value(columns)?, terms.next_value(columns)?);
                let begun = terms.call("make_array(v)", &[("v", &first)])?;
                let gone = terms.call("array_append(w, v)", &[("w", &terms.before(order)), ("v", &next)])?;
                terms.add(order, begun, gone);
                Ok(())
            }
            Self::Search { breadth: true, columns, order } => {
                let (first, next) = (terms.first_value(columns)?, terms.next_value(columns)?);
                let begun = terms.call("named_struct('depth', 0, 'key', v)", &[("v", &first)])?;
                let holes = [("w", &terms.before(order)), ("v", &next)];
                let gone =
                    terms.call("named_struct('depth', get_field(w, 'depth') + 1, 'key', v)", &holes)?;
                terms.add(order, begun, gone);
                Ok(())
            }
        }
    }
}

/// The two terms of a recursive query.
struct Terms<'a> {
    names: &'a mut Vec<TableAliasColumnDef>,
    first: &'a mut Select,
    next: &'a mut Select,
    /// What the recursive term calls the rows before.
    rows: Ident,
}

impl<'a> Terms<'a> {
    fn of(table: &'a mut Cte) -> Result<Self> {
        let unclear = || {
            Error::unsupported(
                "CYCLE and SEARCH take a recursive query of two SELECTs that name their columns",
            )
            .with_hint("write `WITH RECURSIVE r(a) AS (SELECT … UNION ALL SELECT … FROM r JOIN …)`")
        };
        let own = meaning(&table.alias.name);
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = table.query.body.as_mut()
        else {
            return Err(unclear());
        };
        let (SetExpr::Select(first), SetExpr::Select(next)) = (left.as_mut(), right.as_mut()) else {
            return Err(unclear());
        };
        let tables = next.from.iter().flat_map(|from| {
            std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
        });
        let called = |factor: &TableFactor| match factor {
            TableFactor::Table { name, alias, .. }
                if name
                    .0
                    .last()
                    .and_then(|part| part.as_ident())
                    .is_some_and(|name| meaning(name) == own) =>
            {
                let name = name.0.last().and_then(|part| part.as_ident()).cloned();
                alias.as_ref().map(|alias| alias.name.clone()).or(name)
            }
            _ => None,
        };
        let rows = tables.into_iter().find_map(called).ok_or_else(unclear)?;
        Ok(Self { names: &mut table.alias.columns, first, next, rows })
    }

    fn call(&self, text: &str, holes: &[(&str, &Expr)]) -> Result<Expr> {
        template::expression(text, holes)
    }

    /// A column of the rows before.
    fn before(&self, column: &Ident) -> Expr {
        Expr::CompoundIdentifier(vec![self.rows.clone(), column.clone()])
    }

    fn first_value(&self, columns: &[Ident]) -> Result<Expr> {
        together(self.values(columns, self.first)?)
    }

    /// In the types that the columns have by the first term: a list of structs takes no others.
    fn next_value(&self, columns: &[Ident]) -> Result<Expr> {
        let values = self.values(columns, self.next)?;
        let values = columns.iter().zip(values).map(|(column, value)| {
            let holes = [("b", &self.before(column)), ("v", &value)];
            self.call("CASE WHEN false THEN b ELSE v END", &holes)
        });
        together(values.collect::<Result<_>>()?)
    }

    /// What a term gives for the columns.
    fn values(&self, columns: &[Ident], term: &Select) -> Result<Vec<Expr>> {
        let values = columns.iter().map(|column| {
            let at = self.place(column).ok_or_else(|| {
                Error::invalid(format!("the recursive query has no column `{}`", column.value))
            })?;
            match term.projection.get(at) {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                    Ok(expr.clone())
                }
                _ => Err(Error::unsupported("CYCLE and SEARCH take a query that names its columns")),
            }
        });
        values.collect()
    }

    /// Which column of the query has that name.
    fn place(&self, column: &Ident) -> Option<usize> {
        let wanted = meaning(column);
        if !self.names.is_empty() {
            return self.names.iter().position(|there| meaning(&there.name) == wanted);
        }
        self.first.projection.iter().position(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => meaning(alias) == wanted,
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => meaning(name) == wanted,
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                names.last().is_some_and(|name| meaning(name) == wanted)
            }
            _ => false,
        })
    }

    fn add(&mut self, name: &Ident, first: Expr, next: Expr) {
        if !self.names.is_empty() {
            self.names.push(TableAliasColumnDef { name: name.clone(), data_type: None });
        }
        let item = |expr| SelectItem::ExprWithAlias { expr, alias: name.clone() };
        self.first.projection.push(item(first));
        self.next.projection.push(item(next));
    }

    fn restrict(&mut self, condition: Expr) -> Result<()> {
        self.next.selection = Some(match self.next.selection.take() {
            Some(there) => template::expression("a AND b", &[("a", &there), ("b", &condition)])?,
            None => condition,
        });
        Ok(())
    }
}

/// One value, or a struct of several.
fn together(values: Vec<Expr>) -> Result<Expr> {
    if let [only] = values.as_slice() {
        return Ok(only.clone());
    }
    let names: Vec<String> = (0..values.len()).map(|at| format!("__value_{at}")).collect();
    let holes: Vec<(&str, &Expr)> = names.iter().map(String::as_str).zip(&values).collect();
    template::expression(&format!("struct({})", names.join(", ")), &holes)
}
