//! HTTP requests to a catalog service, on the threads of the object stores, with their timeouts and retries and a limit on responses.
//! Errors never quote a response. Redirects are followed within the origin only.

use super::client::Shared;
use super::fault::Fault;
use bowshot_api::{Error, Result, Secret};
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use object_store::HeaderValue;
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use reqwest::redirect;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

/// The first pause between two attempts; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Redirects that one request follows.
const MAX_REDIRECTS: usize = 5;

/// How long is waited, and how often asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For an answer, with all attempts.
    pub timeout: Duration,
    /// For one request.
    pub(crate) request_timeout: Duration,
    pub connect_timeout: Duration,
    pub(crate) max_retries: usize,
}

#[derive(Debug)]
pub struct WebClient {
    client: HttpClient,
    shared: Arc<Shared>,
    patience: Patience,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Call {
    pub url: Url,
    pub bearer: Option<Secret>,
    /// More that is said before the body.
    pub headers: Vec<(&'static str, &'static str)>,
    pub method: Method,
    /// Most bytes of an answer.
    pub most: usize,
    /// When the wait for an answer ends, if that is sooner than it does anyway.
    pub until: Option<Instant>,
}

/// How it is asked, with what is sent.
#[derive(Debug, Clone)]
pub enum Method {
    Get,
    Delete,
    PostForm(Secret),
    PostJson(Bytes),
    /// The same once: the answer to a second one may be about what the first one has done.
    PostJsonOnce(Bytes),
}

/// What is answered. It cannot be shown: there may be credentials in it.
pub struct Answer {
    pub status: u16,
    pub bytes: Bytes,
}

impl WebClient {
    pub(super) fn new(
        shared: Arc<Shared>,
        patience: Patience,
        (plain, authority): (bool, Option<&str>),
    ) -> Result<Self> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("bowshot/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .https_only(!plain)
            .redirect(redirect::Policy::custom(redirected))
            .referer(false)
            .timeout(patience.request_timeout.min(patience.timeout))
            .connect_timeout(patience.connect_timeout.min(patience.timeout));
        let client = match authority {
            Some(path) => client.add_root_certificate(certificate(path)?),
            None => client,
        };
        let client = client.build();
        let client =
            client.map_err(|_| Error::internal("cannot create an HTTP client with these settings"))?;
        Ok(Self { client: HttpClient::new(client), shared, patience })
    }

    pub fn timeout(&self) -> Duration {
        self.patience.timeout
    }

    /// Asks until an answer counts, the time is over, or asking again is of no use.
    ///
    /// # Errors
    /// When none comes. Answers with a status that is an error are none of these, but for those that may pass.
    pub async fn call(&self, call: Call) -> std::result::Result<Answer, Fault> {
        let left = call.until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(self.patience.timeout, |left| left.min(self.patience.timeout));
        let (client, patience) = (self.client.clone(), Patience { timeout, ..self.patience });
        let asking = async move {
            let all = attempts(&client, &call, patience);
            tokio::time::timeout(patience.timeout, all).await.unwrap_or(Err(Fault::Late(patience.timeout)))
        };
        self.shared.io.spawn(asking).done().await?
    }
}

/// Another path of the same service is asked instead, and no other service.
fn redirected(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let from = attempt.previous();
    let is_near = from.last().is_some_and(|from| from.origin() == attempt.url().origin());
    if is_near && from.len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn certificate(path: &str) -> Result<reqwest::Certificate> {
    let pem = std::fs::read(path);
    let pem = pem.map_err(|error| Error::invalid(format!("`{path}` cannot be read: {error}")))?;
    reqwest::Certificate::from_pem(&pem).map_err(|_| Error::invalid(format!("`{path}` has no certificate")))
}

async fn attempts(
    client: &HttpClient,
    call: &Call,
    patience: Patience,
) -> std::result::Result<Answer, Fault> {
    let deadline = Instant::now() + patience.timeout;
    let (mut pause, mut attempt) = (FIRST_PAUSE, 0);
    let most = if matches!(call.method, Method::PostJsonOnce(_)) { 0 } else { patience.max_retries };
    loop {
        let asked = once(client, call).await;
        let passes = match &asked {
            Ok(answer) => matches!(answer.status, 429 | 500 | 502 | 503 | 504),
            Err(fault) => matches!(fault, Fault::Connection),
        };
        if !passes || attempt >= most || Instant::now() + pause >= deadline {
            return match asked {
                Ok(answer) if passes => Err(Fault::Status(answer.status)),
                other => other,
            };
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        attempt += 1;
    }
}

async fn once(client: &HttpClient, call: &Call) -> std::result::Result<Answer, Fault> {
    let answer = client.execute(request(call)?).await.map_err(|_| Fault::Connection)?;
    let status = answer.status().as_u16();
    let mut body = answer.into_body().bytes_stream();
    let mut bytes = BytesMut::new();
    while let Some(part) = body.try_next().await.map_err(|_| Fault::Connection)? {
        if bytes.len() + part.len() > call.most {
            return Err(Fault::Strange("its response is too large"));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Answer { status, bytes: bytes.freeze() })
}

fn request(call: &Call) -> std::result::Result<HttpRequest, Fault> {
    const WRONG: Fault = Fault::Strange("invalid settings of its HTTP client");
    let (method, body) = match &call.method {
        Method::Get => ("GET", None),
        Method::Delete => ("DELETE", None),
        Method::PostForm(form) => {
            let form = Bytes::copy_from_slice(form.expose().as_bytes());
            ("POST", Some((form, "application/x-www-form-urlencoded")))
        }
        Method::PostJson(json) | Method::PostJsonOnce(json) => {
            ("POST", Some((json.clone(), "application/json")))
        }
    };
    let (body, content_type) = match body {
        Some((body, content_type)) => (HttpRequestBody::from(body), Some(content_type)),
        None => (HttpRequestBody::empty(), None),
    };
    let mut request = HttpRequest::new(body);
    *request.method_mut() = method.parse().map_err(|_| WRONG)?;
    *request.uri_mut() = call.url.as_str().parse().map_err(|_| WRONG)?;
    let headers = request.headers_mut();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    if let Some(content_type) = content_type {
        headers.insert("content-type", HeaderValue::from_static(content_type));
    }
    for (name, value) in call.headers.iter().copied() {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(bearer) = &call.bearer {
        let text = format!("Bearer {}", bearer.expose());
        let mut value = HeaderValue::from_str(&text).map_err(|_| WRONG)?;
        // Kept out of whatever a library shows.
        value.set_sensitive(true);
        headers.insert("authorization", value);
    }
    Ok(request)
}
