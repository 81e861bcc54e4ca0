//! A member as other nodes see it.

use std::time::SystemTime;
use uuid::Uuid;

/// The state of a member, as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It is known, but messages have not gone both ways yet.
    Joining,
    /// Messages go both ways.
    Alive,
    /// Messages do not go both ways at the moment: it gets no work.
    Suspect,
    /// It shuts down: its tasks run to their end, and it gets no new work.
    Leaving,
    /// It was silent for long. It gets few heartbeats, and is alive again when it answers.
    Dead,
}

impl State {
    /// All of them, in the order of a member's life.
    pub const ALL: [Self; 5] = [Self::Joining, Self::Alive, Self::Suspect, Self::Leaving, Self::Dead];

    /// Its name in system tables, metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Alive => "alive",
            Self::Suspect => "suspect",
            Self::Leaving => "leaving",
            Self::Dead => "dead",
        }
    }
}

/// A node of the cluster, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// A new identifier after each start of the node.
    pub id: Uuid,
    /// `HOST:PORT` of its internal port.
    pub address: String,
    /// Where clients reach it.
    pub public: String,
    /// Version and format of plans.
    pub build: String,
    pub state: State,
    /// Since when it has this state.
    pub since: SystemTime,
    /// Whether it is ready for work.
    pub serves: bool,
    /// Whether it has access rules.
    pub guarded: bool,
    /// Time of its last message.
    pub last_heard: Option<SystemTime>,
    /// Threads that run its queries.
    pub threads: u32,
    /// Bytes of memory for its queries.
    pub memory: u64,
    /// By how much its clock is ahead of this node's.
    pub clock_skew_ms: Option<i64>,
}

impl Member {
    /// Whether it can be given work by a node of this build.
    pub fn takes_work_of(&self, build: &str) -> bool {
        self.state == State::Alive && self.serves && self.build == build
    }
}
