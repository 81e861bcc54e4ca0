//! Functions that casts become. No statement calls them by name.

use super::casts::whole_decimal;
use super::declared::Declared;
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, new_null_array};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Values of a type, held against what is declared beyond it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    declared: Declared,
    field: FieldRef,
    /// Whether what is no such value at all is null instead of an error.
    tries: bool,
    name: String,
    signature: Signature,
}

impl Held {
    pub(super) fn new(declared: Declared, field: &FieldRef, tries: bool) -> Self {
        let verb = if tries { "try_cast_as" } else { "cast_as" };
        let name = format!("{verb}_{}", declared.to_string().to_lowercase());
        // Not immutable: nobody could make it again of its name, which caches do.
        let signature = Signature::any(1, Volatility::Stable);
        Self { declared, field: Arc::clone(field), tries, name, signature }
    }

    fn each_or_null(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if let Ok(all) = self.declared.cast(values) {
            return Ok(all);
        }
        let one = |row| {
            let value = values.slice(row, 1);
            self.declared.cast(&value).unwrap_or_else(|_| new_null_array(value.data_type(), 1))
        };
        let each: Vec<ArrayRef> = (0..values.len()).map(one).collect();
        Ok(concat(&each.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
    }
}

impl ScalarUDFImpl for Held {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.tries || arguments.arg_fields.first().is_none_or(|field| field.is_nullable());
        Ok(Arc::new(self.field.as_ref().clone().with_name(&self.name).with_nullable(nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_array(arguments, |values| match self.tries {
            true => self.each_or_null(values),
            false => self.declared.cast(values).map_err(|error| DataFusionError::External(Box::new(error))),
        })
    }
}

/// A value that is going to be cast, and to what: see [`bowshot_sql::rewrite::CAST_TO`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct CastTo {
    signature: Signature,
}

/// The function of [`CastTo`].
pub(super) fn cast_to() -> ScalarUDF {
    ScalarUDF::new_from_impl(CastTo { signature: Signature::any(2, Volatility::Immutable) })
}

impl ScalarUDFImpl for CastTo {
    fn name(&self) -> &'static str {
        bowshot_sql::rewrite::CAST_TO
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first() {
            Some(of) => Ok(of.clone()),
            None => plan_err!("`{}` takes a value and a type", self.name()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match arguments.arg_fields.first() {
            Some(of) => Ok(Arc::clone(of)),
            None => plan_err!("`{}` takes a value and a type", self.name()),
        }
    }

    fn simplify(&self, mut args: Vec<Expr>, _info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if args.len() == 2 {
            args.truncate(1);
        }
        match args.pop() {
            Some(value) if args.is_empty() => Ok(ExprSimplifyResult::Simplified(value)),
            _ => plan_err!("`{}` takes a value and a type", self.name()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => plan_err!("`{}` takes a value and a type", self.name()),
        }
    }
}

/// Floating-point numbers without what is behind the point, halves to the even neighbour.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Rounded;

/// The function of [`Rounded`].
pub(super) fn rounded() -> ScalarUDF {
    plan_function(Rounded, Signature::any(1, Volatility::Immutable))
}

impl Rounded {
    pub(super) const NAME: &'static str = "__bowshot_round";
}

impl PlanFunction for Rounded {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [argument] if may_have_fractions(argument) => Ok(argument.clone()),
            _ => plan_err!("only floating-point numbers are rounded"),
        }
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        match whole(only(arguments)?) {
            Some(whole) => Ok(whole),
            None => exec_err!("only floating-point numbers are rounded"),
        }
    }
}

/// Whether values are floating-point numbers, or lists of such.
pub(super) fn may_have_fractions(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => may_have_fractions(item.data_type()),
        other => other.is_floating(),
    }
}

/// The nearest whole numbers; `None` for what are no floating-point numbers.
pub(super) fn whole(values: &ArrayRef) -> Option<ArrayRef> {
    Some(match values.data_type() {
        DataType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even))
        }
        DataType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float16 => Arc::new(
            values
                .as_primitive::<Float16Type>()
                .unary::<_, Float32Type>(|value| value.to_f32().round_ties_even()),
        ),
        DataType::List(item) => {
            let lists = values.as_list::<i32>();
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            let numbers = whole(lists.values())?;
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, numbers, nulls).ok()?)
        }
        _ => return None,
    })
}

/// Numbers, or lists of such, rounded: floating-point numbers with halves to the even neighbour, decimals away from zero. `None` for
/// those that have no fractions.
pub fn without_fractions(values: &ArrayRef) -> Option<ArrayRef> {
    whole(values).or_else(|| cast(values, &whole_decimal(values.data_type())?).ok())
}

pub(super) fn on_array(
    arguments: ScalarFunctionArgs,
    make: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let first = arguments.args.get(..1).unwrap_or_default();
    make_scalar_function(|values| make(only(values)?), Vec::new())(first)
}

/// The argument of a function that has one.
pub(super) fn only(arguments: &[ArrayRef]) -> Result<&ArrayRef> {
    match arguments {
        [values] => Ok(values),
        _ => exec_err!("a cast takes one value"),
    }
}
