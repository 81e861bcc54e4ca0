//! Who is in the cluster, and how its nodes reach one another.
//!
//! One internal port carries everything between nodes: messages about membership, and connections for work that whoever
//! executes plans serves and opens. Nothing comes through it that has not proven that it is a node of this cluster
//! (`security/`), and nothing that a client holds is such a proof.
//!
//! The road of a member: `door.rs` lets connections in, `beat.rs` asks every member at each heartbeat, `table.rs` holds what
//! was heard and judges, without clock, socket or task of its own, and [`Cluster`] shows what came of it. Every node
//! judges by what it sees itself; others only tell it whom to ask.
//!
//! No plan, no query and no table is known here.

mod authority;
mod beat;
mod cluster;
mod door;
mod error;
mod frame;
mod member;
mod message;
mod security;
mod settings;
mod shared;
mod signing;
mod stream;
mod table;

pub use authority::{AuthorityFiles, NodeFiles, add_node, init};
pub use cluster::{Cluster, Part, WorkIncoming};
pub use error::Error;
pub use member::{Member, State};
pub use settings::{Security, Settings};
pub use stream::WorkStream;

#[cfg(test)]
mod tests;
