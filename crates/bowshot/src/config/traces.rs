//! The settings of `[traces]`: who gets them, of which calls, and what is in them.

use crate::usage::Usage;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

bowshot_api::defaults! {
    #[derive(Debug, Clone)]
    pub(crate) struct TraceSettings {
        /// Address of the collector; empty: there are no traces.
        pub(crate) endpoint: String = String::new(),
        /// Which share of the calls that no caller has decided about.
        pub(crate) sample_ratio: f64 = 1.0,
        /// Who may vouch for a collector at `https://`; nobody is named: the authorities of this machine.
        pub(crate) ca_file: Option<PathBuf> = None,
        /// File with headers for the collector.
        pub(crate) headers_file: Option<PathBuf> = None,
        pub(crate) timeout: Duration = Duration::from_secs(5),
        pub(crate) service_name: String = "bowshot".to_owned(),
        /// Whether texts of statements are in them.
        pub(crate) statements: bool = false,
    }
}

impl TraceSettings {
    /// Whether anybody wants traces.
    pub(crate) fn are_on(&self) -> bool {
        !self.endpoint.is_empty()
    }

    /// Host and port of the collector.
    pub(crate) fn address(&self) -> Option<String> {
        let (scheme, rest) = self.endpoint.split_once("://")?;
        let rest = rest.trim_end_matches('/');
        let has_port =
            rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let is_good =
            matches!(scheme, "http" | "https") && has_port && !rest.contains(['/', '@', '?', '#', ' ']);
        is_good.then(|| rest.to_owned())
    }

    /// Whether the collector has to prove who it is, and nobody on the way can read what is sent.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.endpoint.starts_with("https://")
    }

    /// Whether nothing that is sent leaves this machine.
    fn is_here(&self) -> bool {
        let Some(address) = self.address() else { return false };
        let host = address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// # Errors
    /// [`Usage`] for an address that cannot be sent to as it says.
    pub(super) fn check(&self) -> Result<(), Usage> {
        if !self.are_on() {
            return Ok(());
        }
        if self.address().is_none() {
            return Err(Usage::new(format!("`traces.endpoint` cannot be `{}`", self.endpoint)).with_hint(
                "write the scheme, host and port of a collector for OTLP over gRPC: `http://127.0.0.1:4317`",
            ));
        }
        if self.headers_file.is_some() && !self.is_encrypted() && !self.is_here() {
            return Err(Usage::new(
                "the headers in `traces.headers_file` would be sent unencrypted to `traces.endpoint`",
            )
            .with_hint("use `https://` for the collector, or run one on this machine"));
        }
        if self.ca_file.is_some() && !self.is_encrypted() {
            return Err(Usage::new("`traces.ca_file` needs a collector with TLS")
                .with_hint("use `https://` for the collector, or leave out `traces.ca_file`"));
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
        let text = std::fs::read_to_string(path).map_err(|error| {
            Usage::new(format!("`traces.headers_file` `{shown}` cannot be read: {error}"))
        })?;
        let lines =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let header = |(number, line): (usize, &str)| {
            let wrong = || {
                Usage::new(format!("`traces.headers_file` `{shown}`, line {}: no header", number + 1))
                    .with_hint("write one `name: value` on each line")
            };
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let is_name =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
            let is_good = !name.is_empty()
                && name.bytes().all(is_name)
                && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if is_good { Ok((name, value.to_owned())) } else { Err(wrong()) }
        };
        lines.map(header).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::TraceSettings;

    fn at(endpoint: &str) -> TraceSettings {
        TraceSettings { endpoint: endpoint.to_owned(), ..TraceSettings::default() }
    }

    #[test]
    fn addresses() {
        for good in ["", "http://127.0.0.1:4317", "https://collector.example:4317/", "http://[::1]:1"] {
            assert!(at(good).check().is_ok(), "{good}");
        }
        for bad in [
            "127.0.0.1:4317",
            "http://127.0.0.1",
            "grpc://a:1",
            "http://a:1/path",
            "http://u@a:1",
            "http://:1",
        ] {
            assert!(at(bad).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_not_shown_on_the_way() {
        for (endpoint, is_good) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost:1", true),
            ("https://collector:1", true),
            ("http://collector:1", false),
            ("http://10.0.0.1:1", false),
            ("http://localhost.example:1", false),
        ] {
            let settings = TraceSettings { headers_file: Some("keys".into()), ..at(endpoint) };
            assert_eq!(settings.check().is_ok(), is_good, "{endpoint}");
        }
        let settings = TraceSettings { ca_file: Some("ca.pem".into()), ..at("http://127.0.0.1:1") };
        assert!(settings.check().is_err());
    }
}
