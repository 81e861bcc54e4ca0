//! `SELECT name … FROM t GROUP BY id`, where `id` is the primary key of `t`: its other columns have one value in each group. Those that
//! the query names become keys of the groups beside it, which makes no other groups.

use super::outer_aggregates::is_aggregate;
use super::with_names::WithNames;
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// A table with a primary key.
#[derive(Debug, Clone)]
pub struct KeyedTable {
    pub columns: Vec<String>,
    pub key: Vec<String>,
}

/// Adds the columns that the primary keys among the keys of groups determine. `find_table` knows the tables that have one. Names of
/// WITH are no tables.
pub fn add_dependent_columns(
    statement: &mut impl Tree,
    find_table: impl FnMut(&ObjectName) -> Option<KeyedTable>,
) {
    let mut visitor = Groups { find_table, around: WithNames::default() };
    let ControlFlow::Continue(()) = statement.walk(&mut visitor);
}

struct Groups<F> {
    find_table: F,
    around: WithNames,
}

impl<F: FnMut(&ObjectName) -> Option<KeyedTable>> VisitorMut for Groups<F> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.around.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let order = query.order_by.as_ref().map(|order| &order.kind);
        if let (SetExpr::Select(select), Some(OrderByKind::Expressions(order))) = (query.body.as_mut(), order)
        {
            let mut named = ColumnNames::default();
            for by in order {
                let ControlFlow::Continue(()) = by.look(&mut named);
            }
            self.add(select, &named);
        }
        self.around.leave();
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut named = ColumnNames::default();
        for item in &select.projection {
            named.add_wildcard(item);
            let ControlFlow::Continue(()) = item.look(&mut named);
        }
        let ControlFlow::Continue(()) = select.distinct.look(&mut named);
        for condition in [&select.having, &select.qualify] {
            let ControlFlow::Continue(()) = condition.look(&mut named);
        }
        self.add(select, &named);
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&ObjectName) -> Option<KeyedTable>> Groups<F> {
    /// Adds those of the named columns that the keys of a query's groups determine.
    fn add(&mut self, select: &mut Select, named: &ColumnNames) {
        let Select { group_by: GroupByExpr::Expressions(keys, modifiers), from, projection, .. } = select
        else {
            return;
        };
        let is_plain =
            !keys.iter().any(|key| matches!(key, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_)));
        if keys.is_empty() || !modifiers.is_empty() || !is_plain || named.found.is_empty() {
            return;
        }
        let (tables, projection) = (self.keyed_tables(from), projection.as_slice());
        let mut grouped: Vec<(usize, String)> =
            keys.iter().filter_map(|key| find_column(&tables, &written(key, projection)?)).collect();
        for (place, table) in tables.iter().enumerate() {
            let is_key = |column: &String| grouped.iter().any(|(of, name)| *of == place && name == column);
            if !table.keyed.key.iter().all(is_key) {
                continue;
            }
            let all = table.keyed.columns.iter();
            let wanted =
                all.filter(|column| named.found.iter().any(|name| table.is_meant(name, column, &tables)));
            let missing: Vec<&String> = wanted.filter(|column| !is_key(column)).collect();
            for column in missing {
                keys.push(Expr::CompoundIdentifier(vec![table.ident.clone(), quoted(column)]));
                grouped.push((place, column.clone()));
            }
        }
    }

    /// The tables of a FROM that have a primary key, and a name that no other table has.
    fn keyed_tables(&mut self, from: &[TableWithJoins]) -> Vec<Table> {
        let mut factors = Vec::new();
        add_factors(from, &mut factors);
        let mut tables = Vec::new();
        let mut names = Vec::new();
        for factor in factors {
            let TableFactor::Table { name, alias, args: None, version: None, .. } = factor else { continue };
            let [.., ObjectNamePart::Identifier(last)] = name.0.as_slice() else { continue };
            let ident = alias.as_ref().map_or(last, |alias| &alias.name);
            names.push(meaning(ident));
            let is_renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
            let is_of_with = name.0.len() == 1 && self.around.find(&meaning(last)).is_some();
            if !is_renamed
                && !is_of_with
                && let Some(keyed) = (self.find_table)(name)
            {
                tables.push(Table { ident: ident.clone(), name: meaning(ident), keyed });
            }
        }
        tables.retain(|table| names.iter().filter(|name| **name == table.name).count() == 1);
        tables
    }
}

fn add_factors<'a>(from: &'a [TableWithJoins], factors: &mut Vec<&'a TableFactor>) {
    for table in from {
        let joined = table.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&table.relation).chain(joined) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    add_factors(std::slice::from_ref(table_with_joins.as_ref()), factors);
                }
                factor => factors.push(factor),
            }
        }
    }
}

struct Table {
    /// What its columns are called by, as it is written.
    ident: Ident,
    name: String,
    keyed: KeyedTable,
}

impl Table {
    fn has(&self, column: &str) -> bool {
        self.keyed.columns.iter().any(|known| known == column)
    }

    /// Whether a name that stands in the query can mean a column of this table.
    fn is_meant(&self, (table, column): &ColumnName, of_table: &str, tables: &[Self]) -> bool {
        let is_column = column.as_ref().is_none_or(|column| column == of_table);
        is_column
            && match table {
                Some(table) => *table == self.name,
                None if column.is_none() => true,
                None => tables.iter().filter(|other| other.has(of_table)).count() == 1,
            }
    }
}

/// The place of the table that a name means, and its column.
fn find_column(tables: &[Table], (table, column): &ColumnName) -> Option<(usize, String)> {
    let column = column.as_ref()?;
    let is_meant = |(_, known): &(usize, &Table)| {
        known.has(column) && table.as_ref().is_none_or(|table| *table == known.name)
    };
    let mut found = tables.iter().enumerate().filter(is_meant);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Some((place, column.clone())),
        _ => None,
    }
}

/// A table, if it is named, and its column; no column for all of them.
type ColumnName = (Option<String>, Option<String>);

/// The column that a key of groups names, by itself or by its place in the select list.
fn written(key: &Expr, projection: &[SelectItem]) -> Option<ColumnName> {
    match key {
        Expr::Nested(inner) => written(inner, projection),
        Expr::Value(value) => {
            let Value::Number(place, _) = &value.value else { return None };
            let place = place.parse::<usize>().ok()?.checked_sub(1)?;
            match projection.get(place)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => column_name(expr),
                _ => None,
            }
        }
        key => column_name(key),
    }
}

fn column_name(expr: &Expr) -> Option<ColumnName> {
    match expr {
        Expr::Identifier(column) => Some((None, Some(meaning(column)))),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., table, column] => Some((Some(meaning(table)), Some(meaning(column)))),
            _ => None,
        },
        _ => None,
    }
}

/// The columns that expressions name outside of aggregates, those of queries within them included: one too many makes no other groups.
#[derive(Default)]
struct ColumnNames {
    found: Vec<ColumnName>,
    /// How many aggregates are around the place.
    aggregates: usize,
}

impl ColumnNames {
    fn add_wildcard(&mut self, item: &SelectItem) {
        match item {
            SelectItem::Wildcard(_) => self.found.push((None, None)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                if let Some(ObjectNamePart::Identifier(table)) = name.0.last() {
                    self.found.push((Some(meaning(table)), None));
                }
            }
            _ => {}
        }
    }
}

impl Visitor for ColumnNames {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.aggregates += usize::from(is_aggregate(expr));
        if self.aggregates == 0 {
            self.found.extend(column_name(expr));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.aggregates -= usize::from(is_aggregate(expr));
        ControlFlow::Continue(())
    }
}
