//! What is kept of a function that SQL has made: its definition as text, with what it was written in, as of a view.

use bowshot_sql::{DialectName, FunctionBody, FunctionParameter, FunctionResult, Volatility};
use serde_json::{Value, json};

/// The stored definition of a SQL function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionNote {
    pub parameters: Vec<FunctionParameter>,
    pub returns: FunctionResult,
    /// A query.
    pub body: String,
    pub dialect: DialectName,
    /// Where names that do not say theirs are looked for.
    pub default_catalog: String,
    pub default_schema: String,
    pub volatility: Volatility,
    /// Microseconds since 1970.
    pub made: i64,
}

impl FunctionNote {
    /// The definition, for calls by this name.
    pub fn body<'a>(&'a self, name: &'a str) -> FunctionBody<'a> {
        let Self { parameters, returns, body, dialect, .. } = self;
        FunctionBody { name, parameters, returns, body, dialect: *dialect }
    }

    /// What the function gives, as SQL.
    pub fn result_type(&self) -> Option<String> {
        match &self.returns {
            FunctionResult::Value(data_type) => data_type.clone(),
            FunctionResult::Rows(columns) if columns.is_empty() => Some("TABLE".to_owned()),
            FunctionResult::Rows(columns) => {
                let columns = columns.iter().map(|(name, data_type)| format!("{name} {data_type}"));
                Some(format!("TABLE ({})", columns.collect::<Vec<_>>().join(", ")))
            }
        }
    }

    /// Whether it gives rows.
    pub fn gives_rows(&self) -> bool {
        matches!(self.returns, FunctionResult::Rows(_))
    }

    /// As [`Self::from_json`] reads it.
    pub fn text(&self) -> String {
        let parameters: Vec<Value> = self
            .parameters
            .iter()
            .map(|parameter| json!([parameter.name, parameter.data_type, parameter.default]))
            .collect();
        let (value, rows) = match &self.returns {
            FunctionResult::Value(data_type) => (json!(data_type), Value::Null),
            FunctionResult::Rows(columns) => (Value::Null, json!(columns)),
        };
        json!({
            "parameters": parameters,
            "value": value,
            "rows": rows,
            "body": self.body,
            "dialect": self.dialect.as_str(),
            "catalog": self.default_catalog,
            "schema": self.default_schema,
            "volatility": self.volatility.letter(),
            "made": self.made,
        })
        .to_string()
    }

    pub(crate) fn from_json(note: &Value) -> Option<Self> {
        let text = |key: &str| Some(note.get(key)?.as_str()?.to_owned());
        let parameters = note.get("parameters")?.as_array()?.iter().map(|parameter| {
            let part = |at: usize| parameter.get(at);
            Some(FunctionParameter {
                name: part(0)?.as_str()?.to_owned(),
                data_type: text_or_null(part(1)?)?,
                default: text_or_null(part(2)?)?,
            })
        });
        let returns = match note.get("rows")? {
            Value::Null => FunctionResult::Value(text_or_null(note.get("value")?)?),
            columns => {
                let column = |column: &Value| {
                    Some((column.get(0)?.as_str()?.to_owned(), column.get(1)?.as_str()?.to_owned()))
                };
                FunctionResult::Rows(columns.as_array()?.iter().map(column).collect::<Option<_>>()?)
            }
        };
        Some(Self {
            parameters: parameters.collect::<Option<_>>()?,
            returns,
            body: text("body")?,
            dialect: DialectName::parse(&text("dialect")?)?,
            default_catalog: text("catalog")?,
            default_schema: text("schema")?,
            volatility: Volatility::parse(&text("volatility")?)?,
            made: note.get("made")?.as_i64()?,
        })
    }
}

fn text_or_null(value: &Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        value => value.as_str().map(|text| Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_come_back_as_they_were() {
        let parameter = |name: &str, data_type: Option<&str>, default: Option<&str>| FunctionParameter {
            name: name.to_owned(),
            data_type: data_type.map(str::to_owned),
            default: default.map(str::to_owned),
        };
        let note = FunctionNote {
            parameters: vec![parameter("a", Some("INT"), None), parameter("B\"", None, Some("'x'"))],
            returns: FunctionResult::Value(None),
            body: "SELECT a || \"B\"\"\"".to_owned(),
            dialect: DialectName::Postgres,
            default_catalog: "c".to_owned(),
            default_schema: "s".to_owned(),
            volatility: Volatility::Stable,
            made: -4,
        };
        let rows = FunctionResult::Rows(vec![("x".to_owned(), "TEXT".to_owned())]);
        for returns in [FunctionResult::Value(Some("INT".to_owned())), rows, FunctionResult::Rows(Vec::new())]
        {
            let note = FunctionNote { returns, ..note.clone() };
            let read = serde_json::from_str(&note.text()).ok();
            assert_eq!(read.as_ref().and_then(FunctionNote::from_json), Some(note));
        }
        assert_eq!(FunctionNote::from_json(&json!({ "body": "SELECT 1" })), None);
    }
}
