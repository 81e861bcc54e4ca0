//! A node in its cluster, for the rest of the program.

use crate::membership::error::{Error, denied, is_denied};
use crate::membership::heartbeat::{self, ask};
use crate::membership::listener;
use crate::membership::member::{Member, State};
use crate::membership::message::Node;
use crate::membership::node_state::{NodeState, micros};
use crate::membership::security::{Keys, Purpose};
use crate::membership::settings::Settings;
use crate::membership::signing::Signing;
use crate::membership::stream::WorkStream;
use crate::membership::table::{Moment, Table, Timing};
use futures::Stream;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use uuid::Uuid;

/// How long the start waits for the nodes to join. They are asked again later.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);
/// Timeout of a connection for work.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the others may take to notice that this node leaves.
const FAREWELL: Duration = Duration::from_secs(3);
/// Most connections for work that wait to be served.
const WAITING_WORK: usize = 64;

/// This node in its cluster. Clones share it; when the last one is dropped, the port closes and the other nodes
/// no longer hear from this one.
#[derive(Debug, Clone)]
pub struct Cluster {
    state: Arc<NodeState>,
    listening: SocketAddr,
    incoming: Arc<Mutex<Option<mpsc::Receiver<WorkStream>>>>,
    _tasks: Arc<JoinSet<()>>,
}

impl Cluster {
    /// Opens the internal port, and asks the nodes to join. Those that do not answer are asked again later.
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
        let state = NodeState::new(settings, (keys, signing), Table::new(me, timing, now), work);
        let mut tasks = JoinSet::new();
        tasks.spawn(listener::run(Arc::clone(&state), listener));
        first_round(&state).await?;
        tasks.spawn(heartbeat::run(Arc::clone(&state)));
        let cluster = state.cluster();
        tracing::info!(%node, %address, %listening, %cluster, "this node is in the cluster");
        let incoming = Arc::new(Mutex::new(Some(incoming)));
        Ok(Self { state, listening, incoming, _tasks: Arc::new(tasks) })
    }

    /// This node.
    pub fn myself(&self) -> Member {
        let table = self.state.table.lock();
        let id = table.me().id;
        let members = table.members(Moment::now());
        drop(table);
        members
            .into_iter()
            .find(|member| member.id == id)
            .unwrap_or_else(|| unreachable!("a node knows itself"))
    }

    /// The address of the internal port.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// All members that are known, this node included, sorted by identifier.
    pub fn members(&self) -> Arc<Vec<Member>> {
        self.state.members()
    }

    /// Members that can be given work: alive, of this node's build, and serving [`Cluster::work`]. This node is
    /// one of them unless it leaves.
    pub fn workers(&self) -> Vec<Member> {
        let build = &self.state.settings.build;
        self.members().iter().filter(|member| member.takes_work_of(build)).cloned().collect()
    }

    /// Signs a message so that every node of the cluster can check it.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.state.signing.sign(message)
    }

    /// Whether a node signed a message. With a shared secret, any node may have.
    pub fn is_signed(&self, node: Uuid, message: &[u8], signature: &[u8]) -> bool {
        let me = self.state.table.lock().me().id;
        self.state.signing.is_signed((node, me), message, signature)
    }

    /// Changes when a member is added, removed or changes its state.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.state.changes.subscribe()
    }

    /// The cluster that this node belongs to.
    pub fn cluster(&self) -> Uuid {
        self.state.cluster()
    }

    /// Fixes the cluster of this node, since its data is about to record it: nodes of another cluster are refused from now on.
    pub fn settle(&self) -> Uuid {
        self.state.settle()
    }

    /// Reports a failed call to a node: it is suspect until it answers a heartbeat, which is sent at once.
    pub fn report_failure(&self, address: &str) {
        self.state.failed(address);
        self.state.ask_now();
    }

    /// Connections for work from members. They can be taken once, and are refused before.
    pub fn work(&self) -> Option<WorkIncoming> {
        let incoming = self.incoming.lock().take()?;
        self.state.begin_serving();
        Some(WorkIncoming(incoming))
    }

    /// Publishes whether this node has access rules.
    pub fn tell_guarded(&self, guarded: bool) {
        self.state.tell_guarded(guarded);
    }

    /// Connects to a member's internal port for work.
    ///
    /// # Errors
    /// `NotFound` for an address of no member, `PermissionDenied` when authentication fails or the member
    /// takes no work, and errors of the network.
    pub async fn connect(&self, address: &str) -> io::Result<WorkStream> {
        let (peer, id) = {
            let table = self.state.table.lock();
            let Some(node) = table.node_at(address) else {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("`{address}` is not a member of the cluster"),
                ));
            };
            if node.build != table.me().build {
                return Err(denied(format!("the node at `{address}` runs another build")));
            }
            if table.state_at(address) == Some(State::Dead) {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    format!("the node at `{address}` is dead"),
                ));
            }
            (node.id, table.me().id)
        };
        let dial = timeout(CONNECT_TIMEOUT, self.state.keys.dial(address, Purpose::Work(id))).await;
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

    /// Counts a running task until the returned value is dropped. [`Cluster::leave`] waits for all of them.
    pub fn begin_task(&self) -> TaskGuard {
        self.state.parts.send_modify(|count| *count += 1);
        TaskGuard(self.state.parts.clone())
    }

    /// Announces that this node leaves, so that it gets no new work, and waits until its tasks have
    /// ended, at most `drain`.
    pub async fn leave(&self, drain: Duration) {
        let (since, deadline) = (self.state.begin_leaving(), Instant::now() + drain);
        let told = async {
            while !self.state.table.lock().all_answered_since(since) {
                sleep(self.state.settings.heartbeat.min(Duration::from_millis(20))).await;
            }
        };
        let others_know = timeout(FAREWELL.min(drain), told).await.is_ok();
        let mut parts = self.state.parts.subscribe();
        let idle = timeout_at(deadline, parts.wait_for(|count| *count == 0)).await.is_ok();
        let parts = *self.state.parts.borrow();
        tracing::info!(others_know, idle, parts, "this node leaves the cluster");
    }
}

/// Asks all nodes to join at once. It is an error when some refuse this node and none accepts it.
async fn first_round(state: &Arc<NodeState>) -> Result<(), Error> {
    let mut tasks = JoinSet::new();
    for address in state.targets() {
        let state = Arc::clone(state);
        tasks.spawn(async move {
            let outcome = ask(&state, &address, &mut None, FIRST_PATIENCE).await;
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

/// Incoming connections for work.
#[derive(Debug)]
pub struct WorkIncoming(mpsc::Receiver<WorkStream>);

impl Stream for WorkIncoming {
    type Item = io::Result<WorkStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(ready!(self.0.poll_recv(cx)).map(Ok))
    }
}

/// A running task of this node.
#[derive(Debug)]
pub struct TaskGuard(watch::Sender<usize>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
