//! A service of the operator's that decides on statements, beside the rules of this server: it is asked over HTTP in JSON, as
//! Open Policy Agent is, and says yes or no.
//!
//! ```text
//! POST {"input": {"user", "admin", "roles", "client", "query", "action", "objects": [{"kind", "name", "access", "columns"}]}}
//! 200  {"result": {"allow": true}}   or   {"result": {"allow": false, "reason": "…"}}   or   {"result": true}
//! ```
//!
//! Without a decision nothing is done: no answer in time, another status, no such JSON, an unknown key in the result, too
//! many questions at once. Only decisions are kept, for seconds and for the very same question; failures never are.

use crate::Error;
use crate::outgoing::{self, HttpClient, Question};
use async_trait::async_trait;
use bowshot_api::{Decider, ErrorKind, Intent, Secret, Touch, Undecided};
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

/// Decisions that are kept; of more, none is for a moment.
const MAX_KEPT: usize = 10_000;
/// Characters of a reason that users are told.
const MAX_REASON_CHARS: usize = 300;
/// What gives no decisions is complained about so often.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// What the operator says about the service.
#[derive(Debug, Clone)]
pub struct DeciderOptions {
    /// Its address; nobody is asked where there is none.
    pub url: String,
    /// How long an answer may take, waiting for a place included.
    pub timeout: Duration,
    /// Questions that are asked at once.
    pub max_connections: usize,
    /// How long a decision holds for the very same question; zero to ask each time.
    pub cache: Duration,
    /// Authorities that vouch for the address (PEM), in place of those of this machine.
    pub ca_file: Option<PathBuf>,
    /// Is sent as a bearer token.
    pub token: Option<Secret>,
}

impl Default for DeciderOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            timeout: Duration::from_secs(2),
            max_connections: 32,
            cache: Duration::ZERO,
            ca_file: None,
            token: None,
        }
    }
}

/// See the module.
pub struct HttpDecider {
    service: Arc<Service>,
    timeout: Duration,
    cache: Duration,
    /// Where answers are waited for: queries must not delay them.
    sockets: Handle,
    kept: Mutex<HashMap<[u8; 32], Kept>>,
    complained: Mutex<Option<Instant>>,
}

struct Service {
    url: Url,
    client: HttpClient,
    authorization: Option<HeaderValue>,
    places: Semaphore,
}

#[derive(Clone)]
struct Kept {
    decision: Decision,
    until: Instant,
}

/// What the service says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Allow,
    Deny(Option<String>),
}

#[derive(Deserialize)]
struct Answer {
    result: Said,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Plain(bool),
    WithReason(WithReason),
}

/// A key that is not known could be a condition under which it is allowed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithReason {
    allow: bool,
    reason: Option<String>,
}

impl std::fmt::Debug for HttpDecider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpDecider").field("url", &self.service.url.as_str()).finish_non_exhaustive()
    }
}

impl HttpDecider {
    /// The service that the options name; `None` where they name none. To be made on the runtime of the sockets.
    ///
    /// # Errors
    /// For options that are not fully understood.
    pub fn new(options: &DeciderOptions) -> Result<Option<Self>, Error> {
        let bad = |reason: String| Error::BadDecider { reason };
        if options.url.is_empty() {
            let others = options.ca_file.is_some() || options.token.is_some();
            return if others { Err(bad("it has no `access.decision_url`".to_owned())) } else { Ok(None) };
        }
        let url = outgoing::private_address(&options.url).map_err(bad)?;
        if options.timeout.is_zero() {
            return Err(bad("`access.decision_timeout` is zero: no answer would be in time".to_owned()));
        }
        let client = HttpClient::new(&url, options.ca_file.as_deref()).map_err(bad)?;
        let authorization = match &options.token {
            None => None,
            Some(token) => {
                let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
                let mut value = value.map_err(|_| bad("`access.decision_token` is no token".to_owned()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let places = Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS));
        Ok(Some(Self {
            service: Arc::new(Service { url, client, authorization, places }),
            timeout: options.timeout,
            cache: options.cache,
            sockets: Handle::current(),
            kept: Mutex::default(),
            complained: Mutex::default(),
        }))
    }

    /// # Errors
    /// The reason why there is no decision, for the log.
    async fn ask(&self, intent: &Intent) -> Result<Decision, String> {
        let body = json!({ "input": input(intent) }).to_string();
        let (service, patience) = (Arc::clone(&self.service), self.timeout);
        let asking = self.sockets.spawn(async move {
            let asked = timeout(patience, Box::pin(service.ask(body, patience))).await;
            asked.unwrap_or_else(|_| Err(format!("no answer in {patience:?}")))
        });
        // Whoever leaves takes the question along.
        let mut asking = Leaving(asking);
        let answer = (&mut asking.0).await.map_err(|error| error.to_string())??;
        read(&answer)
    }

    fn find(&self, key: &[u8; 32], now: Instant) -> Option<Decision> {
        self.lock().get(key).filter(|kept| kept.until > now).map(|kept| kept.decision.clone())
    }

    fn keep(&self, key: [u8; 32], decision: &Decision, now: Instant) {
        let mut kept = self.lock();
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, kept| kept.until > now);
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, Kept { decision: decision.clone(), until: now + self.cache });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the operator, now and then.
    fn complain(&self, reason: &str) {
        let (mut complained, now) =
            (self.complained.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if complained.is_none_or(|before| now.duration_since(before) >= COMPLAINT_PAUSE) {
            *complained = Some(now);
            tracing::warn!(reason, "there is no decision on a statement, which is not run");
        }
    }
}

#[async_trait]
impl Decider for HttpDecider {
    async fn decide(&self, intent: &Intent) -> bowshot_api::Result<()> {
        let key = (!self.cache.is_zero()).then(|| key_of(intent));
        let known = key.and_then(|key| self.find(&key, Instant::now()));
        let decision = match known {
            Some(decision) => decision,
            None => {
                let began = Instant::now();
                let decision = self.ask(intent).await.map_err(|reason| {
                    self.complain(&reason);
                    undecided()
                })?;
                if let Some(key) = key {
                    self.keep(key, &decision, began);
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
    async fn ask(&self, body: String, patience: Duration) -> Result<Vec<u8>, String> {
        let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
        let authorization = self.authorization.clone();
        let question = Question { body: Some(body), authorization };
        self.client.ask(&self.url, question, patience).await
    }
}

/// A question that ends with whoever asks it.
struct Leaving<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Leaving<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn input(intent: &Intent) -> Value {
    let mut input = what(intent);
    input["query"] = intent.query.map_or(Value::Null, |query| Value::from(query.to_string()));
    input
}

/// The question without the id of the one statement that it is about.
fn what(intent: &Intent) -> Value {
    let objects = intent.things.iter().map(|thing| {
        json!({
            "kind": thing.kind,
            "name": thing.name,
            "access": match thing.touch { Touch::Reads => "read", Touch::Changes => "write" },
            "columns": thing.columns,
        })
    });
    json!({
        "user": intent.user,
        "admin": intent.admin,
        "roles": intent.roles,
        "client": intent.client.map(|address| address.to_string()),
        "action": intent.action,
        "objects": objects.collect::<Vec<_>>(),
    })
}

fn key_of(intent: &Intent) -> [u8; 32] {
    Sha256::digest(what(intent).to_string().as_bytes()).into()
}

/// # Errors
/// The reason why it is no decision.
fn read(answer: &[u8]) -> Result<Decision, String> {
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| format!("no decision: {error}"))?;
    Ok(match answer.result {
        Said::Plain(true) | Said::WithReason(WithReason { allow: true, .. }) => Decision::Allow,
        Said::Plain(false) => Decision::Deny(None),
        Said::WithReason(WithReason { reason, .. }) => Decision::Deny(reason),
    })
}

fn denied(reason: Option<String>) -> bowshot_api::Error {
    let reason: String =
        reason.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
    let message = match reason.trim() {
        "" => "the policy of this server's operator denies the statement".to_owned(),
        reason => format!("the policy of this server's operator denies the statement: {reason}"),
    };
    bowshot_api::Error::new(ErrorKind::Denied, message).with_hint("ask the operator, whose service decides")
}

fn undecided() -> bowshot_api::Error {
    bowshot_api::Error::new(
        ErrorKind::Unavailable,
        "the service that decides on statements gave no decision, and the statement is not run",
    )
    .with_hint("try again; the reason is in the server's log")
    .with_source(Undecided)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Thing;

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
        let intent = Intent {
            user: "ada".to_owned(),
            action: "query",
            things: vec![Thing::table(["a", "b", "c"], Touch::Reads).with_columns(["id"])],
            ..Intent::default()
        };
        let same = Intent { query: Some(bowshot_api::QueryId::random()), ..intent.clone() };
        assert_eq!(key_of(&intent), key_of(&same));
        for other in [
            Intent { user: "bob".to_owned(), ..intent.clone() },
            Intent { admin: true, ..intent.clone() },
            Intent { roles: ["r".to_owned()].into(), ..intent.clone() },
            Intent { client: Some([127, 0, 0, 1].into()), ..intent.clone() },
            Intent { action: "insert", ..intent.clone() },
            Intent {
                things: vec![Thing::table(["a", "b", "c"], Touch::Changes).with_columns(["id"])],
                ..intent.clone()
            },
            Intent {
                things: vec![Thing::table(["a", "b.c"], Touch::Reads).with_columns(["id"])],
                ..intent.clone()
            },
            Intent { things: vec![Thing::table(["a", "b", "c"], Touch::Reads)], ..intent.clone() },
            Intent { things: Vec::new(), ..intent.clone() },
        ] {
            assert_ne!(key_of(&intent), key_of(&other), "{other:?}");
        }
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let error = denied(Some(format!("a\nb\u{1b}[31m{}", "x".repeat(1_000))));
        assert!(!error.message().chars().any(char::is_control) && error.message().len() < 400);
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
}
