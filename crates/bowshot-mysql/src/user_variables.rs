//! User variables: `SET @name = value`. Statements get their values in the place of the names.

use crate::status::Failure;
use bowshot_sql::mysql::quoted_text;
use std::collections::BTreeMap;

/// Variables of one connection.
const MAX_VARIABLES: usize = 1_000;
/// The longest value, in bytes.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct UserVariables(BTreeMap<String, UserValue>);

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserValue {
    Null,
    Number(String),
    Text(String),
}

impl UserValue {
    /// As SQL writes it.
    fn literal(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Number(digits) => digits.clone(),
            Self::Text(text) => quoted_text(text),
        }
    }
}

impl UserVariables {
    /// # Errors
    /// For too many variables, and for values that are too long.
    pub(crate) fn set(&mut self, name: &str, value: &UserValue) -> Result<(), Failure> {
        if value.literal().len() > MAX_BYTES || (self.0.len() >= MAX_VARIABLES && !self.0.contains_key(name))
        {
            let message = format!(
                "variables of users are limited: {MAX_VARIABLES} of them, each with {MAX_BYTES} bytes at most"
            );
            return Err(Failure::new(1105, "HY000", message)
                .with_hint("pass values as parameters of a prepared statement"));
        }
        self.0.insert(name.to_owned(), value.clone());
        Ok(())
    }

    /// The value of a variable, NULL if it was not set.
    pub(crate) fn get(&self, name: &str) -> UserValue {
        self.0.get(name).cloned().unwrap_or(UserValue::Null)
    }

    /// The value as SQL writes it.
    pub(crate) fn literal(&self, name: &str) -> String {
        self.get(name).literal()
    }

    /// The value as text.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.get(name) {
            UserValue::Null => "NULL".to_owned(),
            UserValue::Number(text) | UserValue::Text(text) => text,
        }
    }
}
