//! DoPut to the path `models`, name: creates a model from a file in a binary column. It runs CREATE MODEL over the
//! rows, with the access rights, limits, transactions and log of that statement.

use crate::caller::Caller;
use crate::put::update_result;
use crate::stream::drain;
use crate::ticket::QueryTicket;
use crate::upload::{Rows, Upload};
use bowshot_api::{Error, Input, Request, Result};
use bytes::Bytes;
use std::collections::HashMap;

/// Name of the rows in the statement.
const INPUT: &str = "input";
/// Allowed schema metadata.
const IF_EXISTS: &str = "if_exists";
const FORMAT: &str = "format";

pub(crate) fn model(path: &[String]) -> Option<&str> {
    match path {
        [service, model] if service == "models" => Some(model),
        _ => None,
    }
}

/// Creates a model from an uploaded file; returns the metadata of the result.
pub(crate) async fn make(caller: &Caller, model: &str, upload: Upload) -> Result<Bytes> {
    // One message may grow by its compression, but not without bounds.
    let max_bytes = caller.server().limits().max_message_bytes.saturating_mul(2);
    let rows = upload.batches(max_bytes).await?;
    let sql = statement(model, rows.schema().metadata())?;
    let session = caller.session().await?;
    let request = Request::sql(sql);
    let input = Input { name: INPUT.to_owned(), ordered: true, batch_rows: None, rows };
    let answer = session.exchange(&request, input).await?;
    let (query, compression) = (answer.query, answer.layout.compression);
    let ticket = QueryTicket { query, partition: 0, compression, voucher: Bytes::new() };
    drain(caller, ticket).await?;
    Ok(update_result(None))
}

/// The statement for the schema's metadata. Unknown options are errors: a misspelled one must not be ignored.
fn statement(model: &str, options: &HashMap<String, String>) -> Result<String> {
    let (mut create, mut format) = ("CREATE MODEL", String::new());
    for (name, value) in options {
        match (name.as_str(), value.as_str()) {
            (IF_EXISTS, "fail") => {}
            (IF_EXISTS, "replace") => create = "CREATE OR REPLACE MODEL",
            (IF_EXISTS, "keep") => create = "CREATE MODEL IF NOT EXISTS",
            (FORMAT, "xgboost" | "lightgbm" | "onnx") => format = format!(" FORMAT {value}"),
            _ => {
                return Err(Error::invalid(format!("invalid option `{name}` of a model"))
                    .with_hint("the metadata of the schema may have `if_exists` (`fail`, `replace`, `keep`) and `format` (`xgboost`, `lightgbm`, `onnx`)"));
            }
        }
    }
    let name = words(model)?;
    Ok(format!("{create} {name} FROM {INPUT}{format}"))
}

/// The model name as SQL: `schema.name`, quoted if needed. Anything else is refused.
fn words(model: &str) -> Result<&str> {
    let mut quoted = false;
    let fits = model.chars().all(|sign| {
        if sign == '"' {
            quoted = !quoted;
            return true;
        }
        quoted || sign.is_alphanumeric() || matches!(sign, '_' | '.' | '$')
    });
    if !fits || quoted || model.is_empty() {
        return Err(Error::invalid(format!("invalid model name `{model}`")).with_hint(
            "write it as in SQL: put names with capital letters or special characters in double quotes",
        ));
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(model: &str, options: &[(&str, &str)]) -> String {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        statement(model, &options).unwrap_or_else(|error| error.message().to_owned())
    }

    #[test]
    fn options_become_the_statement() {
        for (model, options, expected) in [
            ("m", &[][..], "CREATE MODEL m FROM input"),
            ("s.m", &[("if_exists", "replace")], "CREATE OR REPLACE MODEL s.m FROM input"),
            (
                "\"My model\"",
                &[("if_exists", "keep"), ("format", "onnx")],
                "CREATE MODEL IF NOT EXISTS \"My model\" FROM input FORMAT onnx",
            ),
            ("m", &[("if_exists", "x")], "invalid option `if_exists` of a model"),
            ("m", &[("pandas", "{}")], "invalid option `pandas` of a model"),
            ("m FROM 'x'", &[], "invalid model name `m FROM 'x'`"),
            ("m\"", &[], "invalid model name `m\"`"),
            ("m;--", &[], "invalid model name `m;--`"),
            ("", &[], "invalid model name ``"),
        ] {
            assert_eq!(told(model, options), expected);
        }
    }

    #[test]
    fn only_two_words_are_the_path_of_a_model() {
        let path = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(model(&path(&["models", "m"])), Some("m"));
        assert_eq!(model(&path(&["bowshot", "models", "m"])), None);
        assert_eq!(model(&path(&["models"])), None);
    }
}
