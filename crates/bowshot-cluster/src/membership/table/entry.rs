//! One other node: what was received from it and when, and the state that follows.

use super::{Change, Moment, Timing};
use crate::membership::member::{Member, State};
use crate::membership::message::Node;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// Largest part by which a member is judged later than configured, so that not all nodes drop it in the same moment.
const JITTER: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Entry {
    node: Node,
    state: State,
    since: SystemTime,
    known: Instant,
    /// When it was last asked something that it has answered.
    answered: Option<Instant>,
    /// When it first did.
    first_answered: Option<Instant>,
    /// When it last sent a heartbeat by itself.
    heard: Option<Instant>,
    last_heard: Option<SystemTime>,
    /// Whether it says that this node answers it, and whether it ever did.
    reaches_me: bool,
    has_reached_me: bool,
    /// Whether the last call to it failed.
    failing: bool,
    clock_skew_ms: Option<i64>,
    jitter: f64,
}

impl Entry {
    pub(super) fn new(node: Node, now: Moment) -> Self {
        Self {
            node,
            state: State::Joining,
            since: now.wall,
            known: now.at,
            answered: None,
            first_answered: None,
            heard: None,
            last_heard: None,
            reaches_me: false,
            has_reached_me: false,
            failing: false,
            clock_skew_ms: None,
            jitter: 1.0 + JITTER * fraction(),
        }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Takes what the same node says of itself now; whether that is something new.
    pub(super) fn update(&mut self, node: &Node) -> bool {
        let is_new = self.node != *node;
        if is_new {
            self.node = node.clone();
        }
        is_new
    }

    pub(super) fn heard(&mut self, reaches_me: bool, now: Moment) {
        self.heard = Some(now.at);
        self.last_heard = Some(now.wall);
        self.note_reach(reaches_me);
    }

    pub(super) fn answered(
        &mut self,
        reaches_me: bool,
        clock_skew_ms: Option<i64>,
        asked: Instant,
        now: Moment,
    ) {
        self.answered = Some(asked);
        self.first_answered.get_or_insert(asked);
        self.last_heard = Some(now.wall);
        self.failing = false;
        self.clock_skew_ms = clock_skew_ms.or(self.clock_skew_ms);
        self.note_reach(reaches_me);
    }

    fn note_reach(&mut self, reaches_me: bool) {
        self.reaches_me = reaches_me;
        self.has_reached_me |= reaches_me;
    }

    pub(super) fn failed(&mut self) {
        self.failing = true;
    }

    pub(super) fn excuse(&mut self, gap: Duration, now: Moment) {
        let times = [&mut self.answered, &mut self.first_answered, &mut self.heard];
        for time in times.into_iter().flatten().chain([&mut self.known]) {
            *time = now.at.min(*time + gap);
        }
    }

    pub(super) fn judge(&mut self, timing: &Timing, now: Moment) -> Option<Change> {
        let (from, to) = (self.state, self.judged(timing, now.at));
        if from == to {
            return None;
        }
        self.state = to;
        self.since = now.wall;
        Some(Change { node: self.node.id, address: self.node.address.clone(), from, to })
    }

    fn judged(&self, timing: &Timing, now: Instant) -> State {
        let is_over = |since: Instant, limit: Duration| {
            now.saturating_duration_since(since) >= limit.mul_f64(self.jitter)
        };
        if self.node.leaving && self.failing || is_over(self.last_contact(), timing.dead_after) {
            return State::Dead;
        }
        if self.node.leaving {
            return State::Leaving;
        }
        let (Some(answered), Some(first)) = (self.answered, self.first_answered) else {
            let late = self.failing || is_over(self.known, timing.suspect_after);
            return if late { State::Suspect } else { State::Joining };
        };
        if self.failing || is_over(answered, timing.suspect_after) {
            return State::Suspect;
        }
        match self.reaches_me {
            true => State::Alive,
            // It has had the time to reach this node.
            false if self.has_reached_me || is_over(first, timing.suspect_after) => State::Suspect,
            false => State::Joining,
        }
    }

    /// When something last came from it, or it became known.
    fn last_contact(&self) -> Instant {
        self.answered.into_iter().chain(self.heard).fold(self.known, Instant::max)
    }

    pub(super) fn is_dead_for(&self, limit: Duration, now: Moment) -> bool {
        let passed = now.wall.duration_since(self.since).unwrap_or_default();
        self.state == State::Dead && passed >= limit
    }

    pub(super) fn is_reached(&self, timing: &Timing, now: Moment) -> bool {
        let answered = self.answered.map(|answered| now.at.saturating_duration_since(answered));
        !self.failing && answered.is_some_and(|passed| passed < timing.suspect_after)
    }

    pub(super) fn is_heard(&self, timing: &Timing, now: Moment) -> bool {
        let contact = self.answered.into_iter().chain(self.heard).max();
        let passed = contact.map(|contact| now.at.saturating_duration_since(contact));
        self.state != State::Dead && passed.is_some_and(|passed| passed < timing.dead_after)
    }

    /// Whether it is one that should know what this node tells.
    pub(super) fn state_counts(&self) -> bool {
        matches!(self.state, State::Joining | State::Alive | State::Leaving)
    }

    pub(super) fn has_answered_since(&self, then: Instant) -> bool {
        self.answered.is_some_and(|answered| answered >= then)
    }

    pub(super) fn member(&self) -> Member {
        Member {
            last_heard: self.last_heard,
            clock_skew_ms: self.clock_skew_ms,
            ..member(&self.node, self.state, self.since)
        }
    }
}

/// A node for those who use it.
pub(super) fn member(node: &Node, state: State, since: SystemTime) -> Member {
    Member {
        id: node.id,
        address: node.address.clone(),
        public: node.public.clone(),
        build: node.build.clone(),
        serves: node.serves,
        guarded: node.guarded,
        state,
        since,
        last_heard: None,
        threads: node.threads,
        memory: node.memory,
        clock_skew_ms: None,
    }
}

/// A random number from 0 up to 1.
pub(crate) fn fraction() -> f64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 32) as f64 / f64::from(u32::MAX)
}
