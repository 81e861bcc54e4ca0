//! What exactly is wrong, of errors that DataFusion, Arrow and our functions in it report: from their types where these tell,
//! else from words of the message. This is the only place that reads messages.

use crate::error::is_about_a_pattern;
use bowshot_api::{ErrorKind, Reason};
use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// The reason of an error, as far as it is known; `message` is what the user will read.
pub(crate) fn reason_of(root: &DataFusionError, kind: ErrorKind, message: &str) -> Option<Reason> {
    match root {
        DataFusionError::SchemaError(schema, _) => Some(match schema.as_ref() {
            SchemaError::FieldNotFound { .. } => Reason::UndefinedColumn,
            SchemaError::AmbiguousReference { .. } => Reason::AmbiguousColumn,
            SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => {
                Reason::DuplicateColumn
            }
        }),
        DataFusionError::ResourcesExhausted(_) => Some(Reason::InsufficientResources),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::DivideByZero => Some(Reason::DivisionByZero),
            ArrowError::ArithmeticOverflow(_) => Some(Reason::OutOfRange),
            ArrowError::MemoryError(_) => Some(Reason::InsufficientResources),
            _ => worded(kind, message),
        },
        DataFusionError::External(error) if is_about_a_pattern(&error.to_string()) => {
            Some(Reason::InvalidPattern)
        }
        _ => worded(kind, message),
    }
}

/// Words of a message, and what they mean; the first row that fits counts.
type Row = (&'static [&'static str], Reason);

const INVALID: &[Row] = &[
    (&["divi", "zero"], Reason::DivisionByZero),
    (&["by zero"], Reason::DivisionByZero),
    (&["regular expression"], Reason::InvalidPattern),
    (&["regex"], Reason::InvalidPattern),
    (&["date", "out of range"], Reason::DatetimeOutOfRange),
    (&["time", "out of range"], Reason::DatetimeOutOfRange),
    (&["interval", "out of range"], Reason::DatetimeOutOfRange),
    (&["a time of day ends"], Reason::DatetimeOutOfRange),
    (&["has no year before 1"], Reason::DatetimeOutOfRange),
    (&["there is no infinite"], Reason::DatetimeOutOfRange),
    (&["nan or infinity"], Reason::OutOfRange),
    (&["overflow"], Reason::OutOfRange),
    (&["out of range"], Reason::OutOfRange),
    (&["can't cast value"], Reason::OutOfRange),
    (&["too large to store"], Reason::OutOfRange),
    (&["more than one row"], Reason::CardinalityViolation),
    (&["not a value of type date"], Reason::InvalidDatetime),
    (&["not a value of type time"], Reason::InvalidDatetime),
    (&["not a value of type interval"], Reason::InvalidDatetime),
    (&["error parsing timestamp"], Reason::InvalidDatetime),
    (&["error parsing date"], Reason::InvalidDatetime),
    (&["is not a date or timestamp"], Reason::InvalidDatetime),
    (&["does not fit the pattern"], Reason::InvalidDatetime),
    (&["invalid input syntax for type date"], Reason::InvalidDatetime),
    (&["invalid input syntax for type time"], Reason::InvalidDatetime),
    (&["invalid input syntax for type interval"], Reason::InvalidDatetime),
    (&["not a value of type"], Reason::InvalidText),
    (&["invalid input syntax"], Reason::InvalidText),
    (&["is not an integer"], Reason::InvalidText),
    (&["is not a number"], Reason::InvalidText),
    (&["cannot parse"], Reason::InvalidText),
    (&["failed to parse"], Reason::InvalidText),
    (&["column", "ambiguous"], Reason::AmbiguousColumn),
    (&["ambiguous reference"], Reason::AmbiguousColumn),
    (&["column", "not found"], Reason::UndefinedColumn),
    (&["column", "does not exist"], Reason::UndefinedColumn),
    (&["column", "twice"], Reason::DuplicateColumn),
    (&["function", "not found"], Reason::UndefinedFunction),
    (&["function", "does not exist"], Reason::UndefinedFunction),
    (&["no function matches"], Reason::UndefinedFunction),
    (&["table", "not found"], Reason::UndefinedTable),
    (&["group by"], Reason::Grouping),
    (&["no such operator"], Reason::UndefinedOperator),
    (&["cannot be compared"], Reason::UndefinedOperator),
    (&["unsupported cast"], Reason::CannotCoerce),
    (&["casting from"], Reason::CannotCoerce),
    (&["cannot cast value"], Reason::InvalidText),
    (&["cannot cast"], Reason::CannotCoerce),
    (&["cannot be cast"], Reason::CannotCoerce),
    (&["cannot be used as"], Reason::CannotCoerce),
    (&["cannot coerce"], Reason::CannotCoerce),
    (&["failed to coerce"], Reason::UndefinedFunction),
];

const NOT_FOUND: &[Row] = &[
    (&["column"], Reason::UndefinedColumn),
    (&["function"], Reason::UndefinedFunction),
    (&["resolve schema"], Reason::UndefinedSchema),
    (&["resolve catalog"], Reason::UndefinedCatalog),
    (&["table"], Reason::UndefinedTable),
    (&["view"], Reason::UndefinedTable),
];

/// The reason of the first row all of whose words are in the message, outside of names and values in quotes.
fn worded(kind: ErrorKind, message: &str) -> Option<Reason> {
    let rows = match kind {
        ErrorKind::Invalid => INVALID,
        ErrorKind::NotFound => NOT_FOUND,
        _ => return None,
    };
    let text: String = message.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    rows.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_the_reason_and_names_do_not() {
        for (kind, message, expected) in [
            (ErrorKind::NotFound, "table `column` not found", Some(Reason::UndefinedTable)),
            (ErrorKind::NotFound, "failed to resolve schema: `table`", Some(Reason::UndefinedSchema)),
            (ErrorKind::Invalid, "divide by zero", Some(Reason::DivisionByZero)),
            (ErrorKind::Invalid, "division by zero", Some(Reason::DivisionByZero)),
            (ErrorKind::Invalid, "bigint out of range", Some(Reason::OutOfRange)),
            (ErrorKind::Invalid, "date field value out of range: 1", Some(Reason::DatetimeOutOfRange)),
            (ErrorKind::Invalid, "`x` is not a value of type bigint", Some(Reason::InvalidText)),
            (ErrorKind::Invalid, "`x` is not a value of type date", Some(Reason::InvalidDatetime)),
            (ErrorKind::Invalid, "function `f` does not exist", Some(Reason::UndefinedFunction)),
            (ErrorKind::Invalid, "`overflow` makes no sense", None),
            (ErrorKind::Internal, "table not found", None),
        ] {
            assert_eq!(worded(kind, message), expected, "{message}");
        }
    }
}
