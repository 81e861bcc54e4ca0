//! Arguments and results of the JSON functions.

use super::path::{names, path};
use super::reader::{Reader, Step};
use super::value::Json;
use crate::scalar_udf::{gives, no_overload, text_type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, ListBuilder, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, exec_datafusion_err, exec_err, internal_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

/// The key of a field's metadata that names its extension type, and Arrow's name for JSON.
const EXTENSION: &str = "ARROW:extension:name";
const NAME: &str = "arrow.json";

pub(crate) fn json_field() -> Field {
    // The canonical extension type has an empty text for its parameters.
    let metadata = [(EXTENSION, NAME), ("ARROW:extension:metadata", "")];
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Field::new("", DataType::Utf8, true).with_metadata(metadata)
}

/// The key of a field's metadata that says what a table or a cast declares, and the name of JSON whose spelling is no part of it.
const DECLARED: &str = "bowshot:type";
const BINARY: &str = "JSONB";

pub(crate) fn jsonb_field() -> Field {
    let mut metadata = json_field().metadata().clone();
    metadata.insert(DECLARED.to_owned(), BINARY.to_owned());
    json_field().with_metadata(metadata)
}

/// Whether the text in a field is JSONB. A cast to text takes the extension type away.
pub(crate) fn is_jsonb(field: &Field) -> bool {
    is_json(field) && field.metadata().get(DECLARED).is_some_and(|name| name == BINARY)
}

/// A part of the first argument, which is JSONB if that is.
pub(crate) fn gives_part(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let whole = given.arg_fields.first();
    Ok(if whole.is_some_and(|field| is_jsonb(field)) { jsonb_field() } else { json_field() })
}

pub(crate) fn is_json(field: &Field) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|name| name == NAME) && text_type(field.data_type())
}

pub(crate) fn is_uuid(field: &Field) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid")
}

gives! {
    gives_json: json_field();
    gives_jsonb: jsonb_field();
    gives_jsons: Field::new("", list_of(json_field().with_name("item")), true);
}

pub(crate) fn list_of(element: Field) -> DataType {
    DataType::List(Arc::new(element))
}

pub(crate) fn takes_one(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    texts(name, given, 1..=1)
}

/// A text, and a path if there is one.
pub(crate) fn takes_one_or_path(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    texts(name, given, 1..=2)
}

pub(crate) fn takes_two(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    texts(name, given, 2..=2)
}

/// Any number of texts, but one at least.
pub(crate) fn takes_texts(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    texts(name, given, 1..=usize::MAX)
}

fn texts(name: &str, given: &[DataType], count: std::ops::RangeInclusive<usize>) -> Result<Vec<DataType>> {
    if !count.contains(&given.len()) || !given.iter().all(|one| text_type(one) || one.is_null()) {
        return no_overload(name, given);
    }
    Ok(vec![DataType::Utf8; given.len()])
}

/// A document and a key, an index, a path, or a list of paths.
pub(crate) fn takes_step(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let [document, step] = given else { return no_overload(name, given) };
    let step = match step {
        step if text_type(step) || step.is_null() => DataType::Utf8,
        step if step.is_integer() => DataType::Int64,
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _)
            if text_type(of.data_type()) || of.data_type().is_null() =>
        {
            list_of(Field::new_list_field(DataType::Utf8, true))
        }
        _ => return no_overload(name, given),
    };
    if !text_type(document) && !document.is_null() {
        return no_overload(name, given);
    }
    Ok(vec![DataType::Utf8, step])
}

/// The arguments of a batch, each with a value for each row.
pub(crate) struct Rows {
    arrays: Vec<ArrayRef>,
    pub(crate) count: usize,
}

impl Rows {
    pub(crate) fn new(given: &ScalarFunctionArgs) -> Result<Self> {
        let arrays = given.args.iter().map(|value| value.to_array(given.number_rows));
        Ok(Self { arrays: arrays.collect::<Result<_>>()?, count: given.number_rows })
    }

    pub(crate) fn array(&self, argument: usize) -> Result<&ArrayRef> {
        self.arrays.get(argument).ok_or_else(|| internal_datafusion_err!("argument {argument} is missing"))
    }

    pub(crate) fn width(&self) -> usize {
        self.arrays.len()
    }

    pub(crate) fn text(&self, argument: usize) -> Result<&StringArray> {
        let array = self.array(argument)?;
        array.as_string_opt().ok_or_else(|| internal_datafusion_err!("argument {argument} is not a text"))
    }

    /// What `make` gives for each row that has a document as its first argument.
    pub(crate) fn map_documents<T>(
        &self,
        make: impl Fn(usize, &str) -> Result<Option<T>>,
    ) -> Result<Vec<Option<T>>> {
        let documents = self.text(0)?;
        (0..self.count)
            .map(|row| at(documents, row).map_or(Ok(None), |document| make(row, document)))
            .collect()
    }

    /// A text for each of these rows.
    pub(crate) fn map_to_texts(
        &self,
        make: impl Fn(usize, &str) -> Result<Option<String>>,
    ) -> Result<ColumnarValue> {
        let documents = self.text(0)?;
        each_row(self.count, |row, out| {
            out.append_option(at(documents, row).map_or(Ok(None), |document| make(row, document))?);
            Ok(())
        })
    }
}

/// A text for each document of the first argument.
pub(crate) fn map_trees(
    given: &ScalarFunctionArgs,
    text: impl Fn(Json<'_>) -> String,
) -> Result<ColumnarValue> {
    Rows::new(given)?.map_to_texts(|_, document| Ok(Some(text(Reader::tree(document)?))))
}

pub(crate) fn column<A: Array + FromIterator<Option<T>> + 'static, T>(
    values: Vec<Option<T>>,
) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(values.into_iter().collect::<A>()))
}

/// The column of these lists of texts, of the type that the result has.
pub(crate) fn list_column(
    given: &ScalarFunctionArgs,
    lists: Vec<Option<Vec<Option<String>>>>,
) -> ColumnarValue {
    let mut out = ListBuilder::new(StringBuilder::new());
    if let DataType::List(element) = given.return_field.data_type() {
        out = out.with_field(Arc::clone(element));
    }
    out.extend(lists);
    ColumnarValue::Array(Arc::new(out.finish()))
}

/// The value of a row, unless it is NULL.
pub(crate) fn at(array: &StringArray, row: usize) -> Option<&str> {
    (row < array.len() && !array.is_null(row)).then(|| array.value(row))
}

/// Which way the second argument of a row leads.
pub(crate) enum Way {
    Steps(Vec<Step>),
    Names(Vec<String>),
}

/// The ways of all rows: a constant one is read once.
pub(crate) struct Ways {
    constant: Option<Option<Way>>,
    array: ArrayRef,
    read: fn(&ArrayRef, usize) -> Result<Option<Way>>,
}

impl Ways {
    pub(crate) fn new(
        given: &ScalarFunctionArgs,
        argument: usize,
        read: fn(&ArrayRef, usize) -> Result<Option<Way>>,
    ) -> Result<Self> {
        let value = given.args.get(argument).ok_or_else(|| internal_datafusion_err!("a path is missing"))?;
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let array = value.to_array(if constant { 1 } else { given.number_rows })?;
        let constant = if constant { Some(read(&array, 0)?) } else { None };
        Ok(Self { constant, array, read })
    }

    /// Calls `with` for the way of a row; none for a NULL.
    pub(crate) fn at<T>(
        &self,
        row: usize,
        with: impl FnOnce(&Way) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match &self.constant {
            Some(way) => way.as_ref().map_or(Ok(None), with),
            None => (self.read)(&self.array, row)?.as_ref().map_or(Ok(None), with),
        }
    }
}

/// A key, an index, or a path as DuckDB has them.
pub(crate) fn step(array: &ArrayRef, row: usize) -> Result<Option<Way>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let steps = match array.data_type() {
        DataType::Int64 => vec![Step::Index(array.as_primitive::<Int64Type>().value(row))],
        DataType::Utf8 => path(array.as_string::<i32>().value(row))?,
        other => return exec_err!("a path into JSON cannot have the type {other}"),
    };
    Ok(Some(Way::Steps(steps)))
}

/// What stands behind `#>`.
pub(crate) fn name_list(array: &ArrayRef, row: usize) -> Result<Option<Way>> {
    Ok(name_texts(array, row)?.map(Way::Names))
}

/// The names in PostgreSQL's text of an array, or in a list of texts.
pub(crate) fn name_texts(array: &ArrayRef, row: usize) -> Result<Option<Vec<String>>> {
    if array.is_null(row) {
        return Ok(None);
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        return list_texts(list, row).map(Some);
    }
    let texts = array.as_string_opt::<i32>();
    let texts = texts.ok_or_else(|| exec_datafusion_err!("a path into JSON has to be text"))?;
    names(texts.value(row)).map(Some)
}

/// The texts of a list's row; NULLs in it are left out.
pub(crate) fn list_texts(list: &ListArray, row: usize) -> Result<Vec<String>> {
    let values = list.value(row);
    let texts = values.as_string_opt::<i32>();
    let texts = texts.ok_or_else(|| exec_datafusion_err!("a list of texts is wanted"))?;
    Ok(texts.iter().flatten().map(str::to_owned).collect())
}

/// The row of a result that is NULL.
pub(crate) fn null(out: &mut StringBuilder) -> Result<()> {
    out.append_null();
    Ok(())
}

/// Builds a text for each row.
pub(crate) fn each_row(
    count: usize,
    mut row: impl FnMut(usize, &mut StringBuilder) -> Result<()>,
) -> Result<ColumnarValue> {
    let mut out = StringBuilder::with_capacity(count, count.saturating_mul(8));
    for index in 0..count {
        row(index, &mut out)?;
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}
