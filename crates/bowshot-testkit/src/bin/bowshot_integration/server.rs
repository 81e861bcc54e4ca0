//! The simulated server: who may call, and the started results.

use crate::scenario::{Reply, Scenario};
use crate::session::CannedSession;
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, CancelOutcome, Credentials, Error, ErrorKind, Layout, Lifecycle, Limits,
    Principal, Progress, QueryId, Result, Secret, Server, ServerStatus, Session, SessionId,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A server that plays one scenario.
#[derive(Debug)]
pub(crate) struct Canned {
    about: About,
    limits: Limits,
    stage: Arc<Stage>,
}

/// What server and sessions share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) scenario: Scenario,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<SessionId, Arc<CannedSession>>,
    queries: HashMap<QueryId, Query>,
    tokens: Vec<(String, Principal)>,
}

#[derive(Debug)]
struct Query {
    reply: Reply,
    expires: Option<SystemTime>,
    cancelled: bool,
    asked: u32,
    read: Vec<usize>,
}

impl Canned {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let about = About {
            name: "Bowshot integration".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arrow_version: String::new(),
            languages: scenario.languages.clone(),
        };
        let limits = scenario.limits.clone();
        let stage = Arc::new(Stage { scenario, state: Mutex::default() });
        Self { about, limits, stage }
    }
}

impl Stage {
    /// Starts a statement.
    pub(crate) fn start(&self, reply: &Reply) -> Answer {
        let query = QueryId::random();
        let expires = reply.lives.map(|lives| SystemTime::now() + lives);
        let started = Query { reply: reply.clone(), expires, cancelled: false, asked: 0, read: Vec::new() };
        let answer = started.answer(query);
        self.state.lock().queries.insert(query, started);
        answer
    }

    pub(crate) fn close(&self, session: SessionId) {
        self.state.lock().sessions.remove(&session);
    }
}

impl Query {
    fn answer(&self, query: QueryId) -> Answer {
        Answer {
            query,
            schema: Arc::clone(&self.reply.schema),
            layout: Layout::default(),
            partitions: self.reply.partitions.len(),
            ordered: self.reply.ordered,
            rows: None,
            expires: self.expires,
            locations: Vec::new(),
            batches: None,
        }
    }

    fn read(&mut self, partition: usize) -> Result<BatchStream> {
        if self.cancelled {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        let is_over = match self.expires {
            Some(expires) => expires < SystemTime::now(),
            None => self.read.contains(&partition),
        };
        let batches = self.reply.partitions.get(partition).filter(|_| !is_over).ok_or_else(gone)?;
        self.read.push(partition);
        Ok(BatchStream::from_batches(Arc::clone(&self.reply.schema), batches.clone()))
    }
}

fn gone() -> Error {
    Error::not_found("result not found: it was read, has expired, or never was")
}

#[async_trait]
impl Server for Canned {
    fn about(&self) -> &About {
        &self.about
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn lifecycle(&self) -> Lifecycle {
        Lifecycle::Ready
    }

    fn status(&self) -> ServerStatus {
        let state = self.stage.state.lock();
        ServerStatus {
            sessions: state.sessions.len(),
            open_results: state.queries.len(),
            ..ServerStatus::default()
        }
    }

    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        let known = match (credentials, self.stage.scenario.user) {
            (Credentials::Anonymous, None) => Some(Principal::anonymous()),
            (Credentials::Password { user, password }, Some((name, secret))) => {
                (user == name && password.expose() == secret).then(|| Principal::user(name))
            }
            (Credentials::Bearer(token), _) => {
                let state = self.stage.state.lock();
                let found = state.tokens.iter().find(|(known, _)| known == token.expose());
                found.map(|(_, principal)| principal.clone())
            }
            _ => None,
        };
        known.ok_or_else(|| Error::new(ErrorKind::Unauthenticated, "wrong or missing credentials"))
    }

    fn issue_token(&self, principal: &Principal) -> Secret {
        let token = SessionId::random().to_string();
        self.stage.state.lock().tokens.push((token.clone(), principal.clone()));
        Secret::new(token)
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        let session = Arc::new(CannedSession::new(principal.clone(), Arc::clone(&self.stage)));
        self.stage.state.lock().sessions.insert(session.id(), Arc::clone(&session));
        Ok(session)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        let session = self.stage.state.lock().sessions.get(&id).map(Arc::clone);
        match session {
            Some(session) if session.principal() == principal => Ok(session),
            _ => Err(Error::not_found("session not found")),
        }
    }

    async fn attach(&self, _: &Principal, query: QueryId, partition: usize) -> Result<BatchStream> {
        self.stage.state.lock().queries.get_mut(&query).ok_or_else(gone)?.read(partition)
    }

    async fn cancel(&self, _: &Principal, query: QueryId) -> Result<CancelOutcome> {
        self.stage.state.lock().queries.get_mut(&query).ok_or_else(gone)?.cancelled = true;
        Ok(CancelOutcome::Cancelled)
    }

    fn renew(&self, _: &Principal, query: QueryId) -> Result<SystemTime> {
        let expires = SystemTime::now() + Duration::from_secs(10);
        self.stage.state.lock().queries.get_mut(&query).ok_or_else(gone)?.expires = Some(expires);
        Ok(expires)
    }

    async fn progress(&self, _: &Principal, query: QueryId, _: Option<f64>, _: Duration) -> Result<Progress> {
        let mut state = self.stage.state.lock();
        let found = state.queries.get_mut(&query).ok_or_else(gone)?;
        found.asked += 1;
        let done = found.asked > 1 || found.reply.first_progress >= 1.0;
        let fraction = if done { 1.0 } else { found.reply.first_progress };
        Ok(Progress { answer: found.answer(query), fraction, done, failed: None })
    }
}
