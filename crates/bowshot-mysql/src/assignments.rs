//! Runs SET: modes of the connection are set here, everything else in the session, which refuses settings that it does not
//! support.

use crate::connection::Connection;
use crate::status::{Failure, Result};
use crate::user_variables::UserValue;
use crate::variables::{literal, session_name, truth, unknown, value};
use bowshot_api::{Error, ErrorKind, OptionValue, Session};
use bowshot_sql::mysql::{AssignedValue, Assignment};
use std::sync::Arc;

/// The variables of the character sets of a connection.
const CHARACTER_SETS: [&str; 3] =
    ["character_set_client", "character_set_connection", "character_set_results"];

impl Connection {
    /// Runs a SET, up to the first assignment that fails.
    pub(crate) async fn assign(&mut self, assignments: &[Assignment]) -> Result<()> {
        for assignment in assignments {
            match assignment {
                Assignment::ReadOnly(read_only) => self.state.read_only = *read_only,
                Assignment::Names(names, collation) => self.set_names(names.as_deref(), collation).await?,
                Assignment::Variable(name, assigned) => self.set_variable(name, assigned).await?,
                Assignment::User(name, assigned) => {
                    let value = self.user_value(assigned)?;
                    self.user_variables.set(name, &value)?;
                }
            }
        }
        Ok(())
    }

    async fn set_names(&mut self, names: Option<&str>, collation: &Option<String>) -> Result<()> {
        let session = Arc::clone(&self.session);
        for variable in CHARACTER_SETS {
            set_option(session.as_ref(), variable, names.map(str::to_owned)).await?;
        }
        if let Some(collation) = collation {
            set_option(session.as_ref(), "collation_connection", Some(collation.clone())).await?;
        }
        Ok(())
    }

    async fn set_variable(&mut self, name: &str, assigned: &AssignedValue) -> Result<()> {
        let text = self.evaluate(assigned)?;
        match name {
            "autocommit" => {
                let is_on = mode(name, text.as_deref(), true)?;
                if is_on && !self.state.autocommit {
                    self.commit_open().await?;
                }
                self.state.autocommit = is_on;
                return Ok(());
            }
            "transaction_read_only" | "tx_read_only" => {
                self.state.read_only = mode(name, text.as_deref(), false)?;
                return Ok(());
            }
            "sql_select_limit" => {
                let limit = text.as_deref().map_or(Ok(u64::MAX), str::parse);
                let unfit = |_| unfit(name, text.as_deref().unwrap_or_default());
                self.state.select_limit = limit.map_err(unfit)?;
                return Ok(());
            }
            _ => {}
        }
        // NULL means no conversion: results are UTF-8.
        if name == "character_set_results" && *assigned == AssignedValue::Null {
            return Ok(());
        }
        let Some(option) = session_name(name) else {
            let message = format!("variable '{name}' is a read only variable");
            return Err(Failure::new(1238, "HY000", message).into());
        };
        // The time zone of the server is that of a new session.
        let text = text.filter(|text| option != "time_zone" || !text.eq_ignore_ascii_case("system"));
        let text = if option == "transaction_isolation" { text.map(|text| level(&text)) } else { text };
        Ok(set_option(self.session.as_ref(), option, text).await.map_err(|failure| named(failure, name))?)
    }

    /// The assigned value; `None` is DEFAULT.
    fn evaluate(&self, assigned: &AssignedValue) -> Result<Option<String>, Failure> {
        Ok(match assigned {
            AssignedValue::Default => None,
            AssignedValue::Null => Some("NULL".to_owned()),
            AssignedValue::Text(text) | AssignedValue::Number(text) => Some(text.clone()),
            AssignedValue::Variable(name) => Some(self.value_of(name)?),
            AssignedValue::User(name) => Some(self.user_variables.text(name)),
            AssignedValue::Joined(parts) => {
                let mut joined = String::new();
                for part in parts {
                    joined.push_str(&self.evaluate(part)?.unwrap_or_default());
                }
                Some(joined)
            }
        })
    }

    /// The value for a user variable.
    fn user_value(&self, assigned: &AssignedValue) -> Result<UserValue, Failure> {
        Ok(match assigned {
            AssignedValue::Null | AssignedValue::Default => UserValue::Null,
            AssignedValue::Number(digits) => UserValue::Number(digits.clone()),
            AssignedValue::User(name) => self.user_variables.get(name),
            AssignedValue::Variable(name) => match literal(name, self.session.as_ref(), self.state)?.as_str()
            {
                "NULL" => UserValue::Null,
                text if text.starts_with('\'') => UserValue::Text(self.value_of(name)?),
                number => UserValue::Number(number.to_owned()),
            },
            AssignedValue::Text(_) | AssignedValue::Joined(_) => {
                UserValue::Text(self.evaluate(assigned)?.unwrap_or_default())
            }
        })
    }

    fn value_of(&self, name: &str) -> Result<String, Failure> {
        Ok(value(name, self.session.as_ref(), self.state)?.unwrap_or_default())
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

/// Names the variable as the client does, not as the session.
fn named(failure: Failure, name: &str) -> Failure {
    if failure.code.0 == 1193 { unknown(name) } else { failure }
}

async fn set_option(session: &dyn Session, name: &str, value: Option<String>) -> Result<(), Failure> {
    let assigned = value.clone().unwrap_or_else(|| "DEFAULT".to_owned());
    let set = session.set_option(name, value.map(OptionValue::String)).await;
    set.map_err(|error: Error| match error.kind() {
        ErrorKind::NotFound => unknown(name),
        ErrorKind::Invalid if CHARACTER_SETS.contains(&name) => {
            Failure::new(1115, "42000", format!("unknown character set: '{assigned}'"))
                .with_hint("texts are UTF-8: `SET NAMES utf8mb4`")
        }
        ErrorKind::Invalid => {
            let failure = unfit(name, &assigned);
            Failure { hint: Some(error.to_string()), ..failure }
        }
        _ => error.into(),
    })
}
