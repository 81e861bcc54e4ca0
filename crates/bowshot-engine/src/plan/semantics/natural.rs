//! `NATURAL JOIN` is a join with USING on the columns that both sides have. The tables are asked for those; where one cannot be
//! asked by itself, as a name of WITH, the join stays what it is.

use bowshot_sql::Tree;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Ident, Join, JoinConstraint, ObjectName, Select, Statement as Sql, TableFactor, TableWithJoins,
    VisitorMut,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Tables that are asked for their columns for one statement.
const MAX_TABLES: usize = 64;

/// The statement without such joins, as far as it can be.
pub(crate) async fn with_natural_columns(
    mut statement: Statement,
    state: impl Fn() -> SessionState,
) -> Statement {
    let mut tables = Tables::default();
    if let Some(sql) = sql(&mut statement) {
        let _: ControlFlow<()> = sql.walk(&mut tables);
    }
    if tables.0.is_empty() {
        return statement;
    }
    let (state, mut known) = (state(), HashMap::new());
    for table in tables.0 {
        if let Some(columns) = columns(&table, &state).await {
            known.insert(table, columns);
        }
    }
    if let Some(sql) = sql(&mut statement) {
        let _: ControlFlow<()> = sql.walk(&mut Naming(known));
    }
    statement
}

fn sql(statement: &mut Statement) -> Option<&mut Sql> {
    match statement {
        Statement::Statement(sql) => Some(sql),
        Statement::Explain(explain) => sql(&mut explain.statement),
        _ => None,
    }
}

async fn columns(table: &str, state: &SessionState) -> Option<Vec<String>> {
    let statement = bowshot_sql::read_statement(&format!("SELECT * FROM {table}")).ok()?;
    let plan = Box::pin(state.statement_to_plan(Statement::Statement(Box::new(statement)))).await.ok()?;
    Some(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

#[derive(Default)]
struct Tables(Vec<String>);

impl VisitorMut for Tables {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in select.from.iter().filter(|from| from.joins.iter().any(is_natural)) {
            for table in relations(from).map(ToString::to_string) {
                if self.0.len() < MAX_TABLES && !self.0.contains(&table) {
                    self.0.push(table);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn relations(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

fn is_natural(join: &Join) -> bool {
    crate::plan::semantics::using::constraint(join)
        .is_some_and(|constraint| *constraint == JoinConstraint::Natural)
}

struct Naming(HashMap<String, Vec<String>>);

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in select.from.iter_mut().filter(|from| from.joins.iter().any(is_natural)) {
            self.name(from);
        }
        ControlFlow::Continue(())
    }
}

impl Naming {
    fn name(&self, from: &mut TableWithJoins) {
        let all: Option<Vec<_>> =
            relations(from).map(|relation| self.0.get(&relation.to_string()).cloned()).collect();
        let Some(mut all) = all.map(Vec::into_iter) else { return };
        let mut left: Vec<String> = all.next().unwrap_or_default();
        for (join, right) in from.joins.iter_mut().zip(all) {
            let natural = is_natural(join);
            let shared: Vec<_> = left.iter().filter(|name| right.contains(name)).collect();
            if natural && !shared.is_empty() {
                let names =
                    shared.into_iter().map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
                let using = JoinConstraint::Using(names.collect());
                if let Some(constraint) = crate::plan::semantics::using::constraint_mut(join) {
                    *constraint = using;
                }
            }
            left.extend(right.into_iter().filter(|name| !left.contains(name)).collect::<Vec<_>>());
        }
    }
}
