//! Statements prepared with SQL `PREPARE`: texts, which each EXECUTE plans again.

use bowshot_api::{Error, ErrorKind, Limits, Reason, Result};
use bowshot_system_catalog::client::NamedStatement;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct NamedStatements(Mutex<HashMap<String, NamedStatement>>);

impl NamedStatements {
    /// Adds a statement.
    ///
    /// # Errors
    /// `AlreadyExists`; `LimitReached` when the session would have too many, or too large ones.
    pub(crate) fn add(&self, name: &str, sql: &str, types: &[String], limits: &Limits) -> Result<()> {
        let mut named = self.0.lock();
        if named.contains_key(name) {
            let message = format!("prepared statement `{name}` exists");
            return Err(Error::new(ErrorKind::AlreadyExists, message)
                .with_reason(Reason::DuplicateStatement)
                .with_hint(format!("send `DEALLOCATE {name}` first")));
        }
        if named.len() >= limits.max_prepared_statements {
            let message =
                format!("the session has {} named prepared statements, which is the limit", named.len());
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("deallocate some, or raise `limits.max_prepared_statements`"));
        }
        let bytes = |name: &str, statement: &NamedStatement| name.len() + statement.sql.len();
        let held: usize = named.iter().map(|(name, statement)| bytes(name, statement)).sum();
        if held.saturating_add(name.len()).saturating_add(sql.len()) > limits.max_prepared_bytes {
            return Err(Error::new(
                ErrorKind::LimitReached,
                "prepared statements of this session are too large",
            )
            .with_hint("deallocate some, or raise `limits.max_prepared_bytes`"));
        }
        let statement = NamedStatement { sql: Arc::from(sql), types: Arc::new(types.to_vec()) };
        named.insert(name.to_owned(), statement);
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<NamedStatement> {
        self.0.lock().get(name).cloned()
    }

    /// Removes one, or all.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn remove(&self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.clear(),
            Some(name) => {
                let removed = self.0.lock().remove(name);
                removed.ok_or_else(|| {
                    Error::not_found(format!("prepared statement `{name}` not found"))
                        .with_reason(Reason::UndefinedStatement)
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once_and_bounded() {
        let named = NamedStatements::default();
        let limits = Limits { max_prepared_statements: 2, ..Limits::default() };
        named.add("a", "SELECT 1", &[], &limits).expect("is free");
        assert_eq!(
            named.add("a", "SELECT 2", &[], &limits).expect_err("taken").kind(),
            ErrorKind::AlreadyExists
        );
        named.add("b", "SELECT 2", &[], &limits).expect("is free");
        assert_eq!(
            named.add("c", "SELECT 3", &[], &limits).expect_err("full").kind(),
            ErrorKind::LimitReached
        );
        assert!(named.get("b").is_some());
        named.remove(Some("b")).expect("is there");
        assert_eq!(named.remove(Some("b")).expect_err("gone").kind(), ErrorKind::NotFound);
        named.remove(None).expect("all go");
        assert!(named.get("a").is_none());
    }
}
