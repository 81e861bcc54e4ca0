//! Grouping sets that the planner does not know: keys in brackets, as in `ROLLUP ((a, b), c)`, and sets inside of sets, as in
//! `GROUPING SETS (ROLLUP (a), (b))`.

use crate::calls::arguments;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Expr, Function, GroupByExpr};

/// More sets than anybody writes.
const MAX_CUBE: usize = 12;

pub(super) fn rewrite(group_by: &mut GroupByExpr) -> Result<()> {
    let GroupByExpr::Expressions(keys, _) = group_by else { return Ok(()) };
    for key in keys {
        let compound = |sets: &[Vec<Expr>]| sets.iter().any(|set| set.len() > 1);
        let inside = |sets: &[Vec<Expr>]| sets.iter().flatten().any(is_sets);
        let unknown = match &*key {
            Expr::Rollup(sets) | Expr::Cube(sets) => compound(sets),
            Expr::GroupingSets(sets) => inside(sets),
            _ => false,
        };
        if unknown {
            *key = Expr::GroupingSets(sets_of(key)?);
        }
    }
    Ok(())
}

/// Whether an element of GROUPING SETS is some of them itself, which the parser takes for a call.
fn is_sets(expr: &Expr) -> bool {
    match expr {
        Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => true,
        Expr::Function(function) => called(function).is_some(),
        _ => false,
    }
}

/// `rollup (a, (b, c))` or `cube (…)`, read as a call.
fn called(function: &Function) -> Option<Expr> {
    let keys = arguments(function)?.into_iter().map(fields).collect();
    match function.name.to_string().to_ascii_lowercase().as_str() {
        "rollup" => Some(Expr::Rollup(keys)),
        "cube" => Some(Expr::Cube(keys)),
        _ => None,
    }
}

fn fields(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Tuple(fields) => fields.clone(),
        Expr::Nested(inner) => fields(inner),
        other => vec![other.clone()],
    }
}

/// All sets that a key of GROUP BY stands for.
fn sets_of(key: &Expr) -> Result<Vec<Vec<Expr>>> {
    match key {
        Expr::Rollup(keys) => {
            let first = |count: usize| keys.iter().take(count).flatten().cloned().collect();
            Ok((0..=keys.len()).rev().map(first).collect())
        }
        Expr::Cube(keys) if keys.len() > MAX_CUBE => {
            Err(Error::unsupported(format!("CUBE takes up to {MAX_CUBE} keys"))
                .with_hint("name the sets with GROUPING SETS"))
        }
        Expr::Cube(keys) => {
            let chosen = |bits: usize| {
                let keys = keys.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                keys.flat_map(|(_, key)| key).cloned().collect()
            };
            Ok((0..1_usize << keys.len()).rev().map(chosen).collect())
        }
        Expr::GroupingSets(sets) => {
            let mut all = Vec::with_capacity(sets.len());
            for set in sets {
                match set.as_slice() {
                    [only] if is_sets(only) => all.extend(sets_of(only)?),
                    set => all.push(set.iter().flat_map(fields).collect()),
                }
            }
            Ok(all)
        }
        Expr::Function(function) => {
            called(function).map_or_else(|| Ok(vec![vec![key.clone()]]), |sets| sets_of(&sets))
        }
        other => Ok(vec![fields(other)]),
    }
}
