//! Hive partitions: folders named `key=value` above the files become columns, typed by all their values, and whole
//! files are left out when a filter on them says so.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{DataType, Date32Type, Field, Fields, Schema, TimeUnit};
use bowshot_formats::csv::values::{self, Notation, Stamp};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::{ReadOptions, Types};
use bowshot_object_store::Error;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_expr::create_physical_expr;
use std::collections::HashSet;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

/// How Hive writes a null.
const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The partition columns of a table, and one row of values per file.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    pub(crate) fields: Fields,
    pub(crate) values: Vec<Vec<ScalarValue>>,
}

/// Whether a folder's name is a partition.
pub(crate) fn is_partition(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| split(&name.to_string_lossy()).is_some())
}

/// Reads the partitions off the folders; every file must have the same keys.
pub(crate) fn read(files: &[ListedFile], options: &ReadOptions) -> Result<Partitions, Error> {
    let mut partitions = match options.hive {
        Some(false) => {
            Partitions { fields: Fields::empty(), values: files.iter().map(|_| Vec::new()).collect() }
        }
        _ => of_folders(files, options)?,
    };
    check_keys(&partitions.fields, options)?;
    if let Some(name) = &options.filename {
        // The path is the same for all rows of a file, as the values of its folders are.
        let field = Field::new(name, DataType::Utf8, false);
        partitions.fields = partitions.fields.iter().cloned().chain([Arc::new(field)]).collect();
        for (values, file) in partitions.values.iter_mut().zip(files) {
            values.push(ScalarValue::Utf8(Some(file.shown.clone())));
        }
    }
    Ok(partitions)
}

/// Whether the folders give the columns that are asked of them.
fn check_keys(found: &Fields, options: &ReadOptions) -> Result<(), Error> {
    let missing = options.hive_types.iter().find(|(key, _)| found.find(key).is_none());
    // What is said of a folder of several tables, each takes as far as it concerns it.
    let Some((key, _)) = missing.filter(|_| !options.shared) else { return Ok(()) };
    let names: Vec<&str> = found.iter().map(|field| field.name().as_str()).collect();
    Err(Error::Options {
        detail: format!("the files are in no folders `{key}=…`, of which the column `{key}` would have its values"),
        hint: match names.is_empty() {
            true => "leave PARTITIONED BY, or the option `hive_types`, out: no folder above them is one of `key=value`".to_owned(),
            false => format!("the columns of folders are {}", names.join(", ")),
        },
    })
}

/// The type that is said of a column of folders; of one that is named among those of the files, that one.
fn said<'a>(options: &'a ReadOptions, key: &str) -> Option<&'a DataType> {
    let named = options.hive_types.iter().find(|(name, _)| name == key);
    match (named, &options.types) {
        (Some((_, data_type)), _) => data_type.as_ref(),
        (None, Types::ByName(types)) if options.columns => {
            types.iter().find(|(name, _)| name == key).map(|(_, data_type)| data_type)
        }
        _ => None,
    }
}

fn of_folders(files: &[ListedFile], options: &ReadOptions) -> Result<Partitions, Error> {
    let pairs = |file: &ListedFile| file.folders.iter().filter_map(|name| split(name)).collect::<Vec<_>>();
    let Some(first) = files.first().map(pairs) else {
        return Ok(Partitions::default());
    };
    let keys: Vec<String> = first.into_iter().map(|(key, _)| key).collect();
    let mut texts = Vec::with_capacity(files.len());
    for file in files {
        let found = pairs(file);
        if !found.iter().map(|(key, _)| key).eq(keys.iter()) {
            let found: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
            return Err(Error::Partitions {
                path: file.path.clone(),
                found: found.join(", "),
                expected: keys.join(", "),
            });
        }
        texts.push(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
    }
    let inferred =
        |column: usize| infer(texts.iter().filter_map(|row| row.get(column)).filter_map(Option::as_deref));
    let data_type = |(column, key): (usize, &String)| match said(options, key) {
        Some(said) => said.clone(),
        None if options.hive_text => DataType::Utf8,
        None => inferred(column),
    };
    let types: Vec<DataType> = keys.iter().enumerate().map(data_type).collect();
    let values = files
        .iter()
        .zip(texts)
        .map(|(file, row)| {
            let row = row.into_iter().zip(keys.iter().zip(&types));
            row.map(|(text, (key, data_type))| value(file, text, key, data_type)).collect()
        })
        .collect::<Result<_, Error>>()?;
    let fields = keys.iter().zip(&types).map(|(key, data_type)| Field::new(key, data_type.clone(), true));
    Ok(Partitions { fields: fields.collect(), values })
}

/// Whether the partition values alone decide a filter.
pub(crate) fn decides(fields: &Fields, filter: &Expr) -> bool {
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    !names.is_empty()
        && !filter.column_refs().is_empty()
        && expr_applicable_for_cols(&names, filter)
        && !holds_subquery(filter)
}

/// Which files may hold rows that pass all of `filters`; filters on other columns are left to the scan.
pub(crate) fn keep(
    fields: &Fields,
    values: &[&[ScalarValue]],
    filters: &[Expr],
    properties: &ExecutionProps,
) -> Result<Vec<bool>> {
    let decisive = filters.iter().filter(|filter| decides(fields, filter)).cloned();
    let Some(filter) = conjunction(decisive) else {
        return Ok(vec![true; values.len()]);
    };
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let arrays = (0..fields.len())
        .map(|column| ScalarValue::iter_to_array(values.iter().map(|row| row[column].clone())))
        .collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Schema::new(fields.clone()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    // Filters may name the table with its columns, the batch has bare names.
    let filter = filter.transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
            other => Transformed::no(other),
        })
    })?;
    let schema = DFSchema::try_from(schema)?;
    let context = PhysicalPlanningContext::default();
    let filter = create_physical_expr(&filter.data, &schema, properties, &context)?;
    let passed = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
    let passed = passed.as_boolean();
    Ok((0..passed.len()).map(|row| passed.is_valid(row) && passed.value(row)).collect())
}

fn holds_subquery(filter: &Expr) -> bool {
    filter
        .exists(|expr| {
            Ok(matches!(
                expr,
                Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::ScalarSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::ScalarVariable(..)
                    | Expr::Placeholder(_)
            ))
        })
        .unwrap_or(true)
}

/// `key=value` with percent escapes undone; a null value is `None`.
fn split(folder: &str) -> Option<(String, Option<String>)> {
    let (key, value) = folder.split_once('=')?;
    if key.is_empty() {
        return None;
    }
    let value = (value != NULL_VALUE).then(|| unescape(value));
    Some((unescape(key), value))
}

fn unescape(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Into::into)
}

/// Whole numbers, else dates, else times, else text; and text where two folders would have one value, as `007` and `7`.
fn infer<'a>(values: impl Iterator<Item = &'a str>) -> DataType {
    let texts: HashSet<&str> = values.collect();
    let stamps = || {
        let stamps = texts.iter().map(|text| stamp(text)).collect::<Option<Vec<Stamp>>>()?;
        let zoned = stamps.first()?.zoned;
        let same = stamps.iter().all(|stamp| stamp.zoned == zoned)
            && distinct(&texts, |text| stamp(text).map(|stamp| (stamp.seconds, stamp.nanos)));
        let unit = |per_second| stamps.iter().all(|stamp| stamp.in_units(per_second).is_some());
        let unit = match same {
            true if unit(1_000_000) => TimeUnit::Microsecond,
            true if unit(1_000_000_000) => TimeUnit::Nanosecond,
            _ => return None,
        };
        Some(DataType::Timestamp(unit, zoned.then(|| "UTC".into())))
    };
    if texts.is_empty() {
        DataType::Utf8
    } else if distinct(&texts, whole) {
        DataType::Int64
    } else if distinct(&texts, |text| Date32Type::parse(text).filter(|_| text.len() == 10)) {
        DataType::Date32
    } else {
        stamps().unwrap_or(DataType::Utf8)
    }
}

/// Whether all texts have a value, each one of its own.
fn distinct<T: Eq + Hash>(texts: &HashSet<&str>, value: impl Fn(&str) -> Option<T>) -> bool {
    let mut values = HashSet::with_capacity(texts.len());
    texts.iter().all(|text| value(text).is_some_and(|value| values.insert(value)))
}

fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `2024-01-31 10:00:00`, as Spark and Polars name folders; with or without fraction and zone.
fn stamp(text: &str) -> Option<Stamp> {
    let long = text.len() >= 19 && matches!(text.as_bytes().get(10), Some(b'T' | b' '));
    long.then(|| values::stamp(text.as_bytes(), &Notation::default())).flatten()
}

fn value(
    file: &ListedFile,
    text: Option<String>,
    key: &str,
    data_type: &DataType,
) -> Result<ScalarValue, Error> {
    let Some(text) = text else {
        return ScalarValue::try_from(data_type).map_err(|error| Error::corrupt(&file.path, error));
    };
    ScalarValue::try_from_string(text.clone(), data_type).map_err(|_| Error::Options {
        detail: format!(
            "`{}` is in a folder `{key}={text}`, which is not a value of type {data_type}",
            file.path.display()
        ),
        hint: format!("declare another type of `{key}`, or none"),
    })
}
