//! Names with dots that planning has not found: `c.f` in a subquery may be a field of its own column after all, and `arch.m.a` a
//! table that is not there. `bowshot-sql` writes both in forms that can be told here.

use bowshot_api::{Error, Position, Reason};
use bowshot_sql::rewrite;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, SchemaError, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

/// What takes a field out of a struct.
const GET_FIELD: &str = "get_field";

/// Takes `c.f` in a subquery for the field `f` of its own column `c`, where a table `c` around it has no column `f`. Returns
/// whether there was one.
pub(crate) fn reread_as_field(statement: &mut Statement, error: &DataFusionError) -> bool {
    let Some((field, there)) = not_found(error) else { return false };
    let Some(TableReference::Partial { schema, table }) = &field.relation else { return false };
    if schema.as_ref() != rewrite::AROUND || !there.iter().any(|column| column.name == table.as_ref()) {
        return false;
    }
    match statement {
        Statement::Statement(statement) => rewrite::inside(statement.as_mut(), table.as_ref(), &field.name),
        Statement::Explain(explain) => reread_as_field(&mut explain.statement, error),
        _ => false,
    }
}

/// Whether all fields that a plan takes out of columns are there. The planner does not ask for the types.
pub(crate) fn fields_are_there(plan: &LogicalPlan) -> bool {
    let mut there = true;
    let walked = plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(function) = part
                    && function.name() == GET_FIELD
                {
                    there &= part.get_type(&schema).is_ok();
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && there
}

/// What there is to say of `arch.m.a` where `m` is that of another schema.
pub(crate) fn unknown_qualifier(statement: &ast::Statement, error: &DataFusionError) -> Option<Error> {
    let (field, _) = not_found(error).filter(|(field, _)| field.relation.is_none())?;
    let (table, (line, column)) = rewrite::stranger(statement, &field.name)?;
    let told = Error::not_found(format!("table `{table}` not found in FROM"));
    let told = told.with_reason(Reason::UndefinedTable).with_position(Position { line, column });
    Some(told.with_hint("name the table as FROM does"))
}

/// The column that is not there, and those that are.
fn not_found(error: &DataFusionError) -> Option<(&Column, &[Column])> {
    let DataFusionError::SchemaError(schema, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = schema.as_ref() else { return None };
    Some((field.as_ref(), valid_fields.as_slice()))
}
