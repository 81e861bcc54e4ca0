//! What tickets say of endpoints of any node, signed by the node that was asked: who may have which rows of which node, and
//! until when. Every node of the cluster can check one, whoever has made it.
//!
//! ```text
//! run (16) · node that signs (16) · node that has the rows (16) · seconds since 1970 until which it is good (8) · signature (32)
//! ```
//!
//! The signature is over all that, the query, the number of the endpoint and the principal, none of whom the voucher names: it is
//! checked for the one who shows it. So it is no credential. Who has found one still has to be who it was made for.

use crate::membership::Cluster;
use crate::sink::described;
use bowshot_api::{Principal, QueryId};
use bowshot_engine::endpoints::EndpointId;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// How long a voucher is good. A result is gone long before, unless somebody reads one endpoint after another.
const GOOD_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The rows that a voucher is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Voucher {
    pub(crate) id: EndpointId,
    /// The node that has them.
    pub(crate) node: Uuid,
    until: u64,
}

impl Voucher {
    pub(crate) fn new(id: EndpointId, node: Uuid, now: SystemTime) -> Self {
        Self { id, node, until: seconds(now + GOOD_FOR) }
    }

    /// The bytes for a principal.
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

    /// The voucher that a principal has shown for an endpoint of a query; `None` for one that no node of the cluster has made
    /// for that, or that is no good any more.
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
        let voucher = Self {
            id: EndpointId { run: Uuid::from_bytes(*run), index },
            node: Uuid::from_bytes(*node),
            until: u64::from_be_bytes(until.try_into().ok()?),
        };
        let message = voucher.message(said, (query, principal));
        let is_good = cluster.is_signed(Uuid::from_bytes(*signer), &message, signature)
            && voucher.until >= seconds(now);
        is_good.then_some(voucher)
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
    async fn a_voucher_is_for_one_principal_one_endpoint_and_a_day() {
        let (one, other) =
            (cluster("a secret of some length").await, cluster("a secret of some length").await);
        let (ann, bob) = (Principal::user("ann"), Principal::user("bob"));
        let (query, now) = (QueryId::random(), SystemTime::now());
        let id = EndpointId { run: Uuid::from_u128(1), index: 2 };
        let voucher = Voucher::new(id, Uuid::from_u128(3), now);
        let bytes = voucher.signed(&one, (query, &ann));
        assert_eq!(Voucher::check(&other, &bytes, (query, 2, &ann), now), Some(voucher));
        for (query, index, principal) in [(query, 2, &bob), (query, 1, &ann), (QueryId::random(), 2, &ann)] {
            assert_eq!(Voucher::check(&other, &bytes, (query, index, principal), now), None);
        }
        let nobody = Principal { authenticated: false, ..ann.clone() };
        assert_eq!(Voucher::check(&other, &bytes, (query, 2, &nobody), now), None);
        let tomorrow = now + GOOD_FOR + Duration::from_secs(1);
        assert_eq!(Voucher::check(&other, &bytes, (query, 2, &ann), tomorrow), None);
        let strangers = cluster("another secret of some length").await;
        assert_eq!(Voucher::check(&strangers, &bytes, (query, 2, &ann), now), None);
        for place in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[place] ^= 1;
            // The signer of nodes with a secret is any of them.
            assert_eq!(Voucher::check(&other, &forged, (query, 2, &ann), now), None, "{place}");
            assert_eq!(Voucher::check(&other, &bytes[..place], (query, 2, &ann), now), None, "{place}");
        }
    }
}
