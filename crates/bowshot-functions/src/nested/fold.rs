//! `list_reduce(list, (sum, x) -> …)`: a lambda over a value so far and the next element.
//!
//! All lists of a batch go forward together: one evaluation of the lambda for their first elements, one for their second, and
//! so on. The value so far keeps its type, that of the start or else of the elements; what the lambda gives is cast to it.

use super::list_arguments::{element, elements};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array, new_null_array};
use datafusion::arrow::compute::{cast, interleave, take, take_arrays};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda, Volatility,
};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Fold {
    signature: HigherOrderSignature,
    aliases: Vec<String>,
}

pub(super) fn list_reduce() -> Arc<HigherOrderUDF> {
    let aliases = ["array_reduce", "reduce", "aggregate"].map(str::to_owned).to_vec();
    let signature = HigherOrderSignature::variadic_any(Volatility::Immutable);
    Arc::new(HigherOrderUDF::new_from_impl(Fold { signature, aliases }))
}

/// The list, and the start if there is one, of what stands beside the lambda.
fn values<V, L>(given: &[ValueOrLambda<V, L>]) -> Result<(&V, Option<&V>)> {
    let values: Vec<&V> = given
        .iter()
        .filter_map(|one| match one {
            ValueOrLambda::Value(value) => Some(value),
            ValueOrLambda::Lambda(_) => None,
        })
        .collect();
    match (values.as_slice(), given.len() - values.len()) {
        ([list], 1) => Ok((list, None)),
        ([list, start], 1) => Ok((list, Some(start))),
        _ => plan_err!("list_reduce takes a list, a lambda of two parameters, and a start if there is one"),
    }
}

/// The fields of the value so far and of the elements.
fn fields(list: &FieldRef, start: Option<&FieldRef>) -> Result<(FieldRef, FieldRef)> {
    let Some(element) = element(list.data_type()) else {
        return plan_err!("list_reduce takes a list, not {list}");
    };
    let so_far = start.map_or(element.data_type(), |start| start.data_type());
    Ok((Arc::new(Field::new("so_far", so_far.clone(), true)), Arc::clone(element)))
}

impl HigherOrderUDFImpl for Fold {
    fn name(&self) -> &str {
        "list_reduce"
    }

    bowshot_api::getters!(aliases: &[String], signature: &HigherOrderSignature);

    fn lambda_parameters(
        &self,
        _step: usize,
        given: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let (list, start) = values(given)?;
        let (so_far, element) = fields(list, start)?;
        Ok(LambdaParametersProgress::Complete(vec![vec![so_far, element]]))
    }

    fn return_field_from_args(&self, given: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        let (list, start) = values(given.arg_fields)?;
        fields(list, start).map(|(so_far, _)| so_far)
    }

    fn invoke_with_args(&self, given: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (list, start) = values(&given.args)?;
        let lambda = given.args.iter().find_map(|one| match one {
            ValueOrLambda::Lambda(lambda) => Some(lambda),
            ValueOrLambda::Value(_) => None,
        });
        let Some(lambda) = lambda else { return internal_err!("list_reduce takes a lambda") };
        let of = given.return_field.data_type();
        let list = list.to_array(given.number_rows)?;
        let plain = super::list_arguments::plain(list.data_type()).unwrap_or(DataType::Null);
        let list = cast(&list, &plain)?;
        let Some(lists) = list.as_list_opt::<i32>() else { return exec_err!("list_reduce takes a list") };
        let start = start.map(|start| {
            Ok::<_, datafusion::common::DataFusionError>(cast(&start.to_array(given.number_rows)?, of)?)
        });
        fold(lists, start.transpose()?, lambda, of).map(ColumnarValue::Array)
    }
}

fn fold(
    lists: &ListArray,
    start: Option<ArrayRef>,
    lambda: &LambdaArgument,
    of: &DataType,
) -> Result<ArrayRef> {
    // Without a start the first element is one, and the second is the first that the lambda sees.
    let first = usize::from(start.is_none());
    let mut so_far = match start {
        Some(start) => start,
        None => {
            let places = (0..lists.len()).map(|row| {
                let range = elements(lists, row);
                (lists.is_valid(row) && !range.is_empty()).then_some(range.start as u64)
            });
            cast(&take(lists.values(), &UInt64Array::from_iter(places), None)?, of)?
        }
    };
    let longest = (0..lists.len()).map(|row| elements(lists, row).len()).max().unwrap_or(0);
    for step in first..longest {
        let rows: Vec<usize> = (0..lists.len())
            .filter(|row| lists.is_valid(*row) && elements(lists, *row).len() > step)
            .collect();
        let active = UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
        let places =
            UInt64Array::from_iter_values(rows.iter().map(|row| (elements(lists, *row).start + step) as u64));
        let before = take(&so_far, &active, None)?;
        let next = take(lists.values(), &places, None)?;
        let after = lambda
            .evaluate(&[&|| Ok(Arc::clone(&before)), &|| Ok(Arc::clone(&next))], |captured| {
                Ok(take_arrays(captured, &active, None)?)
            })?;
        let after = cast(&after.into_array(rows.len())?, of)?;
        let mut order: Vec<(usize, usize)> = (0..so_far.len()).map(|row| (0, row)).collect();
        for (place, row) in rows.iter().enumerate() {
            if let Some(slot) = order.get_mut(*row) {
                *slot = (1, place);
            }
        }
        so_far = interleave(&[so_far.as_ref(), after.as_ref()], &order)?;
    }
    // A list that is NULL has no value, whatever the start.
    let nothing = new_null_array(of, 1);
    let order: Vec<(usize, usize)> =
        (0..so_far.len()).map(|row| if lists.is_null(row) { (1, 0) } else { (0, row) }).collect();
    Ok(interleave(&[so_far.as_ref(), nothing.as_ref()], &order)?)
}
