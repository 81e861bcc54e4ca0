//! What a column says of itself: how it numbers or computes its values, and what makes no difference here.

use bowshot_api::{Error, Result};
use bowshot_tables::{Identity, IdentityKind};
use datafusion::sql::sqlparser::ast::{
    ColumnOption, DataType as SqlType, Expr, GeneratedAs, IdentityPropertyFormatKind, IdentityPropertyKind,
    SequenceOptions, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::tokenizer::Token;
use uuid::Uuid;

/// What an option of a column is.
pub(super) enum Own {
    /// Nothing that makes a difference.
    Nothing,
    Identity(Identity),
    /// The SQL of the values.
    Generated(String),
    /// Something else.
    Option(Box<ColumnOption>),
}

/// The type of a column that `SERIAL` and its like make, which numbers itself.
pub(super) fn serial(data_type: &SqlType) -> Option<SqlType> {
    let SqlType::Custom(name, modifiers) = data_type else { return None };
    let [part] = name.0.as_slice() else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    match part.as_ident()?.value.to_ascii_uppercase().as_str() {
        "SMALLSERIAL" | "SERIAL2" => Some(SqlType::SmallInt(None)),
        "SERIAL" | "SERIAL4" => Some(SqlType::Integer(None)),
        "BIGSERIAL" | "SERIAL8" => Some(SqlType::BigInt(None)),
        _ => None,
    }
}

/// A new counter.
pub(super) fn identity(column: &str, (start, step): (i64, i64), kind: IdentityKind) -> Identity {
    Identity { column: column.to_owned(), id: Uuid::new_v4(), start, step, kind }
}

/// Sorts an option.
///
/// # Errors
/// `Unsupported` for what would change what the column means.
pub(super) fn own(column: &str, option: ColumnOption) -> Result<Own> {
    Ok(match option {
        ColumnOption::DialectSpecific(tokens) => by_words(column, &tokens)?,
        ColumnOption::CharacterSet(_) => Own::Nothing,
        ColumnOption::Collation(name) => {
            check_collation(&name.to_string())?;
            Own::Nothing
        }
        ColumnOption::Identity(
            IdentityPropertyKind::Autoincrement(property) | IdentityPropertyKind::Identity(property),
        ) => {
            let from = match &property.parameters {
                None => (1, 1),
                Some(
                    IdentityPropertyFormatKind::FunctionCall(of)
                    | IdentityPropertyFormatKind::StartAndIncrement(of),
                ) => (number(&of.seed)?, number(&of.increment)?),
            };
            Own::Identity(identity(column, checked(from)?, IdentityKind::ByDefault))
        }
        ColumnOption::Generated { generation_expr: Some(sql), .. } => Own::Generated(sql.to_string()),
        ColumnOption::Generated { generated_as, sequence_options, .. } => {
            let from = sequence(sequence_options.as_deref().unwrap_or_default())?;
            let kind = match generated_as {
                GeneratedAs::Always => IdentityKind::Always,
                _ => IdentityKind::ByDefault,
            };
            Own::Identity(identity(column, from, kind))
        }
        ColumnOption::OnUpdate(_) => {
            return Err(Error::unsupported("ON UPDATE of a column is not supported")
                .with_hint("set the column in the UPDATE"));
        }
        other => Own::Option(Box::new(other)),
    })
}

fn by_words(column: &str, tokens: &[Token]) -> Result<Own> {
    let words: Vec<String> = tokens.iter().map(|token| token.to_string().to_ascii_uppercase()).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["AUTO_INCREMENT" | "AUTOINCREMENT"] => {
            Ok(Own::Identity(identity(column, (1, 1), IdentityKind::ByDefault)))
        }
        ["ASC" | "DESC"] => Ok(Own::Nothing),
        other => Err(Error::unsupported(format!("`{}` of a column is not supported", other.join(" ")))),
    }
}

/// Texts are compared by their bytes: a collation that says something else would give other answers.
fn check_collation(name: &str) -> Result<()> {
    let plain = name.trim_matches(['"', '\'', '`']).to_ascii_lowercase();
    if matches!(plain.as_str(), "c" | "posix" | "default" | "binary" | "ucs_basic" | "c.utf-8" | "c.utf8")
        || plain.ends_with("_bin")
    {
        return Ok(());
    }
    Err(Error::unsupported(format!("collation {name} is not supported"))
        .with_hint("texts are compared by their bytes: use \"C\", and lower() where case does not count"))
}

/// Start and step of an identity.
pub(super) fn sequence(options: &[SequenceOptions]) -> Result<(i64, i64)> {
    let (mut start, mut step) = (1, 1);
    for option in options {
        match option {
            SequenceOptions::StartWith(value, _) => start = number(value)?,
            SequenceOptions::IncrementBy(value, _) => step = number(value)?,
            SequenceOptions::Cache(_)
            | SequenceOptions::Cycle(true)
            | SequenceOptions::MinValue(_)
            | SequenceOptions::MaxValue(None) => {}
            other => {
                return Err(Error::unsupported(format!("`{other}` of an identity is not supported"))
                    .with_hint("it takes START WITH and INCREMENT BY"));
            }
        }
    }
    checked((start, step))
}

fn checked((start, step): (i64, i64)) -> Result<(i64, i64)> {
    if step == 0 { Err(Error::invalid("an identity cannot go on by 0")) } else { Ok((start, step)) }
}

pub(super) fn number(value: &Expr) -> Result<i64> {
    let found = match value {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr)?.checked_neg(),
        _ => None,
    };
    found.ok_or_else(|| Error::invalid(format!("`{value}` is no whole number")))
}
