//! The URL of a node.

use datafusion::common::{Result, internal_datafusion_err};
use url::{Host, Url};

/// The URL of a node for datafusion-distributed.
pub(crate) fn node_url(address: &str) -> Result<Url> {
    Url::parse(&format!("http://{address}"))
        .map_err(|error| internal_datafusion_err!("`{address}` is not a valid address of a node: {error}"))
}

/// Whether a node is on this machine.
pub(crate) fn is_loopback(node: &Url) -> bool {
    match node.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_loopback, node_url};

    #[test]
    fn nodes_of_one_machine_are_told_by_their_addresses() {
        for (address, near) in [
            ("127.0.0.1:7000", true),
            ("127.0.0.2:7000", true),
            ("[::1]:7000", true),
            ("localhost:7000", true),
            ("10.0.0.1:7000", false),
            ("[2001:db8::1]:7000", false),
            ("node1.localhost.example:7000", false),
        ] {
            assert_eq!(is_loopback(&node_url(address).unwrap()), near, "{address}");
        }
    }
}
