//! `NATURAL JOIN` is a join with USING on the columns that both sides have. The tables are asked for those; where one cannot be
//! asked by itself, as a name of WITH, the join stays what it is.

use bowshot_sql::Tree;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Ident, Join, JoinConstraint, ObjectName, TableFactor, TableWithJoins};
use std::collections::HashMap;

/// Tables that are asked for their columns for one statement.
const MAX_TABLES: usize = 64;

/// The statement without such joins, as far as it can be.
pub(crate) async fn with_natural_columns(
    mut statement: Statement,
    state: impl Fn() -> SessionState,
) -> Statement {
    let mut tables: Vec<String> = Vec::new();
    change_natural(&mut statement, |from| {
        for table in relations(from).map(ToString::to_string) {
            if tables.len() < MAX_TABLES && !tables.contains(&table) {
                tables.push(table);
            }
        }
    });
    if tables.is_empty() {
        return statement;
    }
    let (state, mut known) = (state(), HashMap::new());
    for table in tables {
        if let Some(columns) = columns(&table, &state).await {
            known.insert(table, columns);
        }
    }
    change_natural(&mut statement, |from| name_columns(from, &known));
    statement
}

/// Changes what has such a join in FROM.
fn change_natural(statement: &mut Statement, mut change: impl FnMut(&mut TableWithJoins)) {
    match statement {
        Statement::Statement(sql) => sql.change_selects(|select| {
            select.from.iter_mut().filter(|from| from.joins.iter().any(is_natural)).for_each(&mut change);
        }),
        Statement::Explain(explain) => change_natural(&mut explain.statement, change),
        _ => {}
    }
}

async fn columns(table: &str, state: &SessionState) -> Option<Vec<String>> {
    let statement = bowshot_sql::read_statement(&format!("SELECT * FROM {table}")).ok()?;
    let plan = Box::pin(state.statement_to_plan(Statement::Statement(Box::new(statement)))).await.ok()?;
    Some(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

fn relations(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

fn is_natural(join: &Join) -> bool {
    crate::plan::semantics::using::constraint(join)
        .is_some_and(|constraint| *constraint == JoinConstraint::Natural)
}

fn name_columns(from: &mut TableWithJoins, known: &HashMap<String, Vec<String>>) {
    let all: Option<Vec<_>> =
        relations(from).map(|relation| known.get(&relation.to_string()).cloned()).collect();
    let Some(mut all) = all.map(Vec::into_iter) else { return };
    let mut left: Vec<String> = all.next().unwrap_or_default();
    for (join, right) in from.joins.iter_mut().zip(all) {
        let natural = is_natural(join);
        let shared: Vec<_> = left.iter().filter(|name| right.contains(name)).collect();
        if natural && !shared.is_empty() {
            let names = shared.into_iter().map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
            let using = JoinConstraint::Using(names.collect());
            if let Some(constraint) = crate::plan::semantics::using::constraint_mut(join) {
                *constraint = using;
            }
        }
        left.extend(right.into_iter().filter(|name| !left.contains(name)).collect::<Vec<_>>());
    }
}
