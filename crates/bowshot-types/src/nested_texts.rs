//! Rows and arrays as text in PostgreSQL's forms: `(1,"a b",)`, `{1,NULL,"a b"}`, `{{1,2},{3,4}}` (`record_out` and `array_out`
//! there), and `1 2` for the vectors of its catalog.

use super::functions::only;
use super::to_text;
use super::uuids::are_uuids;
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::fmt::Write;
use std::sync::Arc;

/// Key in the metadata of a column of small numbers that PostgreSQL's clients read as `1 2`.
pub const VECTOR: &str = "bowshot:int2vector";
/// The same of numbers of things.
pub const OIDS: &str = "bowshot:oidvector";

/// Whether a column is a vector of PostgreSQL's catalog.
pub(super) fn is_vector(field: &Field) -> bool {
    [VECTOR, OIDS].iter().any(|key| field.metadata().contains_key(*key))
}

/// Whether the text of such values is written here.
pub(super) fn is_ours(of: &DataType) -> bool {
    let is_part = |part: &Field| !part.data_type().is_nested() || is_ours(part.data_type());
    match of {
        DataType::Struct(fields) => fields.iter().all(|field| is_part(field)),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => is_part(item),
        _ => false,
    }
}

fn texts(values: &ArrayRef, field: &Field) -> Result<StringArray> {
    let simple = match values.data_type() {
        DataType::Struct(fields) => {
            let rows = values.as_struct();
            let columns = rows.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| texts(column, field)).collect::<Result<Vec<_>>>()?;
            let rows = (0..rows.len()).map(|row| rows.is_valid(row).then(|| record(&columns, row)));
            return Ok(rows.collect());
        }
        DataType::List(item) => return arrays(values, item),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            return arrays(&cast(values, &DataType::List(Arc::clone(item)))?, item);
        }
        DataType::Boolean => {
            let truths = values.as_boolean().iter();
            return Ok(truths.map(|truth| truth.map(|truth| if truth { "t" } else { "f" })).collect());
        }
        of if to_text::is_ours(of) || are_uuids(field) => to_text::texts(values)?,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let bytes = cast(values, &DataType::Binary)?;
            return Ok(bytes.as_binary::<i32>().iter().map(|bytes| bytes.map(hexadecimal)).collect());
        }
        _ => cast(values, &DataType::Utf8)?,
    };
    Ok(simple.as_string::<i32>().clone())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn record(columns: &[StringArray], row: usize) -> String {
    let mut out = String::from("(");
    for (index, column) in columns.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        if column.is_null(row) {
            continue;
        }
        let text = column.value(row);
        if !text.is_empty() && !text.contains(['"', '\\', '(', ')', ',']) && !text.contains(is_space) {
            out.push_str(text);
            continue;
        }
        out.push('"');
        out.push_str(&text.replace('\\', "\\\\").replace('"', "\"\""));
        out.push('"');
    }
    out.push(')');
    out
}

fn arrays(values: &ArrayRef, item: &Field) -> Result<StringArray> {
    let lists = values.as_list::<i32>();
    let elements = texts(lists.values(), item)?;
    let is_array = item.data_type().is_list();
    let rows = lists.offsets().windows(2).enumerate().map(|(row, ends)| {
        let [start, end] = ends else { return None };
        let places = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
        lists.is_valid(row).then(|| array(&elements, places, is_array))
    });
    Ok(rows.collect())
}

fn array(elements: &StringArray, places: std::ops::Range<usize>, is_array: bool) -> String {
    let mut out = String::from("{");
    for place in places.clone() {
        out.push_str(if place > places.start { "," } else { "" });
        if elements.is_null(place) {
            out.push_str("NULL");
            continue;
        }
        let text = elements.value(place);
        let special = text.contains(['{', '}', ',', '"', '\\']) || text.contains(is_space);
        if is_array || !(special || text.is_empty() || text.eq_ignore_ascii_case("null")) {
            out.push_str(text);
            continue;
        }
        out.push('"');
        out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
        out.push('"');
    }
    out.push('}');
    out
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// The function that such casts become.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedText {
    /// Whether it writes `1 2` for `{1,2}`.
    is_vector: bool,
}

/// The function that converts rows and arrays to text.
pub(super) fn function(is_vector: bool) -> ScalarUDF {
    plan_function(NestedText { is_vector }, Signature::any(1, Volatility::Immutable))
}

impl PlanFunction for NestedText {
    fn name(&self) -> &'static str {
        if self.is_vector { "__bowshot_vector_text" } else { "__bowshot_nested_text" }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let values = only(arguments)?;
        let texts = texts(values, &Field::new("", values.data_type().clone(), true))?;
        if !self.is_vector {
            return Ok(Arc::new(texts));
        }
        let plain = |text: &str| text.trim_matches(['{', '}']).replace(',', " ");
        Ok(Arc::new(texts.iter().map(|text| text.map(plain)).collect::<StringArray>()))
    }
}
