//! In dialect `mysql` result columns are named as written in the statement, though unquoted names ignore case. Subqueries and
//! definitions keep the usual names.

use crate::dialect::DialectName;
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement};
use std::collections::HashMap;
use std::convert::Infallible;

pub(super) fn names(statement: &mut Statement, dialect: DialectName) {
    let (DialectName::MySql, Statement::Query(query)) = (dialect, statement) else { return };
    let Query { body, order_by, .. } = query.as_mut();
    let Some(select) = first(body) else { return };
    let mut names = Names::default();
    select.projection.iter_mut().for_each(|item| names.spell(item));
    if names.all.is_empty() {
        return;
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(|key| names.rename(key));
    }
    [&mut select.having, &mut select.qualify].into_iter().flatten().for_each(|expr| names.rename(expr));
    let Some(OrderByKind::Expressions(keys)) = order_by.as_mut().map(|order_by| &mut order_by.kind) else {
        return;
    };
    for key in keys {
        match &mut key.expr {
            // Alone, a name is first of all that of a column of the result.
            Expr::Identifier(name) if names.all.contains_key(&meaning(name)) => {
                if let Some(written) = names.all.get(&meaning(name)) {
                    *name = written.clone();
                }
            }
            expr => names.rename(expr),
        }
    }
}

/// The SELECT that names the columns.
fn first(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first(left),
        _ => None,
    }
}

/// Names of the result, by what they mean.
#[derive(Default)]
struct Names {
    all: HashMap<String, Ident>,
    /// Those that no column below can be meant by.
    own: HashMap<String, Ident>,
}

impl Names {
    fn spell(&mut self, item: &mut SelectItem) {
        let (expr, name) = match &*item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias),
            SelectItem::UnnamedExpr(expr @ Expr::Identifier(name)) => (expr, name),
            SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(names)) => match names.last() {
                Some(name) => (expr, name),
                None => return,
            },
            _ => return,
        };
        let means = meaning(name);
        if means == name.value {
            return;
        }
        let column = match expr {
            Expr::Identifier(column) => Some(column),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        let written = quoted(&name.value);
        if column.is_none_or(|column| meaning(column) != means) {
            self.own.entry(means.clone()).or_insert_with(|| written.clone());
        }
        self.all.entry(means).or_insert_with(|| written.clone());
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: written };
    }

    fn rename(&self, expr: &mut Expr) {
        let Ok(()) = expr.try_change_own_expressions(|expr| {
            if let Expr::Identifier(name) = expr
                && let Some(written) = self.own.get(&meaning(name))
            {
                *name = written.clone();
            }
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::DialectName::{Ansi, MySql};
    use crate::rewrite::tests::rewritten_in;

    #[test]
    fn columns_are_called_as_they_are_written() {
        for (sql, expected) in [
            ("SELECT 1 AS Total", "SELECT 1 AS \"Total\""),
            ("SELECT ID, t.S, b FROM t", "SELECT ID AS \"ID\", t.S AS \"S\", b FROM t"),
            (
                "SELECT TABLE_CAT FROM t ORDER BY TABLE_CAT, Table_Cat + 1",
                "SELECT TABLE_CAT AS \"TABLE_CAT\" FROM t ORDER BY \"TABLE_CAT\" NULLS FIRST, Table_Cat + CAST((1) AS BIGINT) NULLS FIRST",
            ),
            (
                "SELECT lower(b) AS Low FROM t GROUP BY low HAVING LOW > (SELECT low FROM u) ORDER BY upper(Low)",
                "SELECT lower(CAST((b) AS VARCHAR)) AS \"Low\" FROM t GROUP BY \"Low\" HAVING \"Low\" > (SELECT low FROM u) \
                 ORDER BY upper(CAST((\"Low\") AS VARCHAR)) NULLS FIRST",
            ),
            ("SELECT a AS A FROM t GROUP BY A", "SELECT a AS \"A\" FROM t GROUP BY A"),
            (
                "SELECT 'x' T UNION SELECT 'y' U ORDER BY t",
                "SELECT 'x' AS \"T\" UNION SELECT 'y' AS U ORDER BY \"T\" NULLS FIRST",
            ),
            ("SELECT x FROM (SELECT 1 AS X) AS s", "SELECT x FROM (SELECT 1 AS X) AS s"),
        ] {
            assert_eq!(rewritten_in(sql, MySql), expected, "{sql}");
        }
        assert_eq!(rewritten_in("SELECT 1 AS Total", Ansi), "SELECT 1 AS Total");
        let view = "CREATE VIEW v AS SELECT 1 AS Total";
        assert_eq!(rewritten_in(view, MySql), view);
    }
}
