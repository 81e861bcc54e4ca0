//! The states of other nodes, without clock, socket or task: the caller reports events and time. A member is alive when messages go both
//! ways. What others say about the health of a member is ignored; they only say that it exists.

mod entry;

pub(crate) use entry::fraction;

use crate::membership::member::{Member, State};
use crate::membership::message::{MAX_MEMBERS, Node};
use entry::Entry;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// How long a dead member is kept, and asked now and then.
const FORGET_DEAD: Duration = Duration::from_secs(3_600);
/// How long one is shown that has left.
const FORGET_LEFT: Duration = Duration::from_secs(60);
/// How often another node may claim this one's address before that is said.
const CLAIMS: u32 = 3;

/// The times by which members are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) suspect_after: Duration,
    pub(crate) dead_after: Duration,
}

/// When something happened, by the clock that never goes back, and by the one that people read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) wall: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), wall: SystemTime::now() }
    }
}

/// What came with a message that a member itself has sent.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) from: Node,
    /// Whether it says that this node answers it.
    pub(crate) reaches_me: bool,
    pub(crate) known: Vec<Node>,
}

/// A member whose state has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) node: Uuid,
    pub(crate) address: String,
    pub(crate) from: State,
    pub(crate) to: State,
}

/// This node and all that it knows of.
#[derive(Debug)]
pub(crate) struct Table {
    me: Node,
    since: SystemTime,
    timing: Timing,
    /// By address: of two nodes at one address, only the newer one is there.
    entries: BTreeMap<String, Entry>,
    claims: u32,
    /// When this was last looked through: much later than usual means that this node did not run meanwhile.
    judged: Instant,
    /// Whether something changed that others should be told of.
    changed: bool,
}

impl Table {
    pub(crate) fn new(me: Node, timing: Timing, now: Moment) -> Self {
        Self {
            me,
            since: now.wall,
            timing,
            entries: BTreeMap::new(),
            claims: 0,
            judged: now.at,
            changed: true,
        }
    }

    pub(crate) fn me(&self) -> &Node {
        &self.me
    }

    /// From now on this node tells everybody that it ends.
    pub(crate) fn leave(&mut self, now: Moment) {
        self.me.leaving = true;
        self.since = now.wall;
        self.changed = true;
    }

    /// From now on this node tells everybody that it takes work.
    pub(crate) fn serve(&mut self) {
        self.me.serves = true;
        self.changed = true;
    }

    /// From now on this node tells everybody so. Whether that is new.
    pub(crate) fn guard(&mut self, guarded: bool) -> bool {
        let is_new = self.me.guarded != guarded;
        self.me.guarded = guarded;
        self.changed |= is_new;
        is_new
    }

    /// A member has sent a heartbeat by itself.
    pub(crate) fn heard(&mut self, word: &Report, now: Moment) {
        self.learn(&word.known, now);
        if word.from.id == self.me.id || !self.admit(&word.from, false, now) {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&word.from.address) {
            entry.heard(word.reaches_me, now);
        }
    }

    /// The node at an address that this one has connected to has answered what it was asked then: whoever answers there is the
    /// member.
    pub(crate) fn answered(
        &mut self,
        word: &Report,
        clock_skew_ms: Option<i64>,
        asked: Instant,
        now: Moment,
    ) {
        self.learn(&word.known, now);
        if word.from.id == self.me.id || !self.admit(&word.from, true, now) {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&word.from.address) {
            entry.answered(word.reaches_me, clock_skew_ms, asked, now);
        }
    }

    /// Handles a failed call.
    pub(crate) fn failed(&mut self, address: &str) {
        if let Some(entry) = self.entries.get_mut(address) {
            entry.failed();
        }
    }

    /// Judges everybody, forgets those that are long gone, and tells who is not as before.
    pub(crate) fn judge(&mut self, now: Moment) -> Vec<Change> {
        let timing = self.timing;
        self.excuse(now);
        let mut changes = Vec::new();
        for entry in self.entries.values_mut() {
            changes.extend(entry.judge(&timing, now));
        }
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            let keep = if entry.node().leaving { FORGET_LEFT } else { FORGET_DEAD };
            !entry.is_dead_for(keep, now)
        });
        self.changed |= !changes.is_empty() || self.entries.len() != before;
        changes
    }

    /// Whether something has changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Everybody, this node included, sorted by identifier.
    pub(crate) fn members(&self, now: Moment) -> Vec<Member> {
        let me = Member {
            last_heard: Some(now.wall),
            clock_skew_ms: Some(0),
            ..entry::member(&self.me, if self.me.leaving { State::Leaving } else { State::Alive }, self.since)
        };
        let mut members: Vec<Member> = self.entries.values().map(Entry::member).collect();
        members.push(me);
        members.sort_by_key(|member| member.id);
        members
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// How the member at an address is.
    pub(crate) fn state_at(&self, address: &str) -> Option<State> {
        if address == self.me.address {
            return Some(if self.me.leaving { State::Leaving } else { State::Alive });
        }
        self.entries.get(address).map(Entry::state)
    }

    /// The node at an address, this one included.
    pub(crate) fn node_at(&self, address: &str) -> Option<&Node> {
        if address == self.me.address {
            return Some(&self.me);
        }
        self.entries.get(address).map(Entry::node)
    }

    /// The node of an identifier, this one included.
    pub(crate) fn node(&self, id: Uuid) -> Option<&Node> {
        if id == self.me.id {
            return Some(&self.me);
        }
        self.entries.values().map(Entry::node).find(|node| node.id == id)
    }

    /// Whether the node at an address has lately answered.
    pub(crate) fn reaches(&self, address: &str, now: Moment) -> bool {
        self.entries.get(address).is_some_and(|entry| entry.is_reached(&self.timing, now))
    }

    /// Nodes that this one has lately heard itself. Others are not passed on, so that one that is gone does not live on in
    /// what nodes tell one another.
    pub(crate) fn known(&self, now: Moment) -> Vec<Node> {
        let heard = self.entries.values().filter(|entry| entry.is_heard(&self.timing, now));
        heard.map(|entry| entry.node().clone()).collect()
    }

    /// Whether all that can be expected to answer have done so to what they were asked after `then`.
    pub(crate) fn all_answered_since(&self, then: Instant) -> bool {
        self.entries.values().all(|entry| !entry.state_counts() || entry.has_answered_since(then))
    }

    /// Where this node did not run for a while, nobody is to be blamed for silence in that time.
    fn excuse(&mut self, now: Moment) {
        let gap = now.at.saturating_duration_since(self.judged);
        self.judged = now.at;
        if gap >= self.timing.suspect_after / 2 {
            self.entries.values_mut().for_each(|entry| entry.excuse(gap, now));
        }
    }

    /// Takes in a node that tells of itself; whether it is now the one at its address.
    fn admit(&mut self, node: &Node, at_its_address: bool, now: Moment) -> bool {
        if !node.is_sound() {
            return false;
        }
        if node.address == self.me.address {
            self.claim(node);
            return false;
        }
        match self.entries.get_mut(&node.address) {
            Some(entry) if entry.node().id == node.id => self.changed |= entry.update(node),
            Some(entry) => {
                if !at_its_address && node.incarnation <= entry.node().incarnation {
                    return false;
                }
                *entry = Entry::new(node.clone(), now);
                self.changed = true;
            }
            None => return self.insert(node, now),
        }
        true
    }

    /// Nodes that another one tells of.
    fn learn(&mut self, known: &[Node], now: Moment) {
        for node in known.iter().take(MAX_MEMBERS) {
            if node.address == self.me.address {
                self.claim(node);
            } else if node.is_sound() && !self.entries.contains_key(&node.address) && !node.leaving {
                self.insert(node, now);
            }
        }
    }

    fn insert(&mut self, node: &Node, now: Moment) -> bool {
        if self.entries.len() + 1 >= MAX_MEMBERS {
            return false;
        }
        self.entries.insert(node.address.clone(), Entry::new(node.clone(), now));
        self.changed = true;
        true
    }

    /// Somebody tells of another node at this one's address: mostly what was there before a restart. This node's number is
    /// raised above that one's.
    fn claim(&mut self, node: &Node) {
        if node.id == self.me.id || node.incarnation < self.me.incarnation {
            return;
        }
        self.me.incarnation = node.incarnation.saturating_add(1);
        self.claims += 1;
        if self.claims == CLAIMS {
            let (address, other) = (&self.me.address, node.id);
            tracing::warn!(%address, %other, "another node has this node's address");
        }
    }
}

#[cfg(test)]
mod tests;
