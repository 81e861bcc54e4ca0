//! Functions on structs.

use crate::define::Function;
use crate::scalar_udf::{gives_texts, no_overload, scalar_functions};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "struct_insert" "struct_update": takes_insert, gives_insert, insert =>
        "the struct with further members, or with others in their place: name and value alternate";
    "struct_concat": takes_structs, gives_concat, concat => "the members of several structs as one";
    "struct_keys": takes_structs, gives_texts, keys => "the names of a struct's members";
    "struct_extract_at": takes_at, gives_at, at => "the member at a place";
};

fn takes_structs(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    if given.is_empty() || !given.iter().all(|of| matches!(of, DataType::Struct(_))) {
        return no_overload(name, given);
    }
    Ok(given.to_vec())
}

fn takes_insert(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [DataType::Struct(_), rest @ ..] if rest.len() % 2 == 0 => Ok(given.to_vec()),
        _ => no_overload(name, given),
    }
}

fn members(of: &DataType) -> Result<&Fields> {
    match of {
        DataType::Struct(fields) => Ok(fields),
        other => internal_err!("{other} is not a struct"),
    }
}

/// The members in their order, where a name that is there already gets the new type.
fn merged(fields: impl IntoIterator<Item = FieldRef>) -> Vec<FieldRef> {
    let mut all: Vec<FieldRef> = Vec::new();
    for field in fields {
        match all.iter_mut().find(|known| known.name().eq_ignore_ascii_case(field.name())) {
            Some(known) => *known = field,
            None => all.push(field),
        }
    }
    all
}

fn gives_insert(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let Some((first, rest)) = given.arg_fields.split_first() else { return no_overload(name, &[]) };
    let mut added = Vec::new();
    for (index, pair) in rest.chunks(2).enumerate() {
        let named: Option<&ScalarValue> = given.scalar_arguments.get(2 * index + 1).copied().flatten();
        let (Some(member), Some(value)) = (named.and_then(|one| one.try_as_str().flatten()), pair.get(1))
        else {
            return plan_err!("the names of members in {name} have to be constants, as in {name}(s, b := 2)");
        };
        added.push(Arc::new(value.as_ref().clone().with_name(member).with_nullable(true)));
    }
    let fields = merged(members(first.data_type())?.iter().map(Arc::clone).chain(added));
    Ok(Field::new("", DataType::Struct(fields.into()), true))
}

fn insert(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = super::list_arguments::arrays(given)?;
    let Some(record) = arrays.first().and_then(|array| array.as_struct_opt()) else {
        return internal_err!("no struct");
    };
    let mut named: Vec<(String, ArrayRef)> = own(record);
    for pair in arrays.get(1..).unwrap_or_default().chunks(2) {
        let [name, value] = pair else { return internal_err!("a name without a value") };
        let name = if name.is_empty() {
            None
        } else {
            ScalarValue::try_from_array(name, 0)?.try_as_str().flatten().map(str::to_owned)
        };
        named.push((name.unwrap_or_default(), Arc::clone(value)));
    }
    of_columns(given, &named, record.nulls())
}

fn own(record: &StructArray) -> Vec<(String, ArrayRef)> {
    let columns = record.fields().iter().zip(record.columns());
    columns.map(|(field, column)| (field.name().clone(), Arc::clone(column))).collect()
}

/// The struct of the result's type from columns by name, of which the last of a name counts.
fn of_columns(
    given: &ScalarFunctionArgs,
    named: &[(String, ArrayRef)],
    nulls: Option<&NullBuffer>,
) -> Result<ColumnarValue> {
    let fields = members(given.return_field.data_type())?;
    let column = |field: &FieldRef| {
        let found = named.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(field.name()));
        found.map_or_else(
            || new_null_array(field.data_type(), given.number_rows),
            |(_, column)| Arc::clone(column),
        )
    };
    let columns = fields.iter().map(column).collect();
    Ok(ColumnarValue::Array(Arc::new(StructArray::try_new(fields.clone(), columns, nulls.cloned())?)))
}

fn gives_concat(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let mut all = Vec::new();
    for field in given.arg_fields {
        all.extend(
            members(field.data_type())?
                .iter()
                .map(|member| Arc::new(member.as_ref().clone().with_nullable(true))),
        );
    }
    Ok(Field::new("", DataType::Struct(merged(all).into()), true))
}

fn concat(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = super::list_arguments::arrays(given)?;
    let named: Vec<_> = arrays.iter().filter_map(|array| array.as_struct_opt()).flat_map(own).collect();
    of_columns(given, &named, None)
}

fn keys(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let Some(field) = given.arg_fields.first() else { return internal_err!("no struct") };
    let names = members(field.data_type())?.iter().map(|field| ScalarValue::from(field.name().as_str()));
    let names: Vec<ScalarValue> = names.collect();
    Ok(ColumnarValue::Scalar(ScalarValue::List(ScalarValue::new_list_nullable(&names, &DataType::Utf8))))
}

fn takes_at(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [DataType::Struct(_), place] if place.is_integer() => {
            Ok(vec![given.first().cloned().unwrap_or(DataType::Null), DataType::Int64])
        }
        _ => no_overload(name, given),
    }
}

/// The place that a constant names, from 0.
fn place(name: &str, of: &DataType, place: Option<&ScalarValue>) -> Result<usize> {
    let count = members(of)?.len();
    match place {
        Some(ScalarValue::Int64(Some(place))) if (1..=count as i64).contains(place) => {
            Ok(*place as usize - 1)
        }
        _ => plan_err!("the place of a member in {name} has to be a constant from 1 to {count}"),
    }
}

fn gives_at(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let Some(record) = given.arg_fields.first() else { return no_overload(name, &[]) };
    let place = place(name, record.data_type(), given.scalar_arguments.get(1).copied().flatten())?;
    let member = members(record.data_type())?.get(place);
    Ok(member.map_or_else(
        || Field::new("", DataType::Null, true),
        |member| member.as_ref().clone().with_nullable(true),
    ))
}

fn at(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = super::list_arguments::arrays(given)?;
    let (Some(record), Some(ColumnarValue::Scalar(wanted))) = (arrays.first(), given.args.get(1)) else {
        return internal_err!("no place");
    };
    let place = place("struct_extract_at", record.data_type(), Some(wanted))?;
    let record = record.as_struct();
    // A member of a struct that is NULL is NULL.
    let column = datafusion::arrow::array::make_array(record.column(place).to_data());
    let nulls = NullBuffer::union(column.logical_nulls().as_ref(), record.nulls());
    let data = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(ColumnarValue::Array(datafusion::arrow::array::make_array(data)))
}
