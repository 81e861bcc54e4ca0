//! Chooses the overload of a function for given argument types, and the casts of its arguments.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whatever it is, unchanged.
    Any,
    /// One type with the other arguments of this kind.
    Same,
    Text,
    /// Anything, as text.
    Shown,
    Bytes,
    Int,
    Float,
    /// A number of any type, unchanged.
    Number,
    Bool,
    /// A date, or the date of a timestamp.
    Date,
    /// A timestamp with or without time zone, a date, or the text of one.
    Stamp,
    Time,
    Interval,
    Texts,
    /// Any number of further arguments, perhaps none.
    Many(&'static Kind),
}

/// The kinds of arguments that a value fits to, better ones first.
const EXACT: u32 = 0;
const UNKNOWN: u32 = 1;
const WIDENED: u32 = 2;
const READ: u32 = 8;
const SHOWN: u32 = 16;

impl Kind {
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::Any | Self::Same => "any",
            Self::Text => "text",
            Self::Shown => "any",
            Self::Bytes => "bytes",
            Self::Int => "integer",
            Self::Float | Self::Number => "number",
            Self::Bool => "boolean",
            Self::Date => "date",
            Self::Stamp => "timestamp",
            Self::Time => "time",
            Self::Interval => "interval",
            Self::Texts => "text[]",
            Self::Many(kind) => return format!("{}, …", kind.name()),
        };
        name.to_owned()
    }

    /// What the value is cast to, and how far that is from what it is.
    fn fit(self, given: &DataType) -> Option<(u32, DataType)> {
        if let DataType::Dictionary(_, value) = given {
            return self.fit(value);
        }
        let null = *given == DataType::Null;
        match self {
            Self::Any | Self::Same => Some((EXACT, given.clone())),
            Self::Many(kind) => kind.fit(given),
            Self::Number if given.is_numeric() => Some((EXACT, given.clone())),
            _ if null => Some((UNKNOWN, self.target(given)?)),
            _ => Some((self.distance(given)?, self.target(given)?)),
        }
    }

    /// How far a type is from this kind; none when it does not fit.
    fn distance(self, given: &DataType) -> Option<u32> {
        let text = given.is_string();
        let found = match self {
            Self::Text if text => EXACT,
            Self::Text if !given.is_nested() => SHOWN,
            Self::Shown => WIDENED,
            Self::Bytes if given.is_binary() => EXACT,
            Self::Bytes if text => WIDENED,
            Self::Int if given.is_integer() => EXACT,
            Self::Float if given.is_floating() => EXACT,
            Self::Float if given.is_numeric() => WIDENED,
            Self::Bool if *given == DataType::Boolean => EXACT,
            Self::Bool if given.is_integer() => SHOWN,
            Self::Date if matches!(given, DataType::Date32 | DataType::Date64) => EXACT,
            Self::Date if matches!(given, DataType::Timestamp(..)) => WIDENED,
            Self::Stamp if matches!(given, DataType::Timestamp(..)) => EXACT,
            Self::Stamp if matches!(given, DataType::Date32 | DataType::Date64) => WIDENED,
            Self::Time if matches!(given, DataType::Time32(_) | DataType::Time64(_)) => EXACT,
            Self::Interval if matches!(given, DataType::Interval(_) | DataType::Duration(_)) => EXACT,
            Self::Texts if given.is_list() => EXACT,
            Self::Int | Self::Float | Self::Number | Self::Bool if text => READ,
            Self::Date | Self::Stamp | Self::Time | Self::Interval if text => READ,
            _ => return None,
        };
        Some(found)
    }

    /// The Arrow type that the function reads.
    fn target(self, given: &DataType) -> Option<DataType> {
        Some(match self {
            Self::Text | Self::Shown => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Int => DataType::Int64,
            Self::Float | Self::Number => DataType::Float64,
            Self::Bool => DataType::Boolean,
            // Text is read by us, in all the ways people write dates.
            Self::Date | Self::Stamp if given.is_string() => DataType::Utf8,
            Self::Date if matches!(given, DataType::Timestamp(..)) => micros(given),
            Self::Date => DataType::Date32,
            Self::Stamp if *given == DataType::Date32 || *given == DataType::Date64 => DataType::Date32,
            Self::Stamp => micros(given),
            Self::Time => DataType::Time64(TimeUnit::Nanosecond),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Self::Any | Self::Same | Self::Many(_) => return None,
        })
    }
}

fn micros(given: &DataType) -> DataType {
    let zone = if let DataType::Timestamp(_, zone) = given { zone.clone() } else { None };
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

/// The types that the arguments are cast to: those of the form that is nearest, of two equally near the first.
pub(crate) fn choose(forms: &[&[Kind]], given: &[DataType]) -> Option<Vec<DataType>> {
    let mut best: Option<(u32, Vec<DataType>)> = None;
    for form in forms {
        if let Some((distance, types)) = fit_all(form, given)
            && best.as_ref().is_none_or(|(nearest, _)| distance < *nearest)
        {
            best = Some((distance, types));
        }
    }
    best.map(|(_, types)| types)
}

fn fit_all(form: &[Kind], given: &[DataType]) -> Option<(u32, Vec<DataType>)> {
    let (least, rest) = match form.last() {
        Some(Kind::Many(kind)) => (form.len() - 1, Some(**kind)),
        _ => (form.len(), None),
    };
    if given.len() < least || (rest.is_none() && given.len() != least) {
        return None;
    }
    let kind_at = |position: usize| if position < least { form.get(position).copied() } else { rest };
    let same: Vec<DataType> = given
        .iter()
        .enumerate()
        .filter(|(position, _)| kind_at(*position) == Some(Kind::Same))
        .map(|(_, given)| given.clone())
        .collect();
    let common = if same.is_empty() { None } else { Some(type_union_resolution(&same)?) };
    let (mut total, mut types) = (0, Vec::with_capacity(given.len()));
    for (position, given) in given.iter().enumerate() {
        let kind = kind_at(position)?;
        let (distance, fitted) = match &common {
            Some(common) if kind == Kind::Same => (EXACT, common.clone()),
            _ => kind.fit(given)?,
        };
        total += distance;
        types.push(fitted);
    }
    Some((total, types))
}
