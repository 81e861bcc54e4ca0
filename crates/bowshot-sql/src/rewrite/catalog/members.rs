//! Roles of roles, which clients of PostgreSQL gather by recursion within a subquery, as pgAdmin does when it connects:
//! `ARRAY(WITH RECURSIVE cte AS (SELECT … WHERE oid = roles.oid UNION ALL SELECT … pg_auth_members …) SELECT rolname FROM cte)`.
//! That table has no rows here, so that the first term gives all of them.

use super::column;
use crate::walk::Tree;
use sqlparser::ast::{Query, Select, SelectItem, SetExpr, SetOperator, TableFactor};

const MEMBERS: &str = "pg_auth_members";

/// Puts the first term in the place of such a recursion.
pub(super) fn first_term(query: &mut Query) {
    if let Some(term) = term(query) {
        query.with = None;
        *query.body = SetExpr::Select(Box::new(term));
    }
}

fn term(query: &Query) -> Option<Select> {
    let with = query.with.as_ref().filter(|with| with.recursive)?;
    let [cte] = with.cte_tables.as_slice() else { return None };
    let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = cte.query.body.as_ref() else {
        return None;
    };
    let SetExpr::Select(first) = left.as_ref() else { return None };
    let SetExpr::Select(outer) = query.body.as_ref() else { return None };
    let ([table], [SelectItem::UnnamedExpr(wanted)]) = (outer.from.as_slice(), outer.projection.as_slice())
    else {
        return None;
    };
    let reads_cte = matches!(&table.relation, TableFactor::Table { name, args: None, .. }
        if table.joins.is_empty() && name.to_string().eq_ignore_ascii_case(&cte.alias.name.value));
    let is_plain = outer.selection.is_none() && outer.distinct.is_none() && outer.having.is_none();
    if !reads_cte || !is_plain || !cte.alias.columns.is_empty() || !reads_members(right) {
        return None;
    }
    let wanted = column(wanted)?;
    let item = first.projection.iter().find(|item| match item {
        SelectItem::UnnamedExpr(expr) => column(expr).as_deref() == Some(wanted.as_str()),
        SelectItem::ExprWithAlias { alias, .. } => alias.value.eq_ignore_ascii_case(&wanted),
        _ => false,
    })?;
    Some(Select { projection: vec![item.clone()], ..first.as_ref().clone() })
}

fn reads_members(term: &SetExpr) -> bool {
    term.has_relation(|relation| {
        let last = relation.0.last().and_then(|part| part.as_ident());
        last.is_some_and(|name| name.value.eq_ignore_ascii_case(MEMBERS))
    })
}
