//! Signed tickets for endpoints of any node: run (16 bytes), signing node (16), node with the rows (16), expiry in seconds since 1970 (8),
//! signature (32). The signature also covers the query, the index of the endpoint and the principal, so a ticket is no credential: whoever
//! finds one must still be the principal that it was made for. Every node can check it.

use crate::endpoint_sink::described;
use crate::membership::Cluster;
use bowshot_api::{Principal, QueryId};
use bowshot_engine::endpoints::EndpointId;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Validity of a ticket: results normally end long before.
const VALIDITY: Duration = Duration::from_secs(24 * 60 * 60);

/// The rows that a ticket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignedTicket {
    pub(crate) id: EndpointId,
    /// The node with the rows.
    pub(crate) node: Uuid,
    until: u64,
}

impl SignedTicket {
    pub(crate) fn new(id: EndpointId, node: Uuid, now: SystemTime) -> Self {
        Self { id, node, until: seconds(now + VALIDITY) }
    }

    /// Signs the ticket for a principal.
    pub(crate) fn signed(&self, cluster: &Cluster, (query, principal): (QueryId, &Principal)) -> Vec<u8> {
        let said = self.said(cluster.myself().id);
        let signature = cluster.sign(&self.message(&said, (query, principal)));
        [said, signature].concat()
    }

    fn said(&self, signer: Uuid) -> Vec<u8> {
        let ids = [self.id.run, signer, self.node].map(Uuid::into_bytes).concat();
        [ids, self.until.to_be_bytes().to_vec()].concat()
    }

    fn message(&self, said: &[u8], (query, principal): (QueryId, &Principal)) -> Vec<u8> {
        let principal = described(principal).to_string();
        let index = self.id.index.to_be_bytes();
        [b"endpoint:".as_slice(), said, query.as_bytes(), &index, principal.as_bytes()].concat()
    }

    /// Checks the ticket of a principal for an endpoint of a query; `None` if no node of the cluster signed it
    /// for that, or if it has expired.
    pub(crate) fn check(
        cluster: &Cluster,
        bytes: &[u8],
        (query, index, principal): (QueryId, u32, &Principal),
        now: SystemTime,
    ) -> Option<Self> {
        let (said, signature) = bytes.split_at_checked(56)?;
        let (run, rest) = said.split_first_chunk::<16>()?;
        let (signer, rest) = rest.split_first_chunk::<16>()?;
        let (node, until) = rest.split_first_chunk::<16>()?;
        let ticket = Self {
            id: EndpointId { run: Uuid::from_bytes(*run), index },
            node: Uuid::from_bytes(*node),
            until: u64::from_be_bytes(until.try_into().ok()?),
        };
        let message = ticket.message(said, (query, principal));
        let is_good =
            cluster.is_signed(Uuid::from_bytes(*signer), &message, signature) && ticket.until >= seconds(now);
        is_good.then_some(ticket)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Security, Settings};
    use bowshot_api::Secret;

    async fn cluster(secret: &str) -> Cluster {
        let secret = Security::SharedSecret(Secret::new(secret));
        Cluster::start(Settings::new(([127, 0, 0, 1], 0).into(), secret)).await.expect("a node")
    }

    #[tokio::test]
    async fn a_ticket_is_for_one_principal_one_endpoint_and_a_day() {
        let (one, other) =
            (cluster("a secret of some length").await, cluster("a secret of some length").await);
        let (ann, bob) = (Principal::user("ann"), Principal::user("bob"));
        let (query, now) = (QueryId::random(), SystemTime::now());
        let id = EndpointId { run: Uuid::from_u128(1), index: 2 };
        let ticket = SignedTicket::new(id, Uuid::from_u128(3), now);
        let bytes = ticket.signed(&one, (query, &ann));
        assert_eq!(SignedTicket::check(&other, &bytes, (query, 2, &ann), now), Some(ticket));
        for (query, index, principal) in [(query, 2, &bob), (query, 1, &ann), (QueryId::random(), 2, &ann)] {
            assert_eq!(SignedTicket::check(&other, &bytes, (query, index, principal), now), None);
        }
        let nobody = Principal { authenticated: false, ..ann.clone() };
        assert_eq!(SignedTicket::check(&other, &bytes, (query, 2, &nobody), now), None);
        let tomorrow = now + VALIDITY + Duration::from_secs(1);
        assert_eq!(SignedTicket::check(&other, &bytes, (query, 2, &ann), tomorrow), None);
        let strangers = cluster("another secret of some length").await;
        assert_eq!(SignedTicket::check(&strangers, &bytes, (query, 2, &ann), now), None);
        for place in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[place] ^= 1;
            // Nodes with a shared secret have one key.
            assert_eq!(SignedTicket::check(&other, &forged, (query, 2, &ann), now), None, "{place}");
            assert_eq!(SignedTicket::check(&other, &bytes[..place], (query, 2, &ann), now), None, "{place}");
        }
    }
}
