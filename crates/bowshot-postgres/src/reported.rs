//! Settings that a client is told of when it begins, and whenever they change (PostgreSQL manual, "Asynchronous Operations",
//! ParameterStatus).

use crate::backend;
use crate::lex::{Token, tokens};
use crate::startup::SERVER_VERSION;
use crate::statement::verb;
use arrow::array::timezone::Tz;
use bowshot_api::Session;
use bytes::BytesMut;

/// What is the same for everybody.
const FIXED: [(&str, &str); 10] = [
    ("server_version", SERVER_VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("IntervalStyle", "postgres"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "off"),
    ("in_hot_standby", "off"),
    ("default_transaction_read_only", "off"),
    ("scram_iterations", "4096"),
];

/// What a session may set, with what it is if that is not known.
const CHANGING: [(&str, &str); 3] =
    [("DateStyle", "ISO, MDY"), ("TimeZone", "UTC"), ("application_name", "")];

/// What a client has been told last.
#[derive(Debug)]
pub(crate) struct Reported {
    told: [String; 3],
    /// Whether a statement may have changed something since.
    is_stale: bool,
    zone: Option<Tz>,
    /// What its client has set when it began, which is what RESET goes back to.
    begun_with: Vec<(String, String)>,
}

impl Reported {
    pub(crate) fn new(session: &dyn Session, begun_with: Vec<(String, String)>) -> Self {
        let told = CHANGING.map(|(name, unknown)| value(session, name).unwrap_or_else(|| unknown.to_owned()));
        let zone = zone(&told);
        Self { told, is_stale: false, zone, begun_with }
    }

    /// What has to be set again behind a statement that sets values back.
    pub(crate) fn begun_with(&self, sql: &str) -> Vec<(String, String)> {
        let mut words = tokens(sql);
        let is = |token: Option<Token<'_>>, word: &str| token.is_some_and(|token| token.is(word));
        let (first, second) = (words.next(), words.next());
        let all = is(second, "ALL");
        match second {
            _ if all && (is(first, "DISCARD") || is(first, "RESET")) => self.begun_with.clone(),
            Some(name) if is(first, "RESET") => {
                let same = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name.text);
                self.begun_with.iter().filter(same).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tells all to a client that begins.
    pub(crate) fn tell(&self, out: &mut BytesMut) {
        for (name, value) in FIXED {
            backend::parameter_status(out, name, value);
        }
        for ((name, _), value) in CHANGING.iter().zip(&self.told) {
            backend::parameter_status(out, name, value);
        }
    }

    /// Looks at what a statement may change.
    pub(crate) fn ran(&mut self, sql: &str) {
        let sets = || sql.as_bytes().windows(10).any(|part| part.eq_ignore_ascii_case(b"set_config"));
        let changes = ["SET", "RESET", "DISCARD", "COMMIT", "END", "ROLLBACK", "ABORT"];
        self.is_stale |= changes.contains(&verb(sql).as_str()) || sets();
    }

    /// The zone of texts; none is UTC.
    pub(crate) fn zone(&self, session: &dyn Session) -> Option<Tz> {
        if self.is_stale { Self::new(session, Vec::new()).zone } else { self.zone }
    }

    /// Tells what has changed.
    pub(crate) fn tell_changes(&mut self, session: &dyn Session, out: &mut BytesMut) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        for ((name, _), told) in CHANGING.iter().zip(&mut self.told) {
            if let Some(value) = value(session, name).filter(|value| value != told) {
                backend::parameter_status(out, name, &value);
                *told = value;
            }
        }
        self.zone = zone(&self.told);
    }
}

fn value(session: &dyn Session, name: &str) -> Option<String> {
    let value = session.setting(name)?;
    // Clients know the name of the zone better than its distance.
    let is_utc = name == "TimeZone" && ["+00:00", "+00", "Z", "utc"].contains(&value.as_str());
    Some(if is_utc { "UTC".to_owned() } else { value })
}

fn zone(told: &[String; 3]) -> Option<Tz> {
    let [_, zone, _] = told;
    if zone == "UTC" { None } else { zone.parse().ok() }
}
