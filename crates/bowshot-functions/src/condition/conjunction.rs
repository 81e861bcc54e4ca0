//! Joins many conditions into one.

use datafusion::logical_expr::Expr;

/// All of them joined, in their order, as a tree that is as low as it can be: each step of planning takes time with the length of a
/// list, and with its square where every part is one level deeper than the one before it.
pub fn balanced(mut parts: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while parts.len() > 1 {
        let mut rest = parts.into_iter();
        parts = std::iter::from_fn(|| {
            let one = rest.next()?;
            Some(match rest.next() {
                Some(other) => join(one, other),
                None => one,
            })
        })
        .collect();
    }
    parts.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::prelude::col;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryExpr(pair) => 1 + depth(&pair.left).max(depth(&pair.right)),
            _ => 0,
        }
    }

    #[test]
    fn long_lists_become_low_trees() {
        assert_eq!(balanced(Vec::new(), Expr::or), None);
        let parts = |count: usize| (0..count).map(|number| col(format!("c{number}"))).collect::<Vec<_>>();
        assert_eq!(balanced(parts(3), Expr::and), Some(col("c0").and(col("c1")).and(col("c2"))));
        for (count, levels) in [(1, 0), (2, 1), (5, 3), (5_000, 13)] {
            let tree = balanced(parts(count), Expr::or).unwrap();
            assert_eq!(depth(&tree), levels, "{count}");
            let mut names = Vec::new();
            tree.apply(|node| {
                names.extend(node.try_as_col().map(|column| column.name.clone()));
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
            let wanted: Vec<_> = (0..count).map(|number| format!("c{number}")).collect();
            assert_eq!(names, wanted);
        }
    }
}
