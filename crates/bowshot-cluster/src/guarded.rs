//! Rules of access belong to the node that keeps them, and a client may ask any node. A node without rules would show everybody
//! what the rules of another one hide, so that where one node has rules, all need rights: what nobody has been given there is
//! denied, until the same rules are there too.

use crate::membership::Cluster;
use bowshot_engine::WeakEngine;
use std::time::Duration;
use tokio::time::timeout;

/// How often this node looks at its own rules.
const PACE: Duration = Duration::from_secs(1);

/// Tells the others of rules here, and hears of theirs, as long as there is an engine. What was heard of once holds until the
/// end: nobody knows that the rules of a node are gone when the node is.
pub(crate) async fn keep(cluster: Cluster, engine: WeakEngine) {
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
                "another node has rules of access, so that rights are needed here too: make the same rules here (`bowshot access apply`)"
            );
        }
        cluster.tell_guarded(here.is_guarded());
        drop(here);
        if matches!(timeout(PACE, changes.changed()).await, Ok(Err(_))) {
            return;
        }
    }
}
