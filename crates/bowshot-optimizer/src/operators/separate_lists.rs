//! IN lists that must not be merged. DataFusion merges two that stand side by side: `a IN (1) AND a IN (2)` becomes false, also
//! for a NULL, for which it is unknown; `a NOT IN (1) OR a NOT IN (2)` becomes true. Where that would be wrong, one of the lists
//! goes into an identity function, where no rule finds it.

use bowshot_sql::rewrite::KEPT_APART;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::sync::{Arc, LazyLock};

static APART: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let arguments = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    Arc::new(ScalarUDF::from(Apart { signature: Signature::one_of(arguments, Volatility::Immutable) }))
});

/// The function, for those that look it up by name.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&APART)
}

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It takes rows or leaves them: unknown is the same as false. Lists may be put together here for the most part, and are
    /// to be seen by those who look for parts of files.
    Rows,
    /// All else: unknown is an answer of its own.
    Value,
}

/// The expression with its lists kept from one another.
pub(super) fn kept_apart(expr: Expr, place: Place) -> Result<Transformed<Expr>> {
    if lists_within(&expr)? < 2 {
        return Ok(Transformed::no(expr));
    }
    match place {
        Place::Rows => in_rows(expr),
        Place::Value => in_value(expr),
    }
}

fn lists_within(expr: &Expr) -> Result<usize> {
    let mut count = 0;
    expr.apply(|node| {
        count += usize::from(Kind::of(node).is_some());
        Ok(if count < 2 { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(count)
}

fn in_value(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|node| match node {
        Expr::BinaryExpr(binary) => parted(binary, Place::Value),
        node => Ok(Transformed::no(node)),
    })
}

/// A condition of rows, through AND and OR. Those are long at their left sides, which are walked and not called.
fn in_rows(expr: Expr) -> Result<Transformed<Expr>> {
    let (mut first, mut rest) = (expr, Vec::new());
    while let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) = first {
        rest.push((op, *right));
        first = *left;
    }
    let mut done = in_value(first)?;
    for (op, right) in rest.into_iter().rev() {
        let right = in_rows(right)?;
        let changed = done.transformed || right.transformed;
        let both = BinaryExpr::new(Box::new(done.data), op, Box::new(right.data));
        done = parted(both, Place::Rows)?;
        done.transformed |= changed;
    }
    Ok(done)
}

/// AND or OR, whose right side has its lists hidden if they must not meet those of the left one.
fn parted(binary: BinaryExpr, place: Place) -> Result<Transformed<Expr>> {
    if !matches!(binary.op, Operator::And | Operator::Or) {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let (left, right) = (Lists::of(&binary.left)?, Lists::of(&binary.right)?);
    let meet = match (binary.op, place) {
        // What both leave out is nothing, mostly, and DataFusion says true for it.
        (Operator::Or, _) => left.negated && right.negated,
        // Those that leave out are joined as they should be.
        (_, Place::Value) => left.any() && right.any() && (left.positive || right.positive),
        (_, Place::Rows) => left.any() && right.any() && (left.loose || right.loose),
    };
    if !meet {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let hidden = Box::new(hidden(*binary.right, right.equalities)?);
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(binary.left, binary.op, hidden))))
}

/// The expression with each list of it in the function.
fn hidden(expr: Expr, equalities: bool) -> Result<Expr> {
    let hidden = expr.transform_down(|node| {
        if is_connective(&node) {
            return Ok(Transformed::no(node));
        }
        let wanted = Kind::of(&node).is_some_and(|kind| equalities || !matches!(kind, Kind::Equality));
        let node = if wanted {
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&APART), vec![node]))
        } else {
            node
        };
        Ok(Transformed::new(node, wanted, TreeNodeRecursion::Jump))
    })?;
    Ok(hidden.data)
}

/// What may vanish, so that a list below comes beside another one.
fn is_connective(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Not(_) | Expr::Alias(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. })
    )
}

/// A list, or what DataFusion makes one of.
enum Kind<'expr> {
    In(&'expr InList),
    /// `s ~ '^(a|b)$'`, and whether it is negated.
    Pattern(bool),
    /// `array_has([a, b], x)`.
    Member,
    /// `x = 1`: two of them under OR are a list.
    Equality,
}

impl<'expr> Kind<'expr> {
    fn of(expr: &'expr Expr) -> Option<Self> {
        match expr {
            Expr::InList(list) => Some(Self::In(list)),
            Expr::ScalarFunction(call) if call.func.name() == "array_has" => Some(Self::Member),
            Expr::BinaryExpr(BinaryExpr { op: Operator::RegexMatch, .. }) => Some(Self::Pattern(false)),
            Expr::BinaryExpr(BinaryExpr { op: Operator::RegexNotMatch, .. }) => Some(Self::Pattern(true)),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })
                if is_certain(left) || is_certain(right) =>
            {
                Some(Self::Equality)
            }
            _ => None,
        }
    }
}

/// What is known of the lists in an expression that another one beside it may meet.
#[derive(Debug, Clone, Copy, Default)]
struct Lists {
    /// One that takes values.
    positive: bool,
    /// One that leaves values out.
    negated: bool,
    /// One that is not put together right even where unknown is false: with other values than constants, or with a NULL that
    /// makes it unknown for all that it does not leave out.
    loose: bool,
    equalities: bool,
}

impl Lists {
    fn of(expr: &Expr) -> Result<Self> {
        let mut lists = Self::default();
        let (mut or, mut not, mut uncertain, mut equalities) = (false, false, false, 0_usize);
        expr.apply(|node| {
            if is_connective(node) {
                or |= matches!(node, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }));
                not |= matches!(node, Expr::Not(_));
                return Ok(TreeNodeRecursion::Continue);
            }
            match Kind::of(node) {
                Some(Kind::In(list)) => {
                    lists.positive |= !list.negated;
                    lists.negated |= list.negated;
                    let is_uncertain = !list.list.iter().all(is_certain);
                    uncertain |= is_uncertain;
                    lists.loose |= list.expr.is_volatile()
                        || (list.negated && is_uncertain)
                        || !list.list.iter().all(is_constant);
                }
                Some(Kind::Pattern(negated)) => {
                    lists.positive |= !negated;
                    lists.negated |= negated;
                }
                Some(Kind::Member) => (lists.positive, lists.loose, uncertain) = (true, true, true),
                Some(Kind::Equality) => equalities += 1,
                None => {}
            }
            Ok(TreeNodeRecursion::Jump)
        })?;
        lists.equalities = or && (equalities > 1 || (equalities > 0 && lists.positive));
        lists.positive |= lists.equalities;
        if not && lists.any() {
            (lists.positive, lists.negated) = (true, true);
            lists.loose |= uncertain;
        }
        Ok(lists)
    }

    fn any(self) -> bool {
        self.positive || self.negated
    }
}

/// Whether it is the same for all rows.
fn is_constant(expr: &Expr) -> bool {
    let varies = |expr: &Expr| {
        matches!(
            expr,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::LambdaVariable(_)
        )
    };
    !expr.is_volatile() && !expr.exists(|node| Ok(varies(node))).unwrap_or(true)
}

/// Whether it is a value that is there.
fn is_certain(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !ScalarValue::is_null(value),
        Expr::Cast(Cast { expr, .. }) => is_certain(expr),
        Expr::Negative(expr) => is_certain(expr),
        _ => false,
    }
}

/// Gives what it is given. A second argument says which table a column is of.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Apart {
    signature: Signature,
}

impl ScalarUDFImpl for Apart {
    fn name(&self) -> &'static str {
        KEPT_APART
    }

    /// That of the condition, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [condition, ..] = args else { return internal_err!("one condition is kept apart") };
        Ok(condition.schema_name().to_string())
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [condition, ..] => Ok(condition.clone()),
            _ => internal_err!("one condition is kept apart"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [condition, ..] = args.arg_fields else { return internal_err!("one condition is kept apart") };
        Ok(Arc::new(Field::new(self.name(), condition.data_type().clone(), condition.is_nullable())))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(condition) => Ok(condition),
            None => internal_err!("one condition is kept apart"),
        }
    }
}
