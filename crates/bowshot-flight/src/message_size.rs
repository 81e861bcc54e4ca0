//! Sizes of data messages. A few MiB fit the processor caches, and most clients refuse more than 4 MiB, the default
//! of gRPC; others profit from one larger message (`bowshot-ipc/src/large_message.rs`).

use bowshot_api::{Error, Limits, Result};
use http::HeaderMap;

/// Header with the largest message that a client accepts, in bytes.
pub(crate) const HEADER: &str = "bowshot-max-message-bytes";
/// User agents without a message limit: Arrow C++ (pyarrow, R, ODBC) and ours. Other programs on gRPC's C++ library
/// look the same and must send [`HEADER`].
const UNLIMITED_AGENTS: [&str; 2] = ["grpc-c++/", "bowshot/"];
const LEAST: usize = 64 << 10;

/// Sizes of data messages to one client, in bytes. The encoder may exceed the target by half, but the client's limit
/// only for a single large row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSizes {
    pub(crate) target: usize,
    /// Size of one early message per connection, for clients without a limit.
    pub(crate) large: Option<usize>,
}

impl MessageSizes {
    /// The sizes for the client that sent these headers.
    ///
    /// # Errors
    /// `Invalid` for a header that is no number of bytes from 64 KiB up.
    pub(crate) fn from_headers(headers: &HeaderMap, limits: &Limits) -> Result<Self> {
        // Reserve a sixteenth for overhead.
        let most = theirs(headers)?.map_or(usize::MAX, |most| (most - most / 16) / 3 * 2);
        let target = limits.message_bytes.min(most);
        // A smaller one would not have the effect.
        let large = limits.large_message_bytes;
        let takes_it = is_unlimited(headers) && target < large && large <= most;
        Ok(Self { target, large: takes_it.then_some(large) })
    }
}

fn is_unlimited(headers: &HeaderMap) -> bool {
    let agent = headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    agent.is_some_and(|agent| UNLIMITED_AGENTS.iter().any(|name| agent.starts_with(name)))
}

fn theirs(headers: &HeaderMap) -> Result<Option<usize>> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let bytes = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|bytes| *bytes >= LEAST);
    bytes.map(Some).ok_or_else(|| {
        Error::invalid(format!("invalid header `{HEADER}`: expected a number of bytes, at least {LEAST}"))
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
        for (agent, large) in [
            ("grpc-c++/1.71.0 grpc-c/46.0.0 (linux; chttp2)", Some(9_000)),
            ("bowshot/0.1.0 tonic/0.14.2", Some(9_000)),
            ("report grpc-c++/1.71.0", None),
            ("grpc-python/1.71.0 grpc-c/46.0.0 (linux; chttp2)", None),
            ("grpc-go/1.75.0", None),
            ("", None),
        ] {
            let expected = MessageSizes { target: 1_000, large };
            assert_eq!(
                MessageSizes::from_headers(&headers(agent, None), &limits).unwrap(),
                expected,
                "{agent}"
            );
        }
        let expected = MessageSizes { target: 1_000, large: None };
        assert_eq!(MessageSizes::from_headers(&HeaderMap::new(), &limits).unwrap(), expected);
    }

    #[test]
    fn clients_that_say_what_they_take() {
        let limits = Limits { message_bytes: 2 << 20, large_message_bytes: 16 << 20, ..Limits::default() };
        for (agent, most, target, large) in [
            ("grpc-c++/1", "3145728", 1_966_080, None),
            ("grpc-c++/1", "6291456", 2 << 20, None),
            ("grpc-c++/1", "26000000", 2 << 20, None),
            ("grpc-c++/1", "27000000", 2 << 20, Some(16 << 20)),
            ("grpc-c++/1", "1000000000", 2 << 20, Some(16 << 20)),
            ("grpc-go/1", "98304", 61_440, None),
            ("grpc-go/1", "1000000000", 2 << 20, None),
        ] {
            let sizes = MessageSizes::from_headers(&headers(agent, Some(most)), &limits).unwrap();
            assert_eq!(sizes, MessageSizes { target, large }, "{agent} {most}");
        }
        for most in ["", "-1", "65535", "4MiB", "99999999999999999999"] {
            assert!(MessageSizes::from_headers(&headers("x", Some(most)), &limits).is_err(), "{most}");
        }
    }
}
