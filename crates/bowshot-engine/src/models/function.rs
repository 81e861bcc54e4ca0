//! `predict` and `predict_proba`: first by the name of a model, then with the model itself.
//!
//! The planner asks a function for its type, so the function of a statement looks its model up by the name in its first
//! argument. [`bind`] puts one in its place that holds the model: equal for the same file and another one for another, which is
//! what keeps results of one version from being those of the next.

use bowshot_api::{Error, ErrorKind};
use bowshot_models::Model;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::ptr_eq::PtrEq;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Trees times rows that are asked in one go.
const STEP: usize = 2_000_000;
/// Rows that are asked in one go at least: for fewer the columns would be looked at too often.
const STEP_ROWS: usize = 1_024;
/// Columns that an error names.
const NAMED_COLUMNS: usize = 20;

/// A model that a statement may ask.
pub(crate) struct Found {
    /// Its whole name.
    pub(crate) name: String,
    /// Of its file.
    pub(crate) sha256: String,
    pub(crate) model: Arc<Model>,
}

// Plans are written out where they are keys: without the trees, which the hash stands for.
bowshot_api::debug_fields!(Found { name, sha256 });

/// Finds the models of one statement.
pub(crate) trait FindModel: fmt::Debug + Send + Sync {
    /// The model that a name means.
    ///
    /// # Errors
    /// `NotFound` if there is none that the statement may ask.
    fn find(&self, name: &str) -> bowshot_api::Result<Arc<Found>>;
}

/// What is asked of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    Prediction,
    Probabilities,
}

impl Wanted {
    const ALL: [Self; 2] = [Self::Prediction, Self::Probabilities];

    /// The function of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wanted| name.eq_ignore_ascii_case(wanted.function()))
    }

    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Prediction => "predict",
            Self::Probabilities => "predict_proba",
        }
    }

    /// What the column is called that a table function adds.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Probabilities => "probabilities",
        }
    }
}

/// The functions of a statement that may ask models.
pub(crate) fn functions(finder: &Arc<dyn FindModel>) -> [Arc<ScalarUDF>; 2] {
    made(Some(finder))
}

/// The functions where there are no models: they say so.
pub(crate) fn functions_without_models() -> [Arc<ScalarUDF>; 2] {
    made(None)
}

fn made(finder: Option<&Arc<dyn FindModel>>) -> [Arc<ScalarUDF>; 2] {
    Wanted::ALL.map(|wanted| {
        let (finder, signature) =
            (finder.cloned().map(PtrEq::from), Signature::variadic_any(Volatility::Immutable));
        Arc::new(ScalarUDF::new_from_impl(ByName { wanted, finder, signature }))
    })
}

/// Who finds the models of a statement that is planned with this state.
pub(super) fn finder(state: &SessionState) -> Option<&Arc<dyn FindModel>> {
    by_name(state.scalar_functions().get(Wanted::Prediction.function())?)?.finder.as_deref()
}

fn by_name(function: &ScalarUDF) -> Option<&ByName> {
    let function: &dyn Any = function.inner().as_ref();
    function.downcast_ref()
}

/// Whether an expression asks a model by its name, which means something in statements and views alone.
pub(crate) fn asks_model_by_name(expr: &Expr) -> bool {
    let asks = |expr: &Expr| Ok(matches!(expr, Expr::ScalarFunction(call) if by_name(&call.func).is_some()));
    expr.exists(asks).unwrap_or(true)
}

/// Whether a function asks a model: its name alone does not tell what it gives.
pub fn asks_model(function: &ScalarUDF) -> bool {
    let inner: &dyn Any = function.inner().as_ref();
    inner.is::<ByName>() || inner.is::<OfModel>()
}

/// The plan with the models themselves in the place of their names.
///
/// # Errors
/// None that planning has not had.
pub(crate) fn bind(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    if finder(state).is_none() || !asks_any(&plan)? {
        return Ok(plan);
    }
    let bound = |node: LogicalPlan| node.map_expressions(|expr| expr.transform_up(with_model));
    plan.transform_up_with_subqueries(bound).data()
}

/// Whether some expression of a plan asks a model. Of those that rows are ordered by, planning wants to know no type.
fn asks_any(plan: &LogicalPlan) -> Result<bool> {
    let mut asks = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            asks |= asks_model_by_name(expr);
            Ok(if asks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if asks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(asks)
}

fn with_model(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(Transformed::no(expr)) };
    let Some(function) = by_name(&call.func) else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let found = function.found(call.args.first().and_then(constant))?;
    let (wanted, signature) = (function.wanted, function.signature.clone());
    let function = Arc::new(ScalarUDF::new_from_impl(OfModel { wanted, found, signature }));
    // The name stays among the arguments: columns are called by it, in windows and in the text of orders, too.
    let args = call.args.into_iter().map(number_parameter).collect();
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func: function, args })))
}

/// A parameter that nothing else says the type of is a number here.
fn number_parameter(expr: Expr) -> Expr {
    match expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Some(Arc::new(Field::new(id.clone(), DataType::Float64, true)));
            Expr::Placeholder(Placeholder { id, field })
        }
        other => other,
    }
}

fn constant(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A function whose model is found by the first argument. It never runs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByName {
    wanted: Wanted,
    finder: Option<PtrEq<Arc<dyn FindModel>>>,
    signature: Signature,
}

impl ByName {
    fn found(&self, name: Option<&ScalarValue>) -> Result<Arc<Found>> {
        let function = self.wanted.function();
        let finder = self.finder.as_ref().ok_or_else(|| {
            external(
                Error::unsupported(format!(
                    "{function} is not allowed in policies, masks, defaults, checks and generated columns"
                ))
                .with_hint("call the model in a query or a view"),
            )
        })?;
        let name = name.and_then(|name| name.try_as_str().flatten()).ok_or_else(|| {
            external(
                Error::invalid(format!("{function} takes the name of a model first, as a text in quotes"))
                    .with_hint(format!(
                        "write `{function}('model', column, …)` or `FROM {function}('model', TABLE t)`"
                    )),
            )
        })?;
        finder.find(name).map_err(external)
    }
}

impl ScalarUDFImpl for ByName {
    fn name(&self) -> &str {
        self.wanted.function()
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(external(Error::internal("the type of a prediction depends on the model")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let found = self.found(args.scalar_arguments.first().copied().flatten())?;
        field(self.wanted, &found, args.arg_fields.get(1..).unwrap_or_default())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(Error::internal("a model was asked before it was found")))
    }
}

/// What a model gives for columns of these types.
fn field(wanted: Wanted, found: &Found, columns: &[FieldRef]) -> Result<FieldRef> {
    let told = |error: bowshot_models::Error| {
        let mut hint = format!("the model takes {} columns", found.model.feature_count());
        let names = found.model.feature_names();
        if !names.is_empty() {
            hint.push_str(": ");
            hint.push_str(
                &names.iter().take(NAMED_COLUMNS).map(String::as_str).collect::<Vec<_>>().join(", "),
            );
            if names.len() > NAMED_COLUMNS {
                hint.push_str(", …");
            }
        }
        external(Error::invalid(format!("model `{}`: {error}", found.name)).with_hint(hint))
    };
    let types: Vec<DataType> = columns.iter().map(|field| field.data_type().clone()).collect();
    found.model.check(&types).map_err(told)?;
    let kind = match wanted {
        Wanted::Prediction => found.model.prediction_type(),
        Wanted::Probabilities => found.model.probability_type().map_err(told)?,
    };
    Ok(Arc::new(Field::new(wanted.function(), kind, true)))
}

/// A function with its model.
#[derive(Debug)]
struct OfModel {
    wanted: Wanted,
    found: Arc<Found>,
    signature: Signature,
}

impl PartialEq for OfModel {
    fn eq(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.wanted, one.found.sha256.clone(), one.found.name.clone());
        of(self) == of(other)
    }
}

impl Eq for OfModel {}

impl Hash for OfModel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.wanted, &self.found.sha256, &self.found.name).hash(state);
    }
}

impl OfModel {
    fn ask(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let answer = match self.wanted {
            Wanted::Prediction => self.found.model.predict(columns),
            Wanted::Probabilities => self.found.model.predict_proba(columns),
        };
        answer.map_err(|error| external(Error::new(ErrorKind::Invalid, error.to_string())))
    }
}

impl ScalarUDFImpl for OfModel {
    fn name(&self) -> &str {
        self.wanted.function()
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(external(Error::internal("the type of a prediction is that of its field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        field(self.wanted, &self.found, args.arg_fields.get(1..).unwrap_or_default())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // The first one is the name.
        let given = args.args.get(1..).unwrap_or_default();
        let constant = given.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns = given.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let step = (STEP / self.found.model.row_cost()).max(STEP_ROWS);
        let mut parts = Vec::with_capacity(rows / step + 1);
        let mut first = 0;
        while first < rows || parts.is_empty() {
            let length = step.min(rows - first);
            let part: Vec<ArrayRef> = columns.iter().map(|column| column.slice(first, length)).collect();
            parts.push(bowshot_query_task::step(|| self.ask(&part))?);
            first += length.max(1);
        }
        let answer = match parts.as_slice() {
            [one] => Arc::clone(one),
            many => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?,
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?));
        }
        Ok(ColumnarValue::Array(answer))
    }
}
