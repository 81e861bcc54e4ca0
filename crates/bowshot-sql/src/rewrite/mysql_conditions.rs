//! Conditions in dialect `mysql`, where numbers and texts are conditions too. They are combined with TRUE by AND, whose operands the
//! planner converts.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, JoinConstraint,
    JoinOperator, Select, Statement, UnaryOperator, Value,
};

/// The conditions of WHERE, HAVING and ON.
pub(super) fn in_select(select: &mut Select) {
    select.selection.iter_mut().for_each(condition);
    select.having.iter_mut().for_each(condition);
    for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
        if let JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on)) = &mut join.join_operator
        {
            condition(on);
        }
    }
}

/// Those of UPDATE and DELETE.
pub(super) fn in_statement(statement: &mut Statement) {
    match statement {
        Statement::Update(update) => update.selection.iter_mut().for_each(condition),
        Statement::Delete(delete) => delete.selection.iter_mut().for_each(condition),
        _ => {}
    }
}

/// Those of NOT, CASE and `if(…)`.
pub(super) fn in_expression(expr: &mut Expr) {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr),
        Expr::Case { operand: None, conditions, .. } => {
            conditions.iter_mut().for_each(|when| condition(&mut when.condition));
        }
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if name.to_string().eq_ignore_ascii_case("if") =>
        {
            if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut() {
                condition(first);
            }
        }
        _ => {}
    }
}

fn condition(expr: &mut Expr) {
    if is_truth(expr) {
        return;
    }
    let of = std::mem::replace(expr, Expr::value(Value::Null));
    let both = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(of))),
        op: BinaryOperator::And,
        right: Box::new(Expr::value(Value::Boolean(true))),
    };
    *expr = Expr::Nested(Box::new(both));
}

/// Whether it is a truth value by its form alone.
fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_truth(inner),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Function(_)
        | Expr::Subquery(_)
        | Expr::Cast { .. }
        | Expr::Case { .. } => false,
        Expr::Value(value) => !matches!(
            value.value,
            Value::Number(..) | Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)
        ),
        Expr::UnaryOp { op, .. } => !matches!(op, UnaryOperator::Minus | UnaryOperator::Plus),
        Expr::BinaryOp { op, .. } => !matches!(
            op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
                | BinaryOperator::MyIntegerDivide
                | BinaryOperator::BitwiseAnd
                | BinaryOperator::BitwiseOr
                | BinaryOperator::BitwiseXor
        ),
        _ => true,
    }
}
