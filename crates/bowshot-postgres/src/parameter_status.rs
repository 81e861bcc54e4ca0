//! The settings that clients get when a session begins and whenever they change (ParameterStatus; PostgreSQL manual,
//! "Asynchronous Operations").

use crate::backend_messages;
use crate::startup::SERVER_VERSION;
use arrow::array::timezone::Tz;
use bowshot_api::Session;
use bowshot_sql::postgres::{Reset, Statement};
use bytes::BytesMut;

/// Settings with the same value in every session.
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

/// Settings that a session may change, with their defaults.
const CHANGING: [(&str, &str); 3] =
    [("DateStyle", "ISO, MDY"), ("TimeZone", "UTC"), ("application_name", "")];

/// The values that the client has been sent, in the order of [`CHANGING`].
#[derive(Debug)]
pub(crate) struct ParameterStatus {
    sent: [String; 3],
    /// Whether a statement may have changed something since.
    is_stale: bool,
    zone: Option<Tz>,
    /// The options of the start-up packet, to which RESET goes back.
    startup_options: Vec<(String, String)>,
}

impl ParameterStatus {
    pub(crate) fn new(session: &dyn Session, startup_options: Vec<(String, String)>) -> Self {
        let sent = CHANGING.map(|(name, unknown)| value(session, name).unwrap_or_else(|| unknown.to_owned()));
        let zone = zone(&sent);
        Self { sent, is_stale: false, zone, startup_options }
    }

    /// The options of the start-up packet that a RESET or DISCARD undoes, and that must be set again.
    pub(crate) fn startup_options(&self, statement: &Statement) -> Vec<(String, String)> {
        match &statement.reset {
            Some(Reset::All) => self.startup_options.clone(),
            Some(Reset::Setting(name)) => {
                let same = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
                self.startup_options.iter().filter(same).cloned().collect()
            }
            None => Vec::new(),
        }
    }

    /// Sends all settings at the start of a session.
    pub(crate) fn send_all(&self, out: &mut BytesMut) {
        for (name, value) in FIXED {
            backend_messages::parameter_status(out, name, value);
        }
        for ((name, _), value) in CHANGING.iter().zip(&self.sent) {
            backend_messages::parameter_status(out, name, value);
        }
    }

    /// Notes whether a statement may change a setting.
    pub(crate) fn note_statement(&mut self, statement: &Statement) {
        self.is_stale |= statement.changes_settings;
    }

    /// The time zone of texts; `None` is UTC.
    pub(crate) fn zone(&self, session: &dyn Session) -> Option<Tz> {
        if self.is_stale { Self::new(session, Vec::new()).zone } else { self.zone }
    }

    /// Sends the settings that have changed.
    pub(crate) fn send_changes(&mut self, session: &dyn Session, out: &mut BytesMut) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        for ((name, _), sent) in CHANGING.iter().zip(&mut self.sent) {
            if let Some(value) = value(session, name).filter(|value| value != sent) {
                backend_messages::parameter_status(out, name, &value);
                *sent = value;
            }
        }
        self.zone = zone(&self.sent);
    }
}

fn value(session: &dyn Session, name: &str) -> Option<String> {
    let value = session.setting(name)?;
    // Clients know the name better than the offset.
    let is_utc = name == "TimeZone" && ["+00:00", "+00", "Z", "utc"].contains(&value.as_str());
    Some(if is_utc { "UTC".to_owned() } else { value })
}

fn zone(sent: &[String; 3]) -> Option<Tz> {
    let [_, zone, _] = sent;
    if zone == "UTC" { None } else { zone.parse().ok() }
}
