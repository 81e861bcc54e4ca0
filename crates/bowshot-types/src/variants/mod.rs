//! Casts from VARIANT and to it, and the rule that its values are not compared. A value is cast as one of its own type would be, and
//! JSON's null becomes NULL. Text becomes VARIANT by being read as JSON; `to_variant` keeps it a text.

mod typed;

use super::declared::Declared;
use bowshot_api::variant::{Values, has_variants, is_variant_type};
use bowshot_formats::variants::{are_parts, assembled};
use bowshot_functions::{VariantPath, json_call, variants_of, variants_of_json};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast as cast_array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::sync::Arc;
use typed::{Target, typed};

/// Functions that compare their arguments, and aggregates that compare values.
const COMPARING: [&str; 6] = ["greatest", "least", "max", "min", "mode", "nullif"];

/// What a cast becomes, without what is declared beyond its type; `None` where neither side is VARIANT.
pub(super) fn cast(
    inner: &Expr,
    source: &DataType,
    (field, zone): (&FieldRef, &Arc<str>),
    tries: bool,
) -> Result<Option<Expr>> {
    match (is_variant_type(source), is_variant_type(field.data_type())) {
        (true, true) => Ok(Some(inner.clone())),
        (true, false) => from_variant(inner, (field, zone), tries).map(Some),
        (false, true) if source.is_string() => {
            json_call(if tries { "try_parse_json" } else { "parse_json" }, vec![inner.clone()]).map(Some)
        }
        (false, true) if !source.is_null() => json_call("to_variant", vec![inner.clone()]).map(Some),
        _ => Ok(None),
    }
}

fn from_variant(inner: &Expr, (field, zone): (&FieldRef, &Arc<str>), tries: bool) -> Result<Expr> {
    if matches!(Declared::of(field), Some(Declared::Json | Declared::Jsonb)) {
        return json_call("variant_to_json", vec![inner.clone()]);
    }
    // A path that is written out is followed by the cast itself, so that there is no column of parts.
    let (value, path) = match inner {
        Expr::ScalarFunction(call) if call.name() == "variant_get" => match call.args.as_slice() {
            [value, path @ Expr::Literal(ScalarValue::Utf8(Some(_)), _)] => (value.clone(), path.clone()),
            _ => (inner.clone(), lit(ScalarValue::Utf8(None))),
        },
        _ => (inner.clone(), lit(ScalarValue::Utf8(None))),
    };
    let target = lit(ScalarValue::try_new_null(field.data_type())?);
    Ok(function(tries).call(vec![value, path, target, lit(&**zone)]))
}

/// Values of one of the two in the other one, where one is VARIANT.
pub(super) fn converted(values: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let from = values.data_type();
    match (is_variant_type(from), is_variant_type(to)) {
        (true, false) => Some(from_column(values, to)),
        (false, true) => Some(to_column(values)),
        _ => None,
    }
}

fn from_column(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let values = Values::of(values)?;
    let values = (0..values.rows()).map(|row| values.at(row)).collect::<Result<Vec<_>, _>>()?;
    typed(&values, &Target { data_type: to, zone: &Arc::from("UTC"), tries: false })
}

fn to_column(values: &ArrayRef) -> Result<ArrayRef> {
    let from = values.data_type();
    if from.is_string() {
        return variants_of_json(cast_array(values, &DataType::Utf8)?.as_string(), false);
    }
    if are_parts(from) {
        return Ok(assembled(values)?);
    }
    variants_of(values, &Field::new("", from.clone(), true))
}

/// The functions that casts become.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [false, true].map(function)
}

fn function(tries: bool) -> ScalarUDF {
    ScalarUDF::new_from_impl(CastVariant { tries, signature: Signature::any(4, Volatility::Immutable) })
}

/// VARIANT values, a path to a part of them, a NULL of the type that the parts become, and the zone of the session.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CastVariant {
    tries: bool,
    signature: Signature,
}

impl ScalarUDFImpl for CastVariant {
    fn name(&self) -> &str {
        if self.tries { "__bowshot_try_variant_cast" } else { "__bowshot_variant_cast" }
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [_, _, to, _] => Ok(to.clone()),
            _ => plan_err!("`{}` takes a value, a path, a type and a zone", self.name()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(path), _, ColumnarValue::Scalar(zone)] = given.args.as_slice()
        else {
            return exec_err!("`{}` takes a value, a path, a type and a zone", self.name());
        };
        let path = path.try_as_str().flatten().map(VariantPath::parse).transpose()?;
        let column = value.to_array(given.number_rows)?;
        let values = Values::of(&column)?;
        let values = (0..values.rows()).map(|row| match (values.at(row)?, &path) {
            (Some(value), Some(path)) => path.follow(value),
            (value, _) => Ok(value),
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let zone = Arc::from(zone.try_as_str().flatten().unwrap_or("UTC"));
        let target = Target { data_type: given.return_field.data_type(), zone: &zone, tries: self.tries };
        Ok(ColumnarValue::Array(typed(&values, &target)?))
    }
}

/// The rule that VARIANT values have no order and are not equal: the same value can have other bytes.
///
/// # Errors
/// For a plan that compares, groups or orders them.
pub fn without_variant_order(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let mut is_there = false;
    plan.apply_with_subqueries(|node| {
        is_there = node.schema().fields().iter().any(|field| has_variants(field.data_type()));
        Ok(if is_there { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if is_there {
        plan.apply_with_subqueries(|node| check(node).map(|()| TreeNodeRecursion::Continue))?;
    }
    Ok(plan)
}

fn check(node: &LogicalPlan) -> Result<()> {
    let columns = merge_schema(&node.inputs());
    let mut compared: Vec<&Expr> = Vec::new();
    match node {
        LogicalPlan::Sort(sort) => compared.extend(sort.expr.iter().map(|key| &key.expr)),
        LogicalPlan::Aggregate(aggregate) => {
            for key in &aggregate.group_expr {
                match key {
                    Expr::GroupingSet(set) => compared.extend(set.distinct_expr()),
                    key => compared.push(key),
                }
            }
        }
        LogicalPlan::Join(join) => compared.extend(join.on.iter().flat_map(|(left, right)| [left, right])),
        LogicalPlan::Distinct(Distinct::On(on)) => compared.extend(&on.on_expr),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            if input.schema().fields().iter().any(|field| has_variants(field.data_type())) {
                return refused();
            }
        }
        _ => {}
    }
    check_all(compared, &columns)?;
    node.apply_expressions(|expr| {
        expr.apply(|part| check_all(operands(part), &columns).map(|()| TreeNodeRecursion::Continue))
    })
    .map(|_| ())
}

fn operands(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => vec![binary.left.as_ref(), binary.right.as_ref()],
        Expr::InList(list) => vec![list.expr.as_ref()],
        Expr::Between(between) => vec![between.expr.as_ref()],
        Expr::Case(case) => case.expr.iter().map(AsRef::as_ref).collect(),
        Expr::ScalarFunction(call) if COMPARING.contains(&call.name()) => call.args.iter().collect(),
        Expr::AggregateFunction(call) => {
            let compares = call.params.distinct || COMPARING.contains(&call.func.name());
            let arguments = call.params.args.iter().filter(|_| compares);
            arguments.chain(call.params.order_by.iter().map(|key| &key.expr)).collect()
        }
        Expr::WindowFunction(call) => {
            let compares = call.params.distinct || COMPARING.contains(&call.fun.name());
            let arguments = call.params.args.iter().filter(|_| compares);
            let keys = call.params.order_by.iter().map(|key| &key.expr);
            arguments.chain(&call.params.partition_by).chain(keys).collect()
        }
        _ => Vec::new(),
    }
}

fn compares(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn check_all(compared: Vec<&Expr>, columns: &DFSchema) -> Result<()> {
    let is_variant = |expr: &&Expr| expr.get_type(columns).is_ok_and(|of| has_variants(&of));
    if compared.iter().any(is_variant) { refused() } else { Ok(()) }
}

fn refused() -> Result<()> {
    plan_err!("{}", bowshot_functions::VARIANT_COMPARED)
}
