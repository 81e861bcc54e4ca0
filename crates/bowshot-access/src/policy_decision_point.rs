//! Client of an external policy service, which decides in addition to the access rules. It speaks HTTP and JSON like
//! Open Policy Agent.
//!
//! ```text
//! POST {"input": {"user", "admin", "roles", "client", "query", "action", "objects": [{"kind", "name", "access",
//! "columns"}]}}
//! 200  {"result": {"allow": true}}   or   {"result": {"allow": false, "reason": "…"}}   or   {"result": true}
//! ```
//!
//! Without a decision the action is refused: on timeout, another status, invalid JSON, unknown keys, or too many
//! concurrent requests. Decisions are cached for seconds, by the whole request; failures are not.

use crate::Error;
use crate::http_client::{self, HttpClient, Question};
use async_trait::async_trait;
use bowshot_api::{AccessKind, AccessRequest, ErrorKind, NoDecision, PolicyDecisionPoint, Secret};
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

/// Cached decisions; a full cache is cleared.
const MAX_CACHED: usize = 10_000;
/// Characters of a reason shown to users.
const MAX_REASON_CHARS: usize = 300;
/// Pause between log messages about missing decisions.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

bowshot_api::defaults! {
    /// Options of the service.
    #[derive(Debug, Clone)]
    pub struct PolicyDecisionOptions {
        /// Its address; empty for no service.
        pub url: String = String::new(),
        /// Timeout, waiting for a permit included.
        pub timeout: Duration = Duration::from_secs(2),
        /// Concurrent requests.
        pub max_connections: usize = 32,
        /// How long decisions are cached; zero for not at all.
        pub cache: Duration = Duration::ZERO,
        /// Trusted authorities (PEM) instead of the system's.
        pub ca_file: Option<PathBuf> = None,
        /// Bearer token.
        pub token: Option<Secret> = None,
    }
}

pub struct HttpPolicyDecisionPoint {
    service: Arc<Service>,
    timeout: Duration,
    cache: Duration,
    /// Socket runtime: queries must not delay answers.
    sockets: Handle,
    cached: Mutex<HashMap<[u8; 32], CachedDecision>>,
    last_logged: Mutex<Option<Instant>>,
}

struct Service {
    url: Url,
    client: HttpClient,
    authorization: Option<HeaderValue>,
    permits: Semaphore,
}

#[derive(Clone)]
struct CachedDecision {
    decision: Decision,
    until: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Allow,
    Deny(Option<String>),
}

#[derive(Deserialize)]
struct Answer {
    result: ResultField,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ResultField {
    Plain(bool),
    WithReason(WithReason),
}

/// Unknown keys are refused: they may restrict the decision.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithReason {
    allow: bool,
    reason: Option<String>,
}

impl std::fmt::Debug for HttpPolicyDecisionPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpPolicyDecisionPoint")
            .field("url", &self.service.url.as_str())
            .finish_non_exhaustive()
    }
}

impl HttpPolicyDecisionPoint {
    /// The configured service, if any. Create it on the socket runtime.
    ///
    /// # Errors
    /// For options that are not fully understood.
    pub fn new(options: &PolicyDecisionOptions) -> Result<Option<Self>, Error> {
        let bad = |reason: String| Error::InvalidPolicyService { reason };
        if options.url.is_empty() {
            let others = options.ca_file.is_some() || options.token.is_some();
            return if others { Err(bad("it has no `access.decision_url`".to_owned())) } else { Ok(None) };
        }
        let url = http_client::private_address(&options.url).map_err(bad)?;
        if options.timeout.is_zero() {
            return Err(bad("`access.decision_timeout` is zero: no answer would be in time".to_owned()));
        }
        let client = HttpClient::new(&url, options.ca_file.as_deref()).map_err(bad)?;
        let authorization = match &options.token {
            None => None,
            Some(token) => {
                let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
                let mut value = value
                    .map_err(|_| bad("`access.decision_token` is not a valid header value".to_owned()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let permits = Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS));
        Ok(Some(Self {
            service: Arc::new(Service { url, client, authorization, permits }),
            timeout: options.timeout,
            cache: options.cache,
            sockets: Handle::current(),
            cached: Mutex::default(),
            last_logged: Mutex::default(),
        }))
    }

    /// # Errors
    /// The reason why there is no decision, for the log.
    async fn ask(&self, request: &AccessRequest) -> Result<Decision, String> {
        let body = json!({ "input": input(request) }).to_string();
        let (service, limit) = (Arc::clone(&self.service), self.timeout);
        let task = self.sockets.spawn(async move {
            let asked = timeout(limit, Box::pin(service.ask(body, limit))).await;
            asked.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")))
        });
        // Dropping the caller aborts the request.
        let mut task = AbortOnDrop(task);
        let answer = (&mut task.0).await.map_err(|error| error.to_string())??;
        read(&answer)
    }

    fn find(&self, key: &[u8; 32], now: Instant) -> Option<Decision> {
        self.cached.lock().get(key).filter(|cached| cached.until > now).map(|cached| cached.decision.clone())
    }

    fn insert(&self, key: [u8; 32], decision: &Decision, now: Instant) {
        let mut cached = self.cached.lock();
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, cached| cached.until > now);
        }
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(key, CachedDecision { decision: decision.clone(), until: now + self.cache });
    }

    /// Tells the operator, now and then.
    fn log_failure(&self, reason: &str) {
        let (mut last_logged, now) = (self.last_logged.lock(), Instant::now());
        if last_logged.is_none_or(|before| now.duration_since(before) >= LOG_INTERVAL) {
            *last_logged = Some(now);
            tracing::warn!(reason, "the policy service gave no decision on a statement");
        }
    }
}

#[async_trait]
impl PolicyDecisionPoint for HttpPolicyDecisionPoint {
    async fn decide(&self, request: &AccessRequest) -> bowshot_api::Result<()> {
        let key = (!self.cache.is_zero()).then(|| key_of(request));
        let known = key.and_then(|key| self.find(&key, Instant::now()));
        let decision = match known {
            Some(decision) => decision,
            None => {
                let began = Instant::now();
                let decision = self.ask(request).await.map_err(|reason| {
                    self.log_failure(&reason);
                    undecided()
                })?;
                if let Some(key) = key {
                    self.insert(key, &decision, began);
                }
                decision
            }
        };
        match decision {
            Decision::Allow => Ok(()),
            Decision::Deny(reason) => Err(denied(reason)),
        }
    }
}

impl Service {
    async fn ask(&self, body: String, limit: Duration) -> Result<Vec<u8>, String> {
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        let authorization = self.authorization.clone();
        let question = Question { body: Some(body), authorization };
        self.client.ask(&self.url, question, limit).await
    }
}

/// A task that is aborted on drop.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn input(request: &AccessRequest) -> Value {
    let mut input = cache_input(request);
    input["query"] = request.query.map_or(Value::Null, |query| Value::from(query.to_string()));
    input
}

/// The request without its statement id.
fn cache_input(request: &AccessRequest) -> Value {
    let objects = request.resources.iter().map(|resource| {
        json!({
            "kind": resource.kind,
            "name": resource.name,
            "access": match resource.touch { AccessKind::Reads => "read", AccessKind::Changes => "write" },
            "columns": resource.columns,
        })
    });
    json!({
        "user": request.user,
        "admin": request.admin,
        "roles": request.roles,
        "client": request.client.map(|address| address.to_string()),
        "action": request.action,
        "objects": objects.collect::<Vec<_>>(),
    })
}

fn key_of(request: &AccessRequest) -> [u8; 32] {
    Sha256::digest(cache_input(request).to_string().as_bytes()).into()
}

/// # Errors
/// The reason why it is no decision.
fn read(answer: &[u8]) -> Result<Decision, String> {
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| format!("no decision: {error}"))?;
    Ok(match answer.result {
        ResultField::Plain(true) | ResultField::WithReason(WithReason { allow: true, .. }) => Decision::Allow,
        ResultField::Plain(false) => Decision::Deny(None),
        ResultField::WithReason(WithReason { reason, .. }) => Decision::Deny(reason),
    })
}

fn denied(reason: Option<String>) -> bowshot_api::Error {
    let reason: String =
        reason.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
    let message = match reason.trim() {
        "" => "the policy of this server's operator denies the statement".to_owned(),
        reason => format!("the policy of this server's operator denies the statement: {reason}"),
    };
    bowshot_api::Error::new(ErrorKind::Denied, message).with_hint("ask the operator of the policy service")
}

fn undecided() -> bowshot_api::Error {
    bowshot_api::Error::new(
        ErrorKind::Unavailable,
        "the policy service gave no decision, so the statement was not run",
    )
    .with_hint("try again; the reason is in the server's log")
    .with_source(NoDecision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Resource;

    #[test]
    fn only_what_is_understood_is_a_decision() {
        let deny = |reason: &str| Decision::Deny(Some(reason.to_owned()));
        for (answer, expected) in [
            (r#"{"result": true}"#, Decision::Allow),
            (r#"{"result": {"allow": true}, "decision_id": "1"}"#, Decision::Allow),
            (r#"{"result": false}"#, Decision::Deny(None)),
            (r#"{"result": {"allow": false, "reason": "closed"}}"#, deny("closed")),
        ] {
            assert_eq!(read(answer.as_bytes()), Ok(expected), "{answer}");
        }
        for answer in [
            "",
            "true",
            "{}",
            r#"{"result": null}"#,
            r#"{"result": "true"}"#,
            r#"{"result": 1}"#,
            r#"{"result": {}}"#,
            r#"{"result": {"allow": "yes"}}"#,
            r#"{"result": {"allow": true, "filter": "id > 1"}}"#,
            r#"{"result": true} {"#,
            r#"{"allow": true}"#,
        ] {
            assert!(read(answer.as_bytes()).is_err(), "{answer}");
        }
    }

    #[test]
    fn decisions_are_for_the_very_same_question() {
        let request = AccessRequest {
            user: "ada".to_owned(),
            action: "query",
            resources: vec![Resource::table(["a", "b", "c"], AccessKind::Reads).with_columns(["id"])],
            ..AccessRequest::default()
        };
        let same = AccessRequest { query: Some(bowshot_api::QueryId::random()), ..request.clone() };
        assert_eq!(key_of(&request), key_of(&same));
        for other in [
            AccessRequest { user: "bob".to_owned(), ..request.clone() },
            AccessRequest { admin: true, ..request.clone() },
            AccessRequest { roles: ["r".to_owned()].into(), ..request.clone() },
            AccessRequest { client: Some([127, 0, 0, 1].into()), ..request.clone() },
            AccessRequest { action: "insert", ..request.clone() },
            AccessRequest {
                resources: vec![Resource::table(["a", "b", "c"], AccessKind::Changes).with_columns(["id"])],
                ..request.clone()
            },
            AccessRequest {
                resources: vec![Resource::table(["a", "b.c"], AccessKind::Reads).with_columns(["id"])],
                ..request.clone()
            },
            AccessRequest {
                resources: vec![Resource::table(["a", "b", "c"], AccessKind::Reads)],
                ..request.clone()
            },
            AccessRequest { resources: Vec::new(), ..request.clone() },
        ] {
            assert_ne!(key_of(&request), key_of(&other), "{other:?}");
        }
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let error = denied(Some(format!("a\nb\u{1b}[31m{}", "x".repeat(1_000))));
        assert!(!error.message().chars().any(char::is_control) && error.message().len() < 400);
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
}
