//! What stands in the place of a masked column: the masks with names, as expressions over it.

use bowshot_api::{Error, Result};
use bowshot_sql::DialectName;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

/// What a mask says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mask {
    /// `'[redacted]'` for texts, nothing for other types.
    Redact,
    /// A number that is the same for the same text.
    Hash,
    Null,
    /// The first and the last characters.
    Partial(u64, u64),
    Expression(String),
}

impl Mask {
    /// Reads what is kept of a mask.
    ///
    /// # Errors
    /// `Syntax` for a text that is no expression.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let expr = bowshot_sql::parse_expression(text, bowshot_sql::Dialect::new(DialectName::Ansi))?;
        Self::of(&expr)
    }

    /// # Errors
    /// `Invalid` for `partial` without its two numbers.
    pub(crate) fn of(expr: &Expr) -> Result<Self> {
        let named = |name: &str| match name.to_ascii_lowercase().as_str() {
            "redact" => Some(Self::Redact),
            "hash" => Some(Self::Hash),
            _ => None,
        };
        match expr {
            Expr::Value(value) if value.value == Value::Null => Ok(Self::Null),
            Expr::Identifier(name) if name.quote_style.is_none() => {
                Ok(named(&name.value).unwrap_or_else(|| Self::Expression(expr.to_string())))
            }
            Expr::Function(call) => {
                let name = call.name.to_string();
                let numbers = numbers(&call.args);
                match (name.to_ascii_lowercase().as_str(), numbers.as_slice()) {
                    ("partial", [first, last]) => Ok(Self::Partial(*first, *last)),
                    ("partial", _) => Err(Error::invalid("`partial` takes two numbers")
                        .with_hint("write `partial(1, 4)` to keep the first and the last four characters")),
                    _ => Ok(Self::Expression(expr.to_string())),
                }
            }
            _ => Ok(Self::Expression(expr.to_string())),
        }
    }

    /// The mask as SQL over a column of a type.
    ///
    /// # Errors
    /// `Invalid` for masks of texts over other types.
    pub(crate) fn sql(&self, column: &str, data_type: &DataType, salt: &str) -> Result<String> {
        let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let name = format!("\"{}\"", column.replace('"', "\"\""));
        let only_texts = |mask: &str| {
            Error::invalid(format!("the mask `{mask}` needs a text column, and `{column}` is {data_type}"))
                .with_hint("use `null`, or an expression of the same type")
        };
        match self {
            Self::Null => Ok("NULL".to_owned()),
            Self::Redact if is_text => {
                Ok(format!("CASE WHEN {name} IS NULL THEN NULL ELSE '[redacted]' END"))
            }
            Self::Redact => Ok("NULL".to_owned()),
            Self::Hash if is_text => {
                let salt = salt.replace('\'', "''");
                Ok(format!("CASE WHEN {name} IS NULL THEN NULL ELSE sha256(concat('{salt}', {name})) END"))
            }
            Self::Hash => Err(only_texts("hash")),
            Self::Partial(first, last) if is_text => {
                let kept = first.saturating_add(*last);
                Ok(format!(
                    "CASE WHEN {name} IS NULL THEN NULL \
                     WHEN char_length({name}) <= {kept} THEN repeat('*', char_length({name})) \
                     ELSE concat(left({name}, {first}), repeat('*', char_length({name}) - {kept}), right({name}, {last})) END"
                ))
            }
            Self::Partial(..) => Err(only_texts("partial")),
            Self::Expression(sql) => Ok(sql.clone()),
        }
    }
}

fn numbers(arguments: &FunctionArguments) -> Vec<u64> {
    let FunctionArguments::List(list) = arguments else { return Vec::new() };
    let number = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse::<u32>().ok().map(u64::from),
            _ => None,
        },
        _ => None,
    };
    list.args.iter().map(number).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_masks_and_everything_else_an_expression() {
        for (text, mask) in [
            ("redact", Mask::Redact),
            ("HASH", Mask::Hash),
            ("NULL", Mask::Null),
            ("partial(0, 4)", Mask::Partial(0, 4)),
            ("\"hash\"", Mask::Expression("\"hash\"".to_owned())),
            ("upper(a)", Mask::Expression("upper(a)".to_owned())),
        ] {
            assert_eq!(Mask::read(text).expect(text), mask, "{text}");
        }
        assert!(Mask::read("partial(1)").is_err());
        assert!(Mask::read("partial(-1, 2)").is_err());
        assert!(Mask::Hash.sql("a", &DataType::Int64, "").is_err());
    }
}
