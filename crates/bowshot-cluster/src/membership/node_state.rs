//! State that the tasks of a node share: the table behind a lock, and a snapshot of its members.

use crate::membership::error::denied;
use crate::membership::member::{Member, State};
use crate::membership::message::{Answer, Heartbeat, VERSION};
use crate::membership::security::Keys;
use crate::membership::settings::Settings;
use crate::membership::signing::Signing;
use crate::membership::stream::WorkStream;
use crate::membership::table::{Change, Moment, Report, Table};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// The cluster of this node, and whether its data or another node has fixed it.
#[derive(Debug, Clone, Copy)]
struct ClusterIdentity {
    cluster: Uuid,
    firm: bool,
}

#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) settings: Settings,
    pub(crate) keys: Keys,
    pub(crate) signing: Signing,
    pub(crate) table: Mutex<Table>,
    identity: Mutex<ClusterIdentity>,
    /// Nodes to join that advertise another address.
    aliases: Mutex<BTreeMap<String, String>>,
    snapshot: RwLock<Arc<Vec<Member>>>,
    pub(crate) changes: watch::Sender<u64>,
    /// A change sends the next heartbeat at once.
    pub(crate) ask_early: watch::Sender<u64>,
    /// Number of running tasks.
    pub(crate) parts: watch::Sender<usize>,
    pub(crate) work: mpsc::Sender<WorkStream>,
}

impl NodeState {
    pub(crate) fn new(
        settings: Settings,
        (keys, signing): (Keys, Signing),
        table: Table,
        work: mpsc::Sender<WorkStream>,
    ) -> Arc<Self> {
        let firm = settings.cluster.is_some();
        let cluster = settings.cluster.unwrap_or_else(|| keys.cluster());
        let state = Arc::new(Self {
            settings,
            keys,
            signing,
            table: Mutex::new(table),
            identity: Mutex::new(ClusterIdentity { cluster, firm }),
            aliases: Mutex::default(),
            snapshot: RwLock::default(),
            changes: watch::Sender::new(0),
            ask_early: watch::Sender::new(0),
            parts: watch::Sender::new(0),
            work,
        });
        state.refresh();
        state
    }

    /// Members as of the last update.
    pub(crate) fn members(&self) -> Arc<Vec<Member>> {
        Arc::clone(&self.snapshot.read())
    }

    pub(crate) fn cluster(&self) -> Uuid {
        self.identity.lock().cluster
    }

    /// Fixes the cluster.
    pub(crate) fn settle(&self) -> Uuid {
        let mut mine = self.identity.lock();
        mine.firm = true;
        mine.cluster
    }

    /// Updates the states of all members and the snapshot.
    pub(crate) fn refresh(&self) {
        self.update(&mut self.table.lock(), true);
    }

    fn update(&self, table: &mut Table, is_regular: bool) {
        let now = Moment::now();
        let changes = table.judge(now);
        let has_changed = table.take_changed();
        if !has_changed && !is_regular {
            return;
        }
        let members = table.members(now);
        if has_changed {
            count(&members);
        }
        *self.snapshot.write() = Arc::new(members);
        changes.iter().for_each(log);
        if has_changed {
            self.changes.send_modify(|version| *version += 1);
        }
    }

    /// Addresses for heartbeats: all members, and nodes to join that are not members yet.
    pub(crate) fn targets(&self) -> BTreeSet<String> {
        let table = self.table.lock();
        let aliases = self.aliases.lock();
        let is_open = |address: &&String| {
            let other = aliases.get(*address).and_then(|real| table.state_at(real));
            **address != table.me().address && other.is_none_or(|state| state == State::Dead)
        };
        let join = self.settings.join.iter().filter(is_open).cloned();
        table.addresses().into_iter().chain(join).collect()
    }

    pub(crate) fn heartbeat(&self, address: &str) -> Heartbeat {
        let ClusterIdentity { cluster, firm } = *self.identity.lock();
        let (now, table) = (Moment::now(), self.table.lock());
        Heartbeat {
            version: VERSION,
            cluster,
            firm,
            from: table.me().clone(),
            reaches_you: table.reaches(address, now),
            now_us: micros(now.wall),
            known: table.known(now),
            signing_key: self.signing.public(),
        }
    }

    /// Handles a heartbeat of another node.
    pub(crate) fn receive(&self, beat: Heartbeat) -> Answer {
        if let Err(reason) = self.check(&beat) {
            return Answer::Refused { reason };
        }
        let (address, id, key) = (beat.from.address.clone(), beat.from.id, beat.signing_key);
        let word = Report { from: beat.from, reaches_me: beat.reaches_you, known: beat.known };
        let mut table = self.table.lock();
        self.signing.hear(id, key, |id| table.node(id).is_some());
        let was_dead = table.state_at(&address) == Some(State::Dead);
        table.heard(&word, Moment::now());
        self.update(&mut table, false);
        drop(table);
        if was_dead {
            // The node is back, but would get few heartbeats.
            self.ask_now();
        }
        Answer::Beat(self.heartbeat(&address))
    }

    /// Handles the answer of a node.
    pub(crate) fn take_answer(
        &self,
        address: &str,
        beat: Heartbeat,
        clock_skew_ms: Option<i64>,
        asked: Instant,
    ) -> io::Result<()> {
        self.check(&beat).map_err(denied)?;
        if beat.from.address != address {
            let mut aliases = self.aliases.lock();
            aliases.insert(address.to_owned(), beat.from.address.clone());
        }
        let (id, key) = (beat.from.id, beat.signing_key);
        let word = Report { from: beat.from, reaches_me: beat.reaches_you, known: beat.known };
        let mut table = self.table.lock();
        self.signing.hear(id, key, |id| table.node(id).is_some());
        table.answered(&word, clock_skew_ms, asked, Moment::now());
        self.update(&mut table, false);
        Ok(())
    }

    /// Handles a failed call.
    pub(crate) fn failed(&self, address: &str) {
        let mut table = self.table.lock();
        table.failed(address);
        self.update(&mut table, false);
    }

    /// Sends heartbeats to all members now.
    pub(crate) fn ask_now(&self) {
        self.ask_early.send_modify(|count| *count += 1);
    }

    /// Announces that this node takes work.
    pub(crate) fn begin_serving(&self) {
        let mut table = self.table.lock();
        table.serve();
        self.update(&mut table, false);
        drop(table);
        self.ask_now();
    }

    /// Announces whether this node has access rules.
    pub(crate) fn tell_guarded(&self, guarded: bool) {
        let mut table = self.table.lock();
        let is_new = table.guard(guarded);
        self.update(&mut table, false);
        drop(table);
        if is_new {
            self.ask_now();
        }
    }

    /// Announces that this node leaves; returns the time.
    pub(crate) fn begin_leaving(&self) -> Instant {
        let mut table = self.table.lock();
        // Heartbeats from now on contain it.
        let now = Moment::now();
        table.leave(now);
        self.update(&mut table, false);
        drop(table);
        self.ask_now();
        now.at
    }

    /// Whether this node takes work of another one.
    pub(crate) fn check_work_of(&self, id: Uuid) -> Result<(), &'static str> {
        let table = self.table.lock();
        let Some(node) = table.node(id) else { return Err("the calling node is not known yet") };
        if node.build != table.me().build {
            return Err("the calling node runs another build");
        }
        if table.me().serves { Ok(()) } else { Err("this node does not accept work") }
    }

    /// Whether a message is of this cluster. A node without cluster adopts that of a node whose data has one.
    fn check(&self, beat: &Heartbeat) -> Result<(), String> {
        if beat.version != VERSION {
            return Err(format!(
                "it speaks version {VERSION} of the cluster's messages, not {}",
                beat.version
            ));
        }
        if !beat.from.is_sound() {
            return Err("invalid description of the node".to_owned());
        }
        let mut mine = self.identity.lock();
        match (beat.firm, mine.firm) {
            (true, true) if beat.cluster != mine.cluster => {
                let (one, other) = (beat.cluster, mine.cluster);
                return Err(format!(
                    "the data of one node belongs to cluster {one}, that of the other to {other}"
                ));
            }
            (true, false) => *mine = ClusterIdentity { cluster: beat.cluster, firm: true },
            // While an authority is replaced, the identifiers that nodes derive from it may differ.
            (false, false) => mine.cluster = mine.cluster.min(beat.cluster),
            (_, true) => {}
        }
        Ok(())
    }
}

fn log(change: &Change) {
    let (node, address) = (change.node, &change.address);
    let (from, to) = (change.from.name(), change.to.name());
    match change.to {
        State::Suspect | State::Dead => tracing::warn!(%node, %address, from, to, "a cluster member changed"),
        _ => tracing::info!(%node, %address, from, to, "a cluster member changed"),
    }
}

fn count(members: &[Member]) {
    for state in State::ALL {
        let number = members.iter().filter(|member| member.state == state).count();
        metrics::gauge!("bowshot_cluster_members", "state" => state.name()).set(number as f64);
    }
}

/// Microseconds since 1970.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
