//! What a node knows of another one, for those who use it.

use std::time::SystemTime;
use uuid::Uuid;

/// How a member is, as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It was heard of; that messages go both ways is not known yet.
    Joining,
    /// It answers, and says that this node answers.
    Alive,
    /// It does not answer at the moment, or it says that this node does not: it gets no work.
    Suspect,
    /// It ends: what runs there runs to its end, and it gets no new work.
    Leaving,
    /// It has not been heard of for long. It is asked now and then, and taken again when it answers.
    Dead,
}

impl State {
    /// All of them, in the order of a member's life.
    pub const ALL: [Self; 5] = [Self::Joining, Self::Alive, Self::Suspect, Self::Leaving, Self::Dead];

    /// As system tables, metrics and log lines name it.
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
    /// Another one after each start of the node.
    pub id: Uuid,
    /// `HOST:PORT` of its internal port.
    pub address: String,
    /// Where clients reach it.
    pub public: String,
    /// Version and format of plans.
    pub build: String,
    /// How it is.
    pub state: State,
    /// Since when it is so.
    pub since: SystemTime,
    /// Whether it is ready for work: while it still starts it is not.
    pub serves: bool,
    /// Whether it has rules of access.
    pub guarded: bool,
    /// When something last came from it.
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
