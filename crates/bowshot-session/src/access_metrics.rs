//! Metrics of access checks and logins; the engine counts policy decisions (`authorize/decision.rs`).
//!
//! | name | kind | labels | meaning |
//! |---|---|---|---|
//! | `bowshot_access_decisions_total` | counter | `statement`, `decision` | what the rights said of statements, by their first word |
//! | `bowshot_logins_total` | counter | `scheme`, `outcome` | credentials that were shown |
//! | `bowshot_audit_lines_total` | counter | `outcome` | lines of the audit trail: written, or lost |

use bowshot_api::{Credentials, Error, ErrorKind, Principal, Result};

const DECISIONS: &str = "bowshot_access_decisions_total";
const LOGINS: &str = "bowshot_logins_total";
const LINES: &str = "bowshot_audit_lines_total";

/// First words of statements that are label values. Other words of users must not become labels.
const WORDS: [&str; 22] = [
    "select", "with", "values", "table", "insert", "update", "delete", "merge", "copy", "create", "alter",
    "drop", "truncate", "grant", "revoke", "show", "describe", "explain", "set", "attach", "call", "refresh",
];

pub(crate) fn describe() {
    metrics::describe_counter!(DECISIONS, "Access decisions on statements, by first keyword.");
    metrics::describe_counter!(LOGINS, "Login attempts, by scheme and outcome.");
    metrics::describe_counter!(LINES, "Lines of the audit trail, written and lost.");
}

pub(crate) fn decided(sql: &str, decision: &'static str) {
    metrics::counter!(DECISIONS, "statement" => word(sql), "decision" => decision).increment(1);
}

pub(crate) fn line(written: bool) {
    let outcome = if written { "written" } else { "lost" };
    metrics::counter!(LINES, "outcome" => outcome).increment(1);
}

pub(crate) fn login(scheme: &'static str, found: std::result::Result<&Principal, &Error>) {
    let outcome = match found.map_err(Error::kind) {
        Ok(_) => "accepted",
        Err(ErrorKind::Unauthenticated) => "refused",
        Err(_) => "failed",
    };
    count(scheme, outcome);
}

fn count(scheme: &'static str, outcome: &'static str) {
    metrics::counter!(LOGINS, "scheme" => scheme, "outcome" => outcome).increment(1);
}

/// Counts each login once: by its outcome, or as abandoned when its caller leaves.
pub(crate) struct Attempt<'a> {
    credentials: &'a Credentials,
    is_token: bool,
    is_answered: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(credentials: &'a Credentials, is_token: bool) -> Self {
        Self { credentials, is_token, is_answered: false }
    }

    pub(crate) fn answer(mut self, found: &Result<Principal>) {
        self.is_answered = true;
        // A request without credentials is only the start of a login.
        if found.is_ok() || !matches!(self.credentials, Credentials::Anonymous) {
            login(scheme(self.credentials, self.is_token, found.as_ref().ok()), found.as_ref());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            count(scheme(self.credentials, self.is_token, None), "abandoned");
        }
    }
}

/// The kind of credentials, as far as the credentials and the principal tell.
fn scheme(credentials: &Credentials, is_token: bool, found: Option<&Principal>) -> &'static str {
    let claims = found.and_then(|principal| principal.claims.as_ref());
    match credentials {
        _ if is_token && claims.is_some() => "jwt",
        _ if is_token => "token",
        Credentials::Certificate { .. } => "certificate",
        // Without users tokens are ignored.
        Credentials::Anonymous | Credentials::Bearer(_) => "none",
        Credentials::Password { .. } if claims.is_some() => "directory",
        Credentials::Password { .. } => "password",
    }
}

fn word(sql: &str) -> &'static str {
    let text = sql.trim_start().trim_start_matches('(').trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let first = text.get(..end).unwrap_or_default();
    WORDS.into_iter().find(|word| word.eq_ignore_ascii_case(first)).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_list() {
        for (sql, expected) in [
            ("SELECT 1", "select"),
            ("  (select 1)", "select"),
            ("insert into t values (1)", "insert"),
            ("Grant;", "grant"),
            ("", "other"),
            ("é", "other"),
            ("selection of what users write", "other"),
        ] {
            assert_eq!(word(sql), expected, "{sql}");
        }
    }
}
