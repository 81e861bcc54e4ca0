//! The settings of `[traces]`: who gets them, of which calls, and what is in them.

use crate::usage::Usage;
use std::path::PathBuf;
use std::time::Duration;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct TraceSettings {
    /// Address of the collector; empty: there are no traces.
    pub(crate) endpoint: String,
    /// Which share of the calls that no caller has decided about.
    pub(crate) sample_ratio: f64,
    /// File with headers for the collector.
    pub(crate) headers_file: Option<PathBuf>,
    pub(crate) timeout: Duration,
    pub(crate) service_name: String,
    /// Whether texts of statements are in them.
    pub(crate) statements: bool,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            sample_ratio: 1.0,
            headers_file: None,
            timeout: Duration::from_secs(5),
            service_name: "bowshot".to_owned(),
            statements: false,
        }
    }
}

impl TraceSettings {
    /// Whether anybody wants traces.
    pub(crate) fn are_on(&self) -> bool {
        !self.endpoint.is_empty()
    }

    /// Host and port of the collector.
    pub(crate) fn address(&self) -> Option<String> {
        let rest = self.endpoint.strip_prefix("http://")?.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        (has_port && !rest.contains(['/', '@', '?', ' '])).then(|| rest.to_owned())
    }

    /// # Errors
    /// [`Usage`] for an address that cannot be sent to as it says.
    pub(super) fn check(&self) -> Result<(), Usage> {
        if !self.are_on() {
            return Ok(());
        }
        if self.endpoint.starts_with("https://") {
            return Err(Usage::new("traces are sent without encryption, and `traces.endpoint` asks for it").with_hint(
                "run a collector on this machine, name it as `http://127.0.0.1:4317`, and let it send them on encrypted",
            ));
        }
        if self.address().is_none() {
            return Err(Usage::new(format!("`traces.endpoint` cannot be `{}`", self.endpoint))
                .with_hint("write scheme, host and port of a collector that takes OTLP over gRPC: `http://127.0.0.1:4317`"));
        }
        Ok(())
    }

    /// The headers of the file: `name: value`, one a line.
    ///
    /// # Errors
    /// [`Usage`] for a file that cannot be read or understood. What is in it is not repeated, since it may be secret.
    pub(crate) fn headers(&self) -> Result<Vec<(String, String)>, Usage> {
        let Some(path) = &self.headers_file else { return Ok(Vec::new()) };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Usage::new(format!("`traces.headers_file` `{shown}` cannot be read: {error}")))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let header = |(number, line): (usize, &str)| {
            let wrong = || {
                Usage::new(format!("`traces.headers_file` `{shown}`, line {}: no header", number + 1))
                    .with_hint("write one `name: value` on each line")
            };
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
            let is_good = !name.is_empty() && name.bytes().all(is_name) && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if is_good { Ok((name, value.to_owned())) } else { Err(wrong()) }
        };
        lines.map(header).collect()
    }
}
