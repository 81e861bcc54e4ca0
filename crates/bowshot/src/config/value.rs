//! How values of settings are written: lengths of time, sizes, addresses, counts. Reading is strict, and what is printed
//! reads back as the same value.

use std::fmt;
use std::time::Duration;

/// Units of time, longest first, in milliseconds.
const TIME_UNITS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Units of size that sizes are printed in, largest first.
const SIZE_UNITS: &[(&str, u64)] =
    &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Decimal units, which are read but not printed.
const DECIMAL_UNITS: &[(&str, u64)] =
    &[("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// Reads `30s`, `1h30m`, `250ms`; `0` alone needs no unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a length of time such as `30s`, `5m` or `1h30m`, not `{text}`");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (_, unit_ms) = TIME_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total_ms = number.checked_mul(*unit_ms).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(wrong)?;
        rest = tail.trim_start();
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total_ms)) }
}

pub(super) fn show_duration(value: Duration) -> String {
    let mut rest = u64::try_from(value.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, unit_ms) in TIME_UNITS {
        if rest >= *unit_ms {
            text.push_str(&format!("{}{unit}", rest / unit_ms));
            rest %= unit_ms;
        }
    }
    text
}

/// Reads a part of all: `0.25`, `1`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("expected a number from 0 to 1, not `{text}`"))
}

/// Reads `16MiB`, `2 GB`, `4096`; a number alone is bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as `16MiB`, `2GiB` or a number of bytes, not `{text}`");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Ok(number);
    }
    let (_, bytes) = SIZE_UNITS
        .iter()
        .chain(DECIMAL_UNITS)
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or_else(wrong)?;
    number.checked_mul(*bytes).ok_or_else(wrong)
}

/// A size in the largest unit that shows it exactly.
pub(super) fn show_size(value: u64) -> String {
    let exact = SIZE_UNITS.iter().find(|(_, bytes)| value >= *bytes && value.is_multiple_of(*bytes));
    exact.map_or_else(|| format!("{value}B"), |(unit, bytes)| format!("{}{unit}", value / bytes))
}

/// The entries of a list in a variable of the environment, with `:` between. That of an address ends no entry.
pub(super) fn entries(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for part in text.split(':') {
        let is_rest = |last: &String| {
            let host = last.split_once("://").map(|(_, host)| host);
            let is_port = part.split('/').next().is_some_and(|port| port.parse::<u16>().is_ok());
            part.starts_with("//") || (is_port && host.is_some_and(|host| !host.contains('/')))
        };
        match entries.last_mut().filter(|last| is_rest(last)) {
            Some(last) => {
                last.push(':');
                last.push_str(part);
            }
            None => entries.push(part.to_owned()),
        }
    }
    entries
}

pub(super) fn count(text: &str, least: usize) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(value) if value >= least => Ok(value),
        _ => Err(format!("expected a whole number from {least} up, not `{text}`")),
    }
}

pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("expected `true` or `false`, not `{text}`")),
    }
}

/// Where a front end listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    /// At `HOST:PORT`; port 0 picks a free one.
    On(String),
}

impl Listen {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let good = text.rsplit_once(':').is_some_and(|(host, port)| {
            let bracketed = host.starts_with('[') && host.ends_with(']');
            !host.is_empty() && (bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()
        });
        if good {
            Ok(Self::On(text.to_owned()))
        } else {
            Err(format!(
                "expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `{text}`"
            ))
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On(address) => f.write_str(address),
        }
    }
}

/// Whether a text is an origin as browsers write it (RFC 6454, section 6.2): a scheme and a host, perhaps a port, and nothing
/// behind.
pub(super) fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = |c: char| c.is_ascii_graphic() && !c.is_ascii_uppercase() && !"/?#@*".contains(c);
    host.is_some_and(|host| !host.is_empty() && host.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_back_as_printed() {
        for (text, ms, shown) in [
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1d", 86_400_000, "1d"),
            ("250ms", 250, "250ms"),
            ("1m 1ms", 60_001, "1m1ms"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
        ] {
            let value = duration(text).expect(text);
            assert_eq!(value, Duration::from_millis(ms), "{text}");
            assert_eq!(show_duration(value), shown);
            assert_eq!(duration(shown).expect(shown), value);
        }
        for bad in [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "1 s",
            "1w",
            "1é",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_read_back_as_printed() {
        for (text, bytes, shown) in [
            ("16MiB", 16 << 20, "16MiB"),
            ("1536KiB", 1536 << 10, "1536KiB"),
            ("8 GiB", 8 << 30, "8GiB"),
            ("2gb", 2_000_000_000, "1953125KiB"),
            ("4096", 4096, "4KiB"),
            ("1000", 1000, "1000B"),
            ("0", 0, "0B"),
        ] {
            let value = size(text).expect(text);
            assert_eq!(value, bytes, "{text}");
            assert_eq!(show_size(value), shown);
            assert_eq!(size(shown).expect(shown), value);
        }
        for bad in ["", "MiB", "-1", "1.5GiB", "16M", "1 PiB", "99999999TiB", "0x10"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_are_one_entry_of_a_list() {
        assert_eq!(entries("/a:/b"), ["/a", "/b"]);
        assert_eq!(entries("/a:x=s3://b/c:gs://d"), ["/a", "x=s3://b/c", "gs://d"]);
        assert_eq!(entries("http://h:81/x.csv:/b"), ["http://h:81/x.csv", "/b"]);
    }

    #[test]
    fn origins_have_scheme_and_host() {
        for good in ["https://example.org", "http://localhost:3000", "https://[::1]:1"] {
            assert!(is_origin(good), "{good:?}");
        }
        for bad in
            ["", "*", "example.org", "https://", "https://a/", "https://a/b", "https://A", "ftp://a", "null"]
        {
            assert!(!is_origin(bad), "{bad:?}");
        }
    }

    #[test]
    fn addresses_have_host_and_port() {
        for good in ["127.0.0.1:50051", "[::1]:0", "localhost:1", "0.0.0.0:65535"] {
            assert_eq!(Listen::parse(good).expect(good), Listen::On(good.to_owned()));
        }
        assert_eq!(Listen::parse("off"), Ok(Listen::Off));
        for bad in ["", "50051", ":50051", "127.0.0.1", "::1:50051", "host:65536", "host:-1", "on"] {
            assert!(Listen::parse(bad).is_err(), "{bad:?}");
        }
    }
}
