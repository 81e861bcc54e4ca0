//! Which tables a place in a statement can see. A visitor tells what it enters and leaves.

use crate::template::meaning;
use crate::walk::Tree;
use sqlparser::ast::{
    AccessExpr, Expr, FromTable, Ident, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SetExpr,
    Statement, TableAlias, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// A table as a query knows it.
pub(super) struct Known {
    /// Its name as it is written; an alias is one part.
    pub(super) parts: Vec<String>,
    /// Whether it is written without an alias.
    pub(super) plain: bool,
}

struct Scope {
    tables: Vec<Known>,
    /// Queries that come first and do not see the tables: those of WITH, and the rows that INSERT adds.
    blind: usize,
    /// How many scopes around it cannot be seen from it.
    hidden: usize,
    /// Whether there are outer joins, which give NULL for rows that are not there.
    has_outer_joins: bool,
}

/// The queries around a place, the innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    scopes: Vec<Scope>,
    /// Whether the next query stands in FROM without LATERAL.
    derived: bool,
}

impl Scopes {
    fn enter_statement(&mut self, statement: &Statement) {
        let blind = usize::from(matches!(statement, Statement::Insert(insert) if insert.source.is_some()));
        self.scopes.push(Scope { tables: changed(statement), blind, hidden: 0, has_outer_joins: false });
    }

    fn leave_statement(&mut self) {
        self.scopes.pop();
    }

    /// ORDER BY belongs to the query, and sees the tables of its SELECT.
    fn enter_query(&mut self, query: &Query) {
        let blind = self.scopes.last().is_some_and(|around| around.blind > 0);
        let hidden = match (std::mem::take(&mut self.derived), blind) {
            // The SELECT with that FROM, and its query.
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        let from = match query.body.as_ref() {
            SetExpr::Select(select) => select.from.as_slice(),
            _ => &[],
        };
        let blind = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        let has_outer_joins = has_outer_joins(from);
        self.scopes.push(Scope { tables: tables(from), blind, hidden, has_outer_joins });
    }

    fn leave_query(&mut self) {
        self.scopes.pop();
        if let Some(around) = self.scopes.last_mut() {
            around.blind = around.blind.saturating_sub(1);
        }
    }

    fn enter_select(&mut self, select: &Select) {
        let has_outer_joins = has_outer_joins(&select.from);
        self.scopes.push(Scope { tables: tables(&select.from), blind: 0, hidden: 0, has_outer_joins });
    }

    fn leave_select(&mut self) {
        self.scopes.pop();
    }

    fn enter_factor(&mut self, factor: &TableFactor) {
        self.derived = matches!(factor, TableFactor::Derived { lateral: false, .. });
    }

    /// Whether the innermost query has outer joins.
    pub(super) fn has_outer_joins(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.has_outer_joins)
    }

    /// The tables of each scope that can be seen, the innermost first.
    pub(super) fn seen(&self) -> impl Iterator<Item = &[Known]> {
        let mut hidden = 0_usize;
        self.scopes.iter().rev().filter_map(move |scope| {
            let seen = hidden == 0;
            hidden = hidden.saturating_sub(1).max(scope.hidden);
            seen.then_some(scope.tables.as_slice())
        })
    }
}

/// Calls `change` for each expression, before those within it, with the tables in sight.
pub(super) fn change_in_scopes(statement: &mut impl Tree, change: impl FnMut(&Scopes, &mut Expr)) {
    change_selects_in_scopes(statement, |_, _| {}, change);
}

/// The same, and calls `change_select` for each SELECT before what is within it.
pub(super) fn change_selects_in_scopes(
    statement: &mut impl Tree,
    change_select: impl FnMut(&Scopes, &mut Select),
    change: impl FnMut(&Scopes, &mut Expr),
) {
    let mut visitor = InScopes { scopes: Scopes::default(), change_select, change };
    let ControlFlow::Continue(()) = statement.walk(&mut visitor);
}

struct InScopes<S, F> {
    scopes: Scopes,
    change_select: S,
    change: F,
}

impl<S: FnMut(&Scopes, &mut Select), F: FnMut(&Scopes, &mut Expr)> VisitorMut for InScopes<S, F> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Infallible> {
        self.scopes.enter_statement(statement);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<Infallible> {
        self.scopes.leave_statement();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.scopes.enter_select(select);
        (self.change_select)(&self.scopes, select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Infallible> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        self.scopes.enter_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        (self.change)(&self.scopes, expr);
        ControlFlow::Continue(())
    }
}

/// The tables of a statement that changes rows.
fn changed(statement: &Statement) -> Vec<Known> {
    let mut known = Vec::new();
    match statement {
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            add_all(from, &mut known);
            delete.using.iter().for_each(|using| add_all(using, &mut known));
        }
        Statement::Update(update) => {
            add_all(std::slice::from_ref(&update.table), &mut known);
            if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) =
                &update.from
            {
                add_all(from, &mut known);
            }
        }
        Statement::Merge(merge) => {
            add(&merge.table, &mut known);
            add(&merge.source, &mut known);
        }
        Statement::Insert(insert) => {
            if let TableObject::TableName(name) = &insert.table {
                let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
                named(alias, Some(name), &mut known);
            }
        }
        _ => {}
    }
    known
}

fn has_outer_joins(from: &[TableWithJoins]) -> bool {
    from.iter().flat_map(|table| &table.joins).any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    })
}

pub(super) fn tables(from: &[TableWithJoins]) -> Vec<Known> {
    let mut known = Vec::new();
    add_all(from, &mut known);
    known
}

fn add_all(from: &[TableWithJoins], known: &mut Vec<Known>) {
    for table in from {
        add(&table.relation, known);
        table.joins.iter().for_each(|join| add(&join.relation, known));
    }
}

fn add(factor: &TableFactor, known: &mut Vec<Known>) {
    let of = |alias: &Option<TableAlias>| alias.as_ref().map(|alias| alias.name.clone());
    match factor {
        TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
            named(of(alias).as_ref(), Some(name), known);
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            add_all(std::slice::from_ref(table_with_joins.as_ref()), known);
        }
        TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Pivot { alias, .. }
        | TableFactor::Unpivot { alias, .. } => named(of(alias).as_ref(), None, known),
        _ => {}
    }
}

fn named(alias: Option<&Ident>, name: Option<&ObjectName>, known: &mut Vec<Known>) {
    let parts = match (alias, name) {
        (Some(alias), _) => vec![meaning(alias)],
        (None, Some(name)) => name.0.iter().filter_map(ObjectNamePart::as_ident).map(meaning).collect(),
        (None, None) => return,
    };
    known.push(Known { parts, plain: alias.is_none() });
}

/// The names of `a.b.c`, and what follows them in `a.b[1].c`, which the parser keeps apart. `None` for what has no dot.
pub(super) fn dotted(expr: &Expr) -> Option<(Vec<Ident>, &[AccessExpr])> {
    match expr {
        Expr::CompoundIdentifier(names) => Some((names.clone(), &[])),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let Expr::Identifier(first) = root.as_ref() else { return None };
            let names = access_chain.iter().map_while(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
                _ => None,
            });
            let names: Vec<Ident> = std::iter::once(first.clone()).chain(names).collect();
            let rest = access_chain.get(names.len() - 1..).unwrap_or_default();
            (names.len() > 1).then_some((names, rest))
        }
        _ => None,
    }
}

/// A column and what is taken out of it.
pub(super) fn with_access(names: Vec<Ident>, access_chain: Vec<AccessExpr>) -> Expr {
    let column = Expr::CompoundIdentifier(names);
    if access_chain.is_empty() {
        return column;
    }
    Expr::CompoundFieldAccess { root: Box::new(column), access_chain }
}
