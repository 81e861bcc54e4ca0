//! The nodes of the cluster. One internal port carries messages about membership and connections for work, only between nodes that have
//! authenticated (`security/`). `listener.rs` accepts connections, `heartbeat.rs` asks every member, `table/` keeps their states without clock,
//! socket or task. Every node decides by what it sees itself. No plans, queries or tables here.

mod authority;
mod cluster;
mod error;
mod frame;
mod heartbeat;
mod listener;
mod member;
mod message;
mod node_state;
mod security;
mod settings;
mod signing;
mod stream;
mod table;

pub use authority::{AuthorityFiles, NodeFiles, add_node, init};
pub use cluster::{Cluster, TaskGuard, WorkIncoming};
pub use error::Error;
pub use member::{Member, State};
pub use settings::{Security, Settings};
pub use stream::WorkStream;

#[cfg(test)]
mod tests;
