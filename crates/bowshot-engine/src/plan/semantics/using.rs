//! Columns of `JOIN … USING`. In `t FULL JOIN u USING (k)` there is one column `k`, which has its value from whichever side has
//! a row; DataFusion takes that of the left side, which is NULL where only the right side has one. Here the column is spelled
//! out as `coalesce(t.k, u.k)`, and the join gets its conditions with ON. `SELECT *` begins with such columns.

use bowshot_api::{Error, Result};
use bowshot_sql::Tree;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderBy, OrderByKind, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins,
};

/// Spells out what the joins of one SELECT, and the order of its rows, say of such columns.
pub(crate) fn spelled_out(select: &mut Select, order: Option<&mut OrderBy>) -> Result<()> {
    if !select.from.iter().any(has_using) {
        return Ok(());
    }
    let mut chains = Vec::with_capacity(select.from.len());
    for tables in &select.from {
        match Chain::of(tables) {
            Some(chain) => chains.push(chain),
            None if select.from.iter().any(has_outer) => return Err(unclear()),
            None => return Ok(()),
        }
    }
    let outer = select.from.iter().any(has_outer);
    wildcards(select, &chains, outer)?;
    if outer {
        let merged: Vec<_> = chains.iter().flat_map(|chain| chain.merged.iter()).cloned().collect();
        conditions(select)?;
        columns(select, order, &merged)?;
        return Ok(());
    }
    // The planner finds such a name ambiguous in WHERE and in expressions of ORDER BY, and everywhere where more than two tables
    // share it.
    let shared = || chains.iter().flat_map(|chain| &chain.merged);
    let mut merged: Vec<_> = shared().map(Merged::of_left).collect();
    if shared().any(|one| one.sides.len() > 2) {
        columns(select, order, &merged)?;
        return Ok(());
    }
    if let Some(condition) = &mut select.selection {
        spell(condition, &merged)?;
    }
    let names = result_names(select);
    merged.retain(|one| !names.iter().any(|name| one.is(name)));
    order_keys(order, &merged, |expr| matches!(expr, Expr::Identifier(_)))
}

fn unclear() -> Error {
    Error::unsupported(
        "the columns of this `FULL JOIN` or `RIGHT JOIN` with `USING` or `NATURAL` cannot be resolved",
    )
    .with_hint("write the condition with `ON`, and name the side of each column")
}

/// A column that several tables share.
#[derive(Debug, Clone)]
struct Merged {
    name: Ident,
    /// What stands before its name in each table that has it.
    sides: Vec<String>,
}

impl Merged {
    /// The column of the first so many of its tables.
    fn text(&self, of: usize) -> String {
        let columns: Vec<_> =
            self.sides.iter().take(of).map(|side| format!("{side}.{}", self.name)).collect();
        if columns.len() == 1 { columns.concat() } else { format!("coalesce({})", columns.join(", ")) }
    }

    fn is(&self, name: &Ident) -> bool {
        same(&self.name, name)
    }

    /// The column where the left side has all values.
    fn of_left(&self) -> Self {
        Self { sides: self.sides.iter().take(1).cloned().collect(), ..self.clone() }
    }
}

fn same(one: &Ident, other: &Ident) -> bool {
    // Names without quotes are in lower case.
    let spelled = |name: &Ident| {
        if name.quote_style.is_none() { name.value.to_lowercase() } else { name.value.clone() }
    };
    spelled(one) == spelled(other)
}

/// The tables of one item of FROM, and the columns that they share.
struct Chain {
    tables: Vec<String>,
    merged: Vec<Merged>,
}

impl Chain {
    /// `None` where somebody would have to know the columns of the tables.
    fn of(from: &TableWithJoins) -> Option<Self> {
        let mut chain = Self { tables: vec![table(&from.relation)?], merged: Vec::new() };
        for join in &from.joins {
            let next = table(&join.relation)?;
            match constraint(join) {
                Some(JoinConstraint::Using(names)) => chain.merge(names, &next)?,
                Some(JoinConstraint::Natural) => return None,
                // Semi and anti joins, and those that are none of the standard's.
                None => return None,
                Some(_) => {}
            }
            chain.tables.push(next);
        }
        Some(chain)
    }

    fn merge(&mut self, names: &[ObjectName], next: &str) -> Option<()> {
        for name in names {
            let name = name.0.last()?.as_ident()?;
            if let Some(known) = self.merged.iter_mut().find(|known| known.is(name)) {
                known.sides.push(next.to_owned());
            } else {
                let [only] = self.tables.as_slice() else { return None };
                self.merged.push(Merged { name: name.clone(), sides: vec![only.clone(), next.to_owned()] });
            }
        }
        Some(())
    }

    /// What `*` stands for.
    fn all(&self) -> Vec<String> {
        let merged = self.merged.iter();
        let mut items: Vec<_> =
            merged.clone().map(|one| format!("{} AS {}", one.text(one.sides.len()), one.name)).collect();
        for table in &self.tables {
            let own = merged.clone().filter(|one| one.sides.contains(table));
            let own: Vec<_> = own.map(|one| one.name.to_string()).collect();
            items.push(if own.is_empty() {
                format!("{table}.*")
            } else {
                format!("{table}.* EXCLUDE ({})", own.join(", "))
            });
        }
        items
    }
}

/// What stands before the columns of a table.
fn table(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.to_string())
        }
        TableFactor::Table { name, alias: None, args: None, .. } => Some(name.to_string()),
        _ => None,
    }
}

pub(crate) fn constraint(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

pub(crate) fn constraint_mut(join: &mut Join) -> Option<&mut JoinConstraint> {
    match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

fn has_using(from: &TableWithJoins) -> bool {
    joins(from).any(|join| {
        matches!(constraint(join), Some(JoinConstraint::Using(_)))
            || matches!(constraint(join), Some(JoinConstraint::Natural)) && is_outer(join)
    })
}

fn has_outer(from: &TableWithJoins) -> bool {
    joins(from).any(|join| {
        matches!(constraint(join), Some(JoinConstraint::Using(_) | JoinConstraint::Natural)) && is_outer(join)
    })
}

/// The joins of one item of FROM, also those in brackets.
fn joins(from: &TableWithJoins) -> Box<dyn Iterator<Item = &Join> + '_> {
    let relations = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
    let nested = relations.filter_map(|relation| match relation {
        TableFactor::NestedJoin { table_with_joins, .. } => Some(table_with_joins.as_ref()),
        _ => None,
    });
    Box::new(from.joins.iter().chain(nested.flat_map(joins)))
}

/// Whether rows of the right side come without one of the left.
fn is_outer(join: &Join) -> bool {
    matches!(
        join.join_operator,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
    )
}

fn wildcards(select: &mut Select, chains: &[Chain], outer: bool) -> Result<()> {
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options) if plain(&options.to_string()) => {
                let all: Vec<_> = chains
                    .iter()
                    .flat_map(|chain| if outer { chain.all() } else { chain.all_of_left() })
                    .collect();
                items.extend(parsed(&all.join(", "))?);
            }
            SelectItem::Wildcard(_) if outer => return Err(unclear()),
            item => items.push(item),
        }
    }
    select.projection = items;
    Ok(())
}

fn plain(options: &str) -> bool {
    options.trim().is_empty()
}

impl Chain {
    /// What `*` stands for where the left side has all values.
    fn all_of_left(&self) -> Vec<String> {
        let left = self.merged.iter().map(Merged::of_left);
        let columns = left.map(|one| format!("{} AS {}", one.text(1), one.name)).collect::<Vec<_>>();
        let tables = self.all().split_off(self.merged.len());
        columns.into_iter().chain(tables).collect()
    }
}

fn parsed(items: &str) -> Result<Vec<SelectItem>> {
    let query =
        bowshot_sql::read_query(&format!("SELECT {items}")).map_err(|error| unclear().with_source(error))?;
    match *query.body {
        SetExpr::Select(select) => Ok(select.projection),
        _ => Err(unclear()),
    }
}

fn expression(text: &str) -> Result<Expr> {
    bowshot_sql::read_expression(text).map_err(|error| unclear().with_source(error))
}

/// Conditions with ON instead of USING.
fn conditions(select: &mut Select) -> Result<()> {
    for from in &mut select.from {
        let Some(chain) = Chain::of(from) else { return Err(unclear()) };
        let mut known = vec![1; chain.merged.len()];
        for (place, join) in from.joins.iter_mut().enumerate() {
            let Some(JoinConstraint::Using(names)) = constraint(join).cloned() else { continue };
            let next = chain.tables.get(place + 1).ok_or_else(unclear)?;
            let mut parts = Vec::with_capacity(names.len());
            for (one, known) in chain.merged.iter().zip(&mut known) {
                if names.iter().filter_map(|name| name.0.last()?.as_ident()).any(|name| one.is(name)) {
                    parts.push(format!("{} = {next}.{}", one.text(*known), one.name));
                    *known += 1;
                }
            }
            if let Some(constraint) = constraint_mut(join) {
                *constraint = JoinConstraint::On(expression(&parts.join(" AND "))?);
            }
        }
    }
    Ok(())
}

/// Names of shared columns, wherever one stands for itself.
fn columns(select: &mut Select, order: Option<&mut OrderBy>, merged: &[Merged]) -> Result<()> {
    let named = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
            merged.iter().any(|one| one.is(name)).then(|| name.clone())
        }
        _ => None,
    };
    for item in &mut select.projection {
        if let Some(alias) = named(item)
            && let SelectItem::UnnamedExpr(expr) = item
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    let names = result_names(select);
    spell(select, merged)?;
    // A name alone is that of a column of the result, if there is one.
    order_keys(
        order,
        merged,
        |expr| matches!(expr, Expr::Identifier(name) if names.iter().any(|alias| same(alias, name))),
    )
}

/// The names that columns of the result are given.
fn result_names(select: &Select) -> Vec<Ident> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        _ => None,
    });
    aliases.collect()
}

/// Names of shared columns in ORDER BY, except in keys that are by the result.
fn order_keys(
    order: Option<&mut OrderBy>,
    merged: &[Merged],
    by_result: impl Fn(&Expr) -> bool,
) -> Result<()> {
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order else { return Ok(()) };
    for key in keys.iter_mut().filter(|key| !by_result(&key.expr)) {
        spell(key, merged)?;
    }
    Ok(())
}

/// Spells out the columns, but not in queries, whose names may be their own.
fn spell(part: &mut impl Tree, merged: &[Merged]) -> Result<()> {
    part.try_change_own_expressions(|expr| {
        if let Expr::Identifier(name) = expr
            && let Some(one) = merged.iter().find(|one| one.is(name))
        {
            *expr = expression(&one.text(one.sides.len()))?;
        }
        Ok(())
    })
}
