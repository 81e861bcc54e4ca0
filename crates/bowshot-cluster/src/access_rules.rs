//! Access rules belong to one node, but clients may ask any node. So if one node has rules, all nodes deny by default, until the same rules
//! exist there too.

use crate::membership::Cluster;
use bowshot_engine::WeakEngine;
use std::time::Duration;
use tokio::time::timeout;

/// How often this node checks its own rules.
const PACE: Duration = Duration::from_secs(1);

/// Publishes whether there are rules here, and follows the other nodes, as long as the engine lives. Denial by default lasts until
/// the process ends: the loss of a node does not mean that its rules are gone.
pub(crate) async fn follow(cluster: Cluster, engine: WeakEngine) {
    let mut changes = cluster.changes();
    loop {
        changes.mark_unchanged();
        let Some(here) = engine.upgrade() else { return };
        let members = cluster.members();
        let myself = cluster.myself().id;
        if let Some(other) = members.iter().find(|member| member.guarded && member.id != myself)
            && here.need_rights()
        {
            let address = &other.address;
            tracing::warn!(
                address,
                "another node has access rules, so access is denied by default here too: apply the same rules here (`bowshot access apply`)"
            );
        }
        cluster.tell_guarded(here.is_guarded());
        drop(here);
        if matches!(timeout(PACE, changes.changed()).await, Ok(Err(_))) {
            return;
        }
    }
}
