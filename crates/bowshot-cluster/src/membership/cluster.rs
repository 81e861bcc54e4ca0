//! A node's place in its cluster, for the rest of the program.

use crate::membership::beat::{self, ask};
use crate::membership::door;
use crate::membership::error::{Error, denied, is_denied};
use crate::membership::member::{Member, State};
use crate::membership::message::Node;
use crate::membership::security::{Keys, Purpose};
use crate::membership::settings::Settings;
use crate::membership::shared::{Shared, micros};
use crate::membership::signing::Signing;
use crate::membership::stream::WorkStream;
use crate::membership::table::{Moment, Table, Timing};
use futures::Stream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use uuid::Uuid;

/// How long the start waits for the nodes to join. Those that come later are asked again and again.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);
/// How long it may take until a connection for work is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the others may take to notice that this node leaves.
const FAREWELL: Duration = Duration::from_secs(3);
/// Connections for work that wait to be served.
const WAITING_WORK: usize = 64;

/// This node's place in its cluster. Clones are the same place; when the last one is dropped, the port closes and the others
/// no longer hear of this node.
#[derive(Debug, Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    listening: SocketAddr,
    incoming: Arc<Mutex<Option<mpsc::Receiver<WorkStream>>>>,
    _tasks: Arc<JoinSet<()>>,
}

impl Cluster {
    /// Opens the internal port, and asks the nodes to join. Those that do not answer are asked again later.
    ///
    /// # Errors
    /// For settings that cannot work, files that cannot be used, a port that is taken, and when all nodes that answered have
    /// refused this one.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        let keys = Keys::load(&settings.security)?;
        let signing = Signing::new(keys.common())?;
        let cannot = |source| Error::Listen { address: settings.listen.to_string(), source };
        let listener = TcpListener::bind(settings.listen).await.map_err(cannot)?;
        let listening = listener.local_addr().map_err(cannot)?;
        let now = Moment::now();
        let me = Node {
            id: Uuid::new_v4(),
            address: settings.advertise.clone().unwrap_or_else(|| listening.to_string()),
            public: settings.public.clone(),
            build: settings.build.clone(),
            incarnation: micros(now.wall),
            leaving: false,
            serves: false,
            guarded: false,
            threads: settings.threads,
            memory: settings.memory,
        };
        let (node, address) = (me.id, me.address.clone());
        let timing = Timing { suspect_after: settings.suspect_after, dead_after: settings.dead_after };
        let (work, incoming) = mpsc::channel(WAITING_WORK);
        let shared = Shared::new(settings, (keys, signing), Table::new(me, timing, now), work);
        let mut tasks = JoinSet::new();
        tasks.spawn(door::run(Arc::clone(&shared), listener));
        first_round(&shared).await?;
        tasks.spawn(beat::run(Arc::clone(&shared)));
        let cluster = shared.cluster();
        tracing::info!(%node, %address, %listening, %cluster, "this node is in the cluster");
        let incoming = Arc::new(Mutex::new(Some(incoming)));
        Ok(Self { shared, listening, incoming, _tasks: Arc::new(tasks) })
    }

    /// This node.
    pub fn myself(&self) -> Member {
        let table = self.shared.table();
        let id = table.me().id;
        let members = table.members(Moment::now());
        drop(table);
        members
            .into_iter()
            .find(|member| member.id == id)
            .unwrap_or_else(|| unreachable!("a node knows itself"))
    }

    /// Where the internal port is open.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// All members that are known, this node included, sorted by identifier.
    pub fn members(&self) -> Arc<Vec<Member>> {
        self.shared.members()
    }

    /// Members that can be given work: alive, of this node's build, and with somebody who serves [`Cluster::work`]. This node is
    /// one of them unless it leaves.
    pub fn workers(&self) -> Vec<Member> {
        let build = &self.shared.settings.build;
        self.members().iter().filter(|member| member.takes_work_of(build)).cloned().collect()
    }

    /// A signature of this node over a message, which every other node of the cluster can check.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.shared.signing.sign(message)
    }

    /// Whether a message was signed by the node of that identifier. Nodes with a shared secret sign for one another.
    pub fn is_signed(&self, node: Uuid, message: &[u8], signature: &[u8]) -> bool {
        let me = self.shared.table().me().id;
        self.shared.signing.is_signed((node, me), message, signature)
    }

    /// Changes whenever a member comes, goes or changes its state.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// The cluster that this node belongs to.
    pub fn cluster(&self) -> Uuid {
        self.shared.cluster()
    }

    /// The same, for good: this node's data is about to remember it, so that no other node is believed that says otherwise.
    pub fn settle(&self) -> Uuid {
        self.shared.settle()
    }

    /// A call to the node at that address has failed: it is suspect until it answers, and asked at once.
    pub fn report_failure(&self, address: &str) {
        self.shared.failed(address);
        self.shared.ask_now();
    }

    /// Connections for work that come from members. There is one taker; before it, such connections are refused.
    pub fn work(&self) -> Option<WorkIncoming> {
        let incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.shared.begin_serving();
        Some(WorkIncoming(incoming))
    }

    /// Tells the others whether this node has rules of access.
    pub fn tell_guarded(&self, guarded: bool) {
        self.shared.tell_guarded(guarded);
    }

    /// Connects to a member's internal port for work.
    ///
    /// # Errors
    /// `NotFound` for an address that is no member's, `PermissionDenied` when one end does not believe the other or the member
    /// takes no work, and what the network says.
    pub async fn connect(&self, address: &str) -> io::Result<WorkStream> {
        let (peer, id) = {
            let table = self.shared.table();
            let Some(node) = table.node_at(address) else {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("`{address}` is no member of the cluster"),
                ));
            };
            if node.build != table.me().build {
                return Err(denied(format!("the node at `{address}` is of another build")));
            }
            if table.state_at(address) == Some(State::Dead) {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    format!("the node at `{address}` is dead"),
                ));
            }
            (node.id, table.me().id)
        };
        let dial = timeout(CONNECT_TIMEOUT, self.shared.keys.dial(address, Purpose::Work(id))).await;
        match dial.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(wire) => Ok(WorkStream::new(wire, peer)),
            Err(error) => {
                if !is_denied(&error) {
                    self.report_failure(address);
                }
                Err(error)
            }
        }
    }

    /// Notes that a part of a query runs here, until the note is dropped. [`Cluster::leave`] waits for all of them.
    pub fn part(&self) -> Part {
        self.shared.parts.send_modify(|count| *count += 1);
        Part(self.shared.parts.clone())
    }

    /// Tells the others that this node ends, so that they give it no new work, and waits until the parts that run here have
    /// ended, at most so long.
    pub async fn leave(&self, drain: Duration) {
        let (since, deadline) = (self.shared.begin_leaving(), Instant::now() + drain);
        let told = async {
            while !self.shared.table().all_answered_since(since) {
                sleep(self.shared.settings.heartbeat.min(Duration::from_millis(20))).await;
            }
        };
        let others_know = timeout(FAREWELL.min(drain), told).await.is_ok();
        let mut parts = self.shared.parts.subscribe();
        let idle = timeout_at(deadline, parts.wait_for(|count| *count == 0)).await.is_ok();
        let parts = *self.shared.parts.borrow();
        tracing::info!(others_know, idle, parts, "this node leaves the cluster");
    }
}

/// Asks all nodes to join at once. It is an error when some refuse this node and none takes it.
async fn first_round(shared: &Arc<Shared>) -> Result<(), Error> {
    let mut tasks = JoinSet::new();
    for address in shared.targets() {
        let shared = Arc::clone(shared);
        tasks.spawn(async move {
            let outcome = ask(&shared, &address, &mut None, FIRST_PATIENCE).await;
            (address, outcome)
        });
    }
    let (mut taken, mut refused) = (false, None);
    while let Some(Ok((address, outcome))) = tasks.join_next().await {
        match outcome {
            Ok(_) => taken = true,
            Err(error) if is_denied(&error) => refused = Some((address, error.to_string())),
            Err(error) => tracing::info!(%address, %error, "a node to join does not answer yet"),
        }
    }
    match refused {
        Some((address, reason)) if !taken => Err(Error::Refused {
            address,
            reason,
            hint: "all nodes of a cluster have the same secret, or certificates of one authority for the addresses by \
                   which they are reached, and data of one cluster",
        }),
        _ => Ok(()),
    }
}

/// Connections for work, as they come in.
#[derive(Debug)]
pub struct WorkIncoming(mpsc::Receiver<WorkStream>);

impl Stream for WorkIncoming {
    type Item = io::Result<WorkStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(ready!(self.0.poll_recv(cx)).map(Ok))
    }
}

/// A part of a query that runs on this node.
#[derive(Debug)]
pub struct Part(watch::Sender<usize>);

impl Drop for Part {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
