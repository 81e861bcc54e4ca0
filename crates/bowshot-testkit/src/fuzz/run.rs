//! Drives workers over the cases, counts calls, keeps what went wrong.

use super::call::{Answer, Call, Connection, Outcome};
use super::case;
use super::judge::{self, Level};
use super::random::Random;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls on one connection before it is closed for a new one.
const CALLS_PER_CONNECTION: u64 = 150;
/// Failures of one kind that are kept with their bytes.
const KEPT_PER_KIND: usize = 3;
/// Bytes of a failing request that are shown.
const SHOWN_BYTES: usize = 600;
/// Failures after which the run ends.
const ENOUGH: u64 = 2_000;

/// What a run should do.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Where the server is.
    pub address: SocketAddr,
    /// Seed of all choices.
    pub seed: u64,
    /// Calls to make at least.
    pub calls: u64,
    /// Clients at once.
    pub workers: u64,
    /// Only this case, to look at a failure again.
    pub only: Option<u64>,
    /// Which cases: of all kinds, or exchanges alone.
    pub kinds: Kinds,
}

/// Which cases a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// All, each as often as it deserves.
    All,
    /// Statements over rows that come with them.
    Exchanges,
}

/// A failure with everything needed to repeat it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Number of the case: `--case` repeats it.
    pub case: u64,
    pub kind: &'static str,
    /// What was wrong.
    pub text: String,
    pub request: String,
}

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Tally {
    /// Calls by kind of case.
    pub calls: BTreeMap<&'static str, u64>,
    /// Answers by gRPC code; other answers below 0.
    pub codes: BTreeMap<i32, u64>,
    /// Faults by kind and text without numbers: how often, and examples.
    pub faults: BTreeMap<String, (u64, Vec<Fault>)>,
}

impl Tally {
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    pub fn failed(&self) -> u64 {
        self.faults.values().map(|(count, _)| count).sum()
    }
}

struct Shared {
    plan: Plan,
    next: AtomicU64,
    made: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
    tally: Mutex<Tally>,
}

/// One worker's view: its connection and the case it is at.
pub struct Client {
    shared: Arc<Shared>,
    connection: Option<Connection>,
    calls: u64,
    case: u64,
}

/// Runs all cases; returns when enough calls are made, or too many failed.
pub async fn run(plan: Plan, progress: impl Fn(u64, u64)) -> Tally {
    let shared = Arc::new(Shared {
        plan,
        next: AtomicU64::new(0),
        made: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        tally: Mutex::new(Tally::default()),
    });
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..plan.workers {
        workers.spawn(work(Arc::clone(&shared)));
    }
    let mut ticks = tokio::time::interval(std::time::Duration::from_secs(5));
    loop {
        tokio::select! {
            ended = workers.join_next() => match ended {
                None => break,
                Some(Err(error)) => shared.note("worker", error.to_string(), "", 0),
                Some(Ok(())) => {}
            },
            _ = ticks.tick() => {
                progress(shared.made.load(Ordering::Relaxed), shared.failed.load(Ordering::Relaxed));
            }
        }
    }
    std::mem::take(&mut *shared.tally.lock())
}

async fn work(shared: Arc<Shared>) {
    let plan = shared.plan;
    let mut client = Client { shared: Arc::clone(&shared), connection: None, calls: 0, case: 0 };
    while !shared.stop.load(Ordering::Relaxed) {
        client.case = match plan.only {
            Some(case) => case,
            None => shared.next.fetch_add(1, Ordering::Relaxed),
        };
        let mut random = Random::new(plan.seed, client.case);
        match plan.kinds {
            Kinds::All => Box::pin(case::run(&mut client, &mut random)).await,
            Kinds::Exchanges => Box::pin(case::exchange(&mut client, &mut random)).await,
        }
        let enough = shared.made.load(Ordering::Relaxed) >= plan.calls || plan.only.is_some();
        if enough || shared.failed.load(Ordering::Relaxed) > ENOUGH {
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared {
    fn note(&self, kind: &'static str, text: String, request: &str, case: u64) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let group: String = text.chars().filter(|letter| !letter.is_ascii_digit()).take(100).collect();
        let mut tally = self.tally.lock();
        let (count, kept) = tally.faults.entry(format!("{kind}: {group}")).or_default();
        *count += 1;
        if kept.len() < KEPT_PER_KIND {
            kept.push(Fault { case, kind, text, request: request.to_owned() });
        }
    }
}

impl Client {
    /// Where the server is.
    pub fn address(&self) -> SocketAddr {
        self.shared.plan.address
    }

    pub fn count(&mut self, kind: &'static str) {
        self.shared.made.fetch_add(1, Ordering::Relaxed);
        *self.shared.tally.lock().calls.entry(kind).or_default() += 1;
    }

    pub fn fail(&mut self, kind: &'static str, text: String, request: &[u8]) {
        self.shared.note(
            kind,
            text,
            &request[..request.len().min(SHOWN_BYTES)].escape_ascii().to_string(),
            self.case,
        );
    }

    /// Drops the connection; the next call makes a new one.
    pub fn forget_connection(&mut self) {
        self.connection = None;
    }

    /// Makes a call, counts it, judges its answer.
    pub async fn call(&mut self, kind: &'static str, level: Level, call: Call) -> Outcome {
        self.count(kind);
        self.calls += 1;
        if self.calls.is_multiple_of(CALLS_PER_CONNECTION) {
            self.connection = None;
        }
        if self.connection.as_ref().is_none_or(|connection| !connection.is_usable()) {
            match Connection::open(self.address()).await {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    self.fail(kind, format!("cannot connect: {error:#}"), b"");
                    self.shared.stop.store(true, Ordering::Relaxed);
                    let answer = Answer::Lost(error.to_string());
                    return Outcome { answer, body: Bytes::new(), cookies: Vec::new() };
                }
            }
        }
        let Some(connection) = &mut self.connection else { unreachable!("it was made above") };
        let outcome = connection.send(&call).await;
        self.count_code(&outcome.answer);
        if let Some(text) = judge::fault(&call, level, &outcome.answer) {
            let head = format!("{} {:?} {:?} ", call.path, call.headers, call.ending);
            self.fail(kind, text, &[head.as_bytes(), &call.body].concat());
        }
        if matches!(outcome.answer, Answer::Lost(_) | Answer::Hung) {
            self.connection = None;
        }
        outcome
    }

    fn count_code(&self, answer: &Answer) {
        let code = match answer {
            Answer::Status { code, .. } => *code,
            Answer::Http(_) => -1,
            Answer::Reset(_) => -2,
            Answer::Left => -3,
            Answer::Hung => -4,
            Answer::Lost(_) => -5,
            Answer::Unsendable => -6,
        };
        *self.shared.tally.lock().codes.entry(code).or_default() += 1;
    }
}
