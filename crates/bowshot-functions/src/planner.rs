//! Syntax that stands for functions: EXTRACT, operators on JSON, and aggregates that one name has several of.

use crate::aggregate::AggregateForms;
use crate::date::date_part;
use crate::json::{JsonOperators, VARIANT_COMPARED, element};
use crate::nested::common_type;
use crate::scalar_udf::text_type;
use arrow::datatypes::{DataType, Field};
use bowshot_api::variant::is_variant_type;
use datafusion::common::{Column, DFSchema, Result, TableReference, plan_err};
use datafusion::functions::unicode;
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, cast, lit, when};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

/// What must be asked before DataFusion's own planners.
pub fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(OwnFunctions), Arc::new(JsonOperators), Arc::new(AggregateForms)]
}

#[derive(Debug)]
struct OwnFunctions;

impl ExprPlanner for OwnFunctions {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
        let is_variant = |side: &Expr| side.get_type(schema).is_ok_and(|of| is_variant_type(&of));
        let compares = matches!(raw.op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship);
        if compares && (is_variant(&raw.left) || is_variant(&raw.right)) {
            return plan_err!("{VARIANT_COMPARED}");
        }
        Ok(PlannerResult::Original(raw))
    }

    /// `'abc'[1]` and `'abc'[2:3]`: characters of a text, counted from the end where a place is negative.
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr } = &access;
        // DataFusion makes `nth_value` of an element of `array_agg`, which takes no notice of DISTINCT.
        if let (GetFieldAccess::ListIndex { key }, Expr::AggregateFunction(aggregate)) = (field_access, expr)
            && aggregate.params.distinct
        {
            return Ok(PlannerResult::Planned(array_element(expr.clone(), key.as_ref().clone())));
        }
        if expr.get_type(schema).is_ok_and(|of| is_variant_type(&of)) {
            return variant_part(access).map(PlannerResult::Planned);
        }
        if matches!(field_access, GetFieldAccess::NamedStructField { .. })
            || !text_type(&expr.get_type(schema)?)
        {
            return Ok(PlannerResult::Original(access));
        }
        let (place, count) = match field_access {
            GetFieldAccess::ListIndex { key } => (place_in(expr, key)?, lit(1_i64)),
            GetFieldAccess::ListRange { start, stop, stride } if **stride == lit(1_i64) => {
                let start = place_in(expr, start)?;
                let count = place_in(expr, stop)? - start.clone() + lit(1_i64);
                let count = when(count.clone().lt(lit(0_i64)), lit(0_i64)).otherwise(count)?;
                (start, count)
            }
            _ => return Ok(PlannerResult::Original(access)),
        };
        Ok(PlannerResult::Planned(unicode::substr().call(vec![expr.clone(), place, count])))
    }

    /// `ARRAY[X'00', NULL]`: DataFusion finds no common type of NULL and bytes.
    fn plan_array_literal(&self, elements: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        // A parameter has no type yet.
        let types: Vec<DataType> =
            elements.iter().filter_map(|element| element.get_type(schema).ok()).collect();
        let common = common_type(&types).filter(|common| common.is_binary());
        let Some(common) = common.filter(|_| types.len() == elements.len()) else {
            return Ok(PlannerResult::Original(elements));
        };
        let elements = elements.into_iter().zip(&types);
        let elements = elements.map(|(element, of)| match of {
            DataType::Null => cast(element, common.clone()),
            _ => element,
        });
        Ok(PlannerResult::Planned(make_array(elements.collect())))
    }

    /// `v.a` of a VARIANT.
    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        if !is_variant_type(field.data_type()) {
            return Ok(PlannerResult::Original(Vec::new()));
        }
        let column = Expr::Column(Column::from((qualifier, field)));
        let part = nested_names.iter().try_fold(column, |part, name| element(part, lit(name.as_str())));
        part.map(PlannerResult::Planned)
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(date_part().call(args)))
    }
}

/// `v['a']`, `v[0]`: the part of a VARIANT.
fn variant_part(access: RawFieldAccessExpr) -> Result<Expr> {
    match access.field_access {
        GetFieldAccess::NamedStructField { name } => element(access.expr, lit(name)),
        GetFieldAccess::ListIndex { key } => element(access.expr, *key),
        GetFieldAccess::ListRange { .. } => {
            plan_err!("a VARIANT has no ranges: cast it to a list, as in `CAST(v AS INTEGER[])`")
        }
    }
}

/// The place of a character of a text, from its beginning.
fn place_in(text: &Expr, place: &Expr) -> Result<Expr> {
    let length = cast(unicode::character_length().call(vec![text.clone()]), DataType::Int64);
    let from_end = length + place.clone() + lit(1_i64);
    when(place.clone().lt(lit(0_i64)), from_end).otherwise(cast(place.clone(), DataType::Int64))
}
