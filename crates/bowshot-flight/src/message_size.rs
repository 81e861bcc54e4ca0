//! How large the data messages to one client should be. Fewer and larger ones cost both sides less, and most clients
//! refuse those above 4 MiB, gRPC's default.

use bowshot_api::{Error, Limits, Result};
use http::HeaderMap;

/// The header with which a client says the largest message that it takes, in bytes.
pub(crate) const HEADER: &str = "bowshot-max-message-bytes";
/// How the clients name themselves that set no limit unless they are told to: Arrow C++ (pyarrow, R, ODBC), and ours. A
/// program that calls Flight through gRPC's C++ library without Arrow's looks the same, and must send [`HEADER`].
const UNLIMITED_AGENTS: [&str; 2] = ["grpc-c++/", "bowshot/"];
/// Less is not worth a message.
const LEAST: usize = 64 << 10;

/// The target size of messages in bytes. The encoder exceeds it by up to a half; what the client says, it does not exceed
/// unless a single row does.
///
/// # Errors
/// `Invalid` for a header that is no number of bytes from 64 KiB up.
pub(crate) fn target(headers: &HeaderMap, limits: &Limits) -> Result<usize> {
    let ours = if is_unlimited(headers) {
        limits.large_message_bytes.max(limits.message_bytes)
    } else {
        limits.message_bytes
    };
    Ok(theirs(headers)?.map_or(ours, |most| ours.min(most / 3 * 2)))
}

fn is_unlimited(headers: &HeaderMap) -> bool {
    let agent = headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    agent.is_some_and(|agent| UNLIMITED_AGENTS.iter().any(|name| agent.starts_with(name)))
}

fn theirs(headers: &HeaderMap) -> Result<Option<usize>> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let bytes = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|bytes| *bytes >= LEAST);
    bytes.map(Some).ok_or_else(|| {
        Error::invalid(format!("the header `{HEADER}` is no number of bytes from {LEAST} up"))
            .with_hint("send the largest message that the client takes, such as `4194304`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(agent: &str, most: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", agent.parse().unwrap());
        if let Some(most) = most {
            headers.insert(HEADER, most.parse().unwrap());
        }
        headers
    }

    #[test]
    fn clients_that_take_large_messages() {
        let limits = Limits { message_bytes: 1_000, large_message_bytes: 9_000, ..Limits::default() };
        for (agent, expected) in [
            ("grpc-c++/1.71.0 grpc-c/46.0.0 (linux; chttp2)", 9_000),
            ("bowshot/0.1.0 tonic/0.14.2", 9_000),
            ("report grpc-c++/1.71.0", 1_000),
            ("grpc-python/1.71.0 grpc-c/46.0.0 (linux; chttp2)", 1_000),
            ("grpc-go/1.75.0", 1_000),
            ("", 1_000),
        ] {
            assert_eq!(target(&headers(agent, None), &limits).unwrap(), expected, "{agent}");
        }
        assert_eq!(target(&HeaderMap::new(), &limits).unwrap(), 1_000);
    }

    #[test]
    fn clients_that_say_what_they_take() {
        let limits = Limits { message_bytes: 2 << 20, large_message_bytes: 16 << 20, ..Limits::default() };
        for (agent, most, expected) in [
            ("grpc-c++/1", "3145728", 2 << 20),
            ("grpc-c++/1", "1000000000", 16 << 20),
            ("grpc-go/1", "98304", 64 << 10),
            ("grpc-go/1", "1000000000", 2 << 20),
        ] {
            assert_eq!(target(&headers(agent, Some(most)), &limits).unwrap(), expected, "{agent} {most}");
        }
        for most in ["", "-1", "65535", "4MiB", "99999999999999999999"] {
            assert!(target(&headers("x", Some(most)), &limits).is_err(), "{most}");
        }
    }
}
