//! What SET sets: the modes of this connection here, everything else in the session, which refuses what would have to change
//! something and does not.

use crate::connection::Connection;
use crate::set::{Assignment, Value};
use crate::status::{Failure, Result};
use crate::user_variables::UserValue;
use crate::variables::{kept_as, literal, truth, unknown, value};
use bowshot_api::{Error, ErrorKind, OptionValue, Session};
use std::sync::Arc;

/// What the character sets of a connection are called.
const CHARACTER_SETS: [&str; 3] =
    ["character_set_client", "character_set_connection", "character_set_results"];

impl Connection {
    /// Carries out a SET, up to the first assignment that cannot be had.
    pub(crate) async fn assign(&mut self, assignments: &[Assignment]) -> Result<()> {
        for assignment in assignments {
            match assignment {
                Assignment::ReadOnly(read_only) => self.own.read_only = *read_only,
                Assignment::Names(names, collation) => self.set_names(names.as_deref(), collation).await?,
                Assignment::Variable(name, assigned) => self.set_variable(name, assigned).await?,
                Assignment::User(name, assigned) => {
                    let value = self.user_value(assigned)?;
                    self.users.set(name, &value)?;
                }
            }
        }
        Ok(())
    }

    async fn set_names(&mut self, names: Option<&str>, collation: &Option<String>) -> Result<()> {
        let session = Arc::clone(&self.session);
        for variable in CHARACTER_SETS {
            keep(session.as_ref(), variable, names.map(str::to_owned)).await?;
        }
        if let Some(collation) = collation {
            keep(session.as_ref(), "collation_connection", Some(collation.clone())).await?;
        }
        Ok(())
    }

    async fn set_variable(&mut self, name: &str, assigned: &Value) -> Result<()> {
        let text = self.evaluate(assigned)?;
        match name {
            "autocommit" => {
                let is_on = mode(name, text.as_deref(), true)?;
                if is_on && !self.own.autocommit {
                    self.commit_open().await?;
                }
                self.own.autocommit = is_on;
                return Ok(());
            }
            "transaction_read_only" | "tx_read_only" => {
                self.own.read_only = mode(name, text.as_deref(), false)?;
                return Ok(());
            }
            "sql_select_limit" => {
                let limit = text.as_deref().map_or(Ok(u64::MAX), str::parse);
                let unfit = |_| unfit(name, text.as_deref().unwrap_or_default());
                self.own.select_limit = limit.map_err(unfit)?;
                return Ok(());
            }
            _ => {}
        }
        // Results as they are, which is UTF-8.
        if name == "character_set_results" && *assigned == Value::Null {
            return Ok(());
        }
        let Some(kept) = kept_as(name) else {
            let message = format!("variable '{name}' is a read only variable");
            return Err(Failure::new(1238, "HY000", message).into());
        };
        // The server's own zone, which is that of a new session.
        let text = text.filter(|text| kept != "time_zone" || !text.eq_ignore_ascii_case("system"));
        let text = if kept == "transaction_isolation" { text.map(|text| level(&text)) } else { text };
        Ok(keep(self.session.as_ref(), kept, text).await.map_err(|failure| named(failure, name))?)
    }

    /// What is assigned; `None` for the default.
    fn evaluate(&self, assigned: &Value) -> Result<Option<String>, Failure> {
        Ok(match assigned {
            Value::Default => None,
            Value::Null => Some("NULL".to_owned()),
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Variable(name) => Some(self.value_of(name)?),
            Value::User(name) => Some(self.users.text(name)),
            Value::Joined(parts) => {
                let mut joined = String::new();
                for part in parts {
                    joined.push_str(&self.evaluate(part)?.unwrap_or_default());
                }
                Some(joined)
            }
        })
    }

    /// What a variable of the client's own gets.
    fn user_value(&self, assigned: &Value) -> Result<UserValue, Failure> {
        Ok(match assigned {
            Value::Null | Value::Default => UserValue::Null,
            Value::Number(digits) => UserValue::Number(digits.clone()),
            Value::User(name) => self.users.get(name),
            Value::Variable(name) => match literal(name, self.session.as_ref(), self.own)?.as_str() {
                "NULL" => UserValue::Null,
                text if text.starts_with('\'') => UserValue::Text(self.value_of(name)?),
                number => UserValue::Number(number.to_owned()),
            },
            Value::Text(_) | Value::Joined(_) => {
                UserValue::Text(self.evaluate(assigned)?.unwrap_or_default())
            }
        })
    }

    fn value_of(&self, name: &str) -> Result<String, Failure> {
        Ok(value(name, self.session.as_ref(), self.own)?.unwrap_or_default())
    }
}

/// A truth value, or the default.
fn mode(name: &str, text: Option<&str>, default: bool) -> Result<bool, Failure> {
    match text {
        None => Ok(default),
        Some(text) => truth(text).ok_or_else(|| unfit(name, text)),
    }
}

/// Levels are written with blanks or with hyphens.
fn level(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', " ")
}

fn unfit(name: &str, value: &str) -> Failure {
    Failure::new(1231, "42000", format!("variable '{name}' can't be set to the value of '{value}'"))
}

/// A name that only this front end has, in the place of the session's own.
fn named(failure: Failure, name: &str) -> Failure {
    if failure.code.0 == 1193 { unknown(name) } else { failure }
}

async fn keep(session: &dyn Session, name: &str, value: Option<String>) -> Result<(), Failure> {
    let shown = value.clone().unwrap_or_else(|| "DEFAULT".to_owned());
    let kept = session.set_option(name, value.map(OptionValue::String)).await;
    kept.map_err(|error: Error| match error.kind() {
        ErrorKind::NotFound => unknown(name),
        ErrorKind::Invalid if CHARACTER_SETS.contains(&name) => {
            Failure::new(1115, "42000", format!("unknown character set: '{shown}'"))
                .with_hint("texts are UTF-8: `SET NAMES utf8mb4`")
        }
        ErrorKind::Invalid => {
            let failure = unfit(name, &shown);
            Failure { hint: Some(error.to_string()), ..failure }
        }
        _ => error.into(),
    })
}
