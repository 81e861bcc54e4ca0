//! The types of parameters that a statement does not declare, as PostgreSQL infers them: from what stands beside them. DataFusion
//! looks at comparisons alone.

use crate::error::classify;
use bowshot_api::Result;
use bowshot_optimizer::is_glued;
use bowshot_types::are_uuids;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, InList, Like, Placeholder, ScalarFunction,
};
use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use std::collections::HashMap;
use std::sync::Arc;

/// What `value op ANY (list)` and `ALL` are planned as.
pub(crate) const QUANTIFIED: [&str; 2] = ["quantified_any", "quantified_all"];
/// Functions whose arguments have one type.
const OF_ONE_TYPE: [&str; 7] = ["coalesce", "nullif", "greatest", "least", "nvl", "ifnull", "nvl2"];
/// Functions of numbers or moments, whose first two arguments have one type.
const SERIES: [&str; 3] = ["generate_series", "list_series", "range"];

/// Functions of the number of a session.
const OF_SESSIONS: [&str; 2] = ["pg_cancel_backend", "pg_terminate_backend"];

/// The plan with the types that its parameters are found to have; the others stay without one.
pub(crate) fn inferred(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut wanted = Wanted::default();
    let seen = plan.apply_with_subqueries(|node| {
        wanted.in_node(node)?;
        Ok(TreeNodeRecursion::Continue)
    });
    seen.map_err(classify)?;
    if !wanted.differs {
        return Ok(plan);
    }
    let typed = plan.transform_up_with_subqueries(|node| {
        let typed = node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::Placeholder(Placeholder { id, field }) => {
                    let field = wanted.field(&id).or(field);
                    Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
                }
                other => Ok(Transformed::no(other)),
            })
        })?;
        typed.data.recompute_schema().map(Transformed::yes)
    });
    typed.data().map_err(classify)
}

/// How sure a type is: of several the surest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ground {
    /// What stands in such a place has such a type.
    Place,
    /// What it is compared with, as the planner has found.
    Planned,
    /// The operator takes nothing else.
    Operator,
}

#[derive(Debug)]
struct Found {
    ground: Ground,
    /// `None` where several places say several things.
    field: Option<FieldRef>,
}

#[derive(Debug, Default)]
struct Wanted {
    found: HashMap<String, Found>,
    /// Whether a placeholder has another type than was found, or none.
    differs: bool,
}

impl Wanted {
    fn field(&self, id: &str) -> Option<FieldRef> {
        self.found.get(id).and_then(|found| found.field.clone())
    }

    fn in_node(&mut self, node: &LogicalPlan) -> datafusion::common::Result<()> {
        let inputs = merge_schema(&node.inputs());
        match node {
            LogicalPlan::Limit(limit) => {
                let counts = [&limit.skip, &limit.fetch].into_iter().flatten();
                counts.for_each(|count| self.place(count, DataType::Int64));
            }
            LogicalPlan::Filter(filter) => self.place(&filter.predicate, DataType::Boolean),
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                self.in_expression(expr, &inputs);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(())
    }

    fn in_expression(&mut self, expr: &Expr, schema: &DFSchema) {
        match expr {
            Expr::Placeholder(Placeholder { id, field }) => match field {
                Some(field) => self.note(id, Ground::Planned, Arc::clone(field)),
                None => self.differs = true,
            },
            Expr::Cast(cast) => self.place(&cast.expr, cast.field.data_type().clone()),
            Expr::TryCast(cast) => self.place(&cast.expr, cast.field.data_type().clone()),
            Expr::Not(truth) => self.place(truth, DataType::Boolean),
            Expr::BinaryExpr(binary) => self.in_binary(binary, schema),
            Expr::Case(case) => self.in_case(case, schema),
            Expr::InList(InList { expr, list, .. }) => {
                self.alike(std::iter::once(expr.as_ref()).chain(list), schema)
            }
            Expr::Between(Between { expr, low, high, .. }) => {
                self.alike([expr.as_ref(), low.as_ref(), high.as_ref()].into_iter(), schema);
            }
            Expr::Like(Like { expr, pattern, .. }) | Expr::SimilarTo(Like { expr, pattern, .. }) => {
                self.place(expr, DataType::Utf8);
                self.place(pattern, DataType::Utf8);
            }
            Expr::ScalarFunction(call) => self.in_call(call, schema),
            Expr::AggregateFunction(AggregateFunction { func, params }) => {
                self.by_signature(&params.args, func.as_ref(), schema);
            }
            _ => {}
        }
    }

    fn in_binary(&mut self, BinaryExpr { left, op, right }: &BinaryExpr, schema: &DFSchema) {
        for (side, other) in [(left, right), (right, left)] {
            match op {
                Operator::And | Operator::Or => self.place(side, DataType::Boolean),
                Operator::StringConcat if other.get_type(schema).is_ok_and(|of| is_glued(&of)) => {
                    if let Expr::Placeholder(Placeholder { id, .. }) = side.as_ref() {
                        self.note(id, Ground::Operator, nullable(DataType::Utf8));
                    }
                }
                _ => {}
            }
        }
    }

    fn in_case(&mut self, case: &Case, schema: &DFSchema) {
        let (when, then): (Vec<&Expr>, Vec<&Expr>) =
            case.when_then_expr.iter().map(|(when, then)| (when.as_ref(), then.as_ref())).unzip();
        match &case.expr {
            Some(value) => self.alike(std::iter::once(value.as_ref()).chain(when), schema),
            None => when.into_iter().for_each(|when| self.place(when, DataType::Boolean)),
        }
        self.alike(then.into_iter().chain(case.else_expr.as_deref()), schema);
    }

    fn in_call(&mut self, call: &ScalarFunction, schema: &DFSchema) {
        let name = call.name();
        if QUANTIFIED.contains(&name) {
            // `a = ANY ($1)` wants a list of what `a` is.
            if let [_, value, list] = call.args.as_slice()
                && let Ok((_, field)) = value.to_field(schema)
                && *field.data_type() != DataType::Null
            {
                let item = Field::new_list_field(field.data_type().clone(), true);
                let told = if are_uuids(&field) { field.metadata().clone() } else { HashMap::new() };
                self.place(list, DataType::List(Arc::new(item.with_metadata(told))));
            }
            if let [_, value, list] = call.args.as_slice()
                && let Ok((_, field)) = list.to_field(schema)
                && let DataType::List(item) = field.data_type()
                && *item.data_type() != DataType::Null
            {
                self.place_of(value, Arc::new(item.as_ref().clone().with_nullable(true)));
            }
        } else if OF_ONE_TYPE.contains(&name) {
            self.alike(call.args.iter(), schema);
        } else if OF_SESSIONS.contains(&name) {
            call.args.iter().take(1).for_each(|number| self.place(number, DataType::Int32));
        } else if SERIES.contains(&name) {
            let known = call.args.iter().take(2).filter_map(|value| value.get_type(schema).ok());
            let data_type = known.into_iter().find(|of| *of != DataType::Null).unwrap_or(DataType::Int64);
            call.args.iter().take(2).for_each(|value| self.place(value, data_type.clone()));
        } else {
            self.by_signature(&call.args, call.func.as_ref(), schema);
        }
    }

    /// Expressions of one type: parameters among them have that of the first that has one.
    fn alike<'a>(&mut self, values: impl Iterator<Item = &'a Expr> + Clone, schema: &DFSchema) {
        let mut known = values.clone().filter_map(|value| Some(value.to_field(schema).ok()?.1));
        if let Some(field) = known.find(|field| *field.data_type() != DataType::Null) {
            values.for_each(|value| self.place_of(value, Arc::clone(&field)));
        }
    }

    /// What a function makes of an argument whose type is not known.
    fn by_signature<F: UDFCoercionExt>(&mut self, args: &[Expr], function: &F, schema: &DFSchema) {
        if !args.iter().any(|value| matches!(value, Expr::Placeholder(Placeholder { field: None, .. }))) {
            return;
        }
        let fields =
            args.iter().map(|value| Some(value.to_field(schema).ok()?.1)).collect::<Option<Vec<_>>>();
        if let Some(Ok(fields)) = fields.map(|fields| fields_with_udf(&fields, function)) {
            let known = args.iter().zip(fields).filter(|(_, field)| *field.data_type() != DataType::Null);
            known.for_each(|(value, field)| self.place(value, field.data_type().clone()));
        }
    }

    fn place(&mut self, expr: &Expr, data_type: DataType) {
        self.place_of(expr, nullable(data_type));
    }

    fn place_of(&mut self, expr: &Expr, field: FieldRef) {
        if let Expr::Placeholder(Placeholder { id, field: None }) = expr {
            self.note(id, Ground::Place, field);
        }
    }

    /// What the planner has found first counts; of what places say, what all of them say.
    fn note(&mut self, id: &str, ground: Ground, field: FieldRef) {
        let Some(found) = self.found.get_mut(id) else {
            self.found.insert(id.to_owned(), Found { ground, field: Some(field) });
            return;
        };
        let same = found.field.as_ref().is_some_and(|there| there.data_type() == field.data_type());
        // DataFusion refuses a parameter that has different metadata in two places.
        let alike = same && found.field.as_ref().is_some_and(|there| there.metadata() == field.metadata());
        self.differs |= !alike;
        if ground > found.ground {
            *found = Found { ground, field: Some(field) };
        } else if ground == found.ground && ground == Ground::Place && !same {
            found.field = None;
        }
    }
}

fn nullable(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}
