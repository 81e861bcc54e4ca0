//! Tables of one name in two schemas.
//!
//! The planner takes `m.a` for a column of every table whose last name is `m`, and `arch.m.a` for one of a table that is
//! written as `m` alone. Where a statement has tables of one last name that are written differently, those with a schema get
//! an alias of their own, and what names their columns names the alias. As in PostgreSQL the innermost query is looked at
//! first. Of two tables in one FROM, `m.a` is ambiguous; only where rows are changed it is that which is written as `m`.

use super::scopes::{dotted, with_access};
use crate::template::{meaning, quoted};
use crate::walk::{Tree, flow, replace};
use bowshot_api::{Error, Reason, Result};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// What may change rows of tables, which it names outside of its queries.
pub(super) trait Changes {
    /// The statement, if it is one.
    fn change(&mut self) -> Option<&mut Statement>;
}

impl Changes for Statement {
    fn change(&mut self) -> Option<&mut Statement> {
        Some(self)
    }
}

impl Changes for Query {
    fn change(&mut self) -> Option<&mut Statement> {
        None
    }
}

pub(super) fn tell_apart<T: Tree + Changes>(statement: &mut T) -> Result<()> {
    // How the tables of each last name are written.
    let mut spellings: BTreeMap<String, BTreeSet<Vec<String>>> = BTreeMap::new();
    statement.change_tables(|factor| {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            let parts = match alias {
                Some(alias) => vec![meaning(&alias.name)],
                None => parts(name),
            };
            if let Some(last) = parts.last() {
                spellings.entry(last.clone()).or_default().insert(parts);
            }
        }
    });
    let twice: BTreeSet<String> =
        spellings.into_iter().filter(|(_, ways)| ways.len() > 1).map(|(last, _)| last).collect();
    if twice.is_empty() {
        return Ok(());
    }
    let mut aliases = Aliases { twice, scopes: Vec::new() };
    if let Some(scope) = statement.change().and_then(|change| aliases.scope_of_change(change)) {
        aliases.scopes.push(Scope { known: scope, changed: true });
    }
    statement.try_walk(&mut aliases)
}

fn parts(name: &ObjectName) -> Vec<String> {
    name.0.iter().filter_map(ObjectNamePart::as_ident).map(meaning).collect()
}

/// A table as a query knows it.
struct Known {
    /// As it is written; an alias is one part.
    parts: Vec<String>,
    /// What it is called from now on, if that is another name.
    alias: Option<String>,
}

/// The tables of one query, or those of a statement that changes rows.
struct Scope {
    known: Vec<Known>,
    changed: bool,
}

impl Scope {
    fn of_query(known: Vec<Known>) -> Self {
        Self { known, changed: false }
    }

    /// The table that a qualifier names.
    fn table(&self, qualifier: &[String]) -> Result<Option<&Known>> {
        // `arch.m` may be written `bowshot.arch.m` in FROM, and `m` alone names it as well.
        let mut fitting = self.known.iter().filter(|known| known.parts.ends_with(qualifier));
        let first = fitting.next();
        if let [name] = qualifier
            && !self.changed
            && fitting.next().is_some()
        {
            return Err(Error::invalid(format!("table name `{name}` is ambiguous"))
                .with_reason(Reason::DuplicateAlias)
                .with_hint("give the tables other names with AS, or write their schemas"));
        }
        let exact = self.known.iter().find(|known| known.parts == qualifier);
        Ok(exact.or(first))
    }
}

struct Aliases {
    twice: BTreeSet<String>,
    scopes: Vec<Scope>,
}

impl Aliases {
    fn scope(&self, from: &mut [TableWithJoins]) -> Vec<Known> {
        let mut scope = Vec::new();
        for table in from {
            self.factor(&mut table.relation, &mut scope);
            for join in &mut table.joins {
                self.factor(&mut join.relation, &mut scope);
            }
        }
        scope
    }

    fn factor(&self, factor: &mut TableFactor, scope: &mut Vec<Known>) {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let written = parts(name);
                let Some(last) = written.last() else { return };
                if let Some(alias) = alias {
                    // The alias may be one of ours, from a look at the same query before.
                    let known = meaning(&alias.name);
                    let parts = if known == called(&written) { written } else { vec![known.clone()] };
                    let alias = (parts.len() > 1).then_some(known);
                    scope.push(Known { parts, alias });
                } else if written.len() > 1 && self.twice.contains(last) {
                    let known = called(&written);
                    let columns = Vec::new();
                    *alias = Some(TableAlias { explicit: true, name: quoted(&known), columns, at: None });
                    scope.push(Known { parts: written, alias: Some(known) });
                } else {
                    scope.push(Known { parts: written, alias: None });
                }
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                scope.extend(self.scope(std::slice::from_mut(table_with_joins)));
            }
            TableFactor::Derived { alias: Some(alias), .. } => {
                scope.push(Known { parts: vec![meaning(&alias.name)], alias: None });
            }
            _ => {}
        }
    }

    /// The tables of a statement that changes rows.
    fn scope_of_change(&self, statement: &mut Statement) -> Option<Vec<Known>> {
        Some(match statement {
            Statement::Delete(delete) => {
                let (sqlparser::ast::FromTable::WithFromKeyword(from)
                | sqlparser::ast::FromTable::WithoutKeyword(from)) = &mut delete.from;
                let mut scope = self.scope(from);
                scope.extend(delete.using.iter_mut().flat_map(|using| self.scope(using)));
                scope
            }
            Statement::Update(update) => {
                let mut scope = self.scope(std::slice::from_mut(&mut update.table));
                if let Some(
                    sqlparser::ast::UpdateTableFromKind::BeforeSet(from)
                    | sqlparser::ast::UpdateTableFromKind::AfterSet(from),
                ) = &mut update.from
                {
                    scope.extend(self.scope(from));
                }
                scope
            }
            Statement::Merge(merge) => {
                let mut scope = Vec::new();
                self.factor(&mut merge.table, &mut scope);
                self.factor(&mut merge.source, &mut scope);
                scope
            }
            _ => return None,
        })
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        let scope = self.scope(&mut select.from);
        self.scopes.push(Scope::of_query(scope));
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(alias) = self.alias_of(&parts(name))?
            {
                *name = ObjectName::from(vec![quoted(&alias)]);
            }
        }
        Ok(())
    }

    /// The alias of the table that a qualifier names, if it has one of ours.
    fn alias_of(&self, qualifier: &[String]) -> Result<Option<String>> {
        for scope in self.scopes.iter().rev() {
            if let Some(known) = scope.table(qualifier)? {
                return Ok(known.alias.clone());
            }
        }
        Ok(None)
    }

    fn column(&self, names: &[Ident]) -> Result<Option<Vec<Ident>>> {
        // The longest qualifier first: `a.b.c` may be a field `c` of the column `b` of a table `a` too.
        for end in (1..names.len().min(4)).rev() {
            let (qualifier, rest) = names.split_at(end);
            let qualifier: Vec<String> = qualifier.iter().map(meaning).collect();
            if let Some(alias) = self.alias_of(&qualifier)? {
                return Ok(Some(std::iter::once(quoted(&alias)).chain(rest.iter().cloned()).collect()));
            }
        }
        Ok(None)
    }

    /// The expression with the alias of its table, if that has one of ours.
    fn renamed(&self, expr: &Expr) -> Result<Option<Expr>> {
        let Some((names, rest)) = dotted(expr) else { return Ok(None) };
        Ok(self.column(&names)?.map(|names| with_access(names, rest.to_vec())))
    }
}

fn called(parts: &[String]) -> String {
    parts.join("__")
}

impl VisitorMut for Aliases {
    type Break = Error;

    /// ORDER BY belongs to the query, and sees the tables of its SELECT.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let scope = match query.body.as_mut() {
            SetExpr::Select(select) => self.scope(&mut select.from),
            _ => Vec::new(),
        };
        self.scopes.push(Scope::of_query(scope));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(self.select(select))
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        replace(expr, |expr| self.renamed(expr))
    }
}
