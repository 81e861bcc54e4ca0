//! HAVING without groups in dialect `mysql`: it filters the rows of the query, and may name its columns, as in
//! `SELECT CASE … END AS kind FROM t HAVING kind = 'x'` (MySQL manual, "SELECT Statement").

use super::outer_aggregates::is_aggregate;
use crate::dialect::DialectName;
use crate::walk::Tree;
use sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Ident, Select, SelectItem};

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) {
    if dialect == DialectName::MySql {
        statement.change_selects(in_select);
    }
}

fn in_select(select: &mut Select) {
    if is_a_filter(select)
        && let Some(mut having) = select.having.take()
    {
        with_aliases(&mut having, &select.projection);
        let having = Box::new(Expr::Nested(Box::new(having)));
        select.selection = Some(match select.selection.take() {
            None => *having,
            Some(there) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(there))),
                op: BinaryOperator::And,
                right: having,
            },
        });
    }
}

/// Whether there are neither groups nor what is computed of several rows.
fn is_a_filter(select: &Select) -> bool {
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let of_several =
        |expr: &Expr| is_aggregate(expr) || matches!(expr, Expr::Function(call) if call.over.is_some());
    let computed = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            expr.has_expression(of_several)
        }
        _ => false,
    });
    let asked = select.having.as_ref().is_some_and(|having| having.has_expression(of_several));
    !grouped && !computed && !asked && select.distinct.is_none()
}

/// Puts what columns of the query are in the place of their names.
fn with_aliases(having: &mut Expr, items: &[SelectItem]) {
    having.change_expressions(|expr| {
        if let Expr::Identifier(name) = expr
            && let Some(meant) = items.iter().find_map(|item| named(item, name))
        {
            *expr = Expr::Nested(Box::new(meant.clone()));
        }
    });
}

fn named<'a>(item: &'a SelectItem, name: &Ident) -> Option<&'a Expr> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(&name.value) => {
            Some(expr)
        }
        _ => None,
    }
}
