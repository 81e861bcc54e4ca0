//! The caller of one call: principal, deadline and session.

use crate::Profile;
use crate::connection::{Connection, Who};
use crate::message_size::{self, MessageSizes};
use crate::{auth, cookie};
use bowshot_api::{Error, ErrorKind, OptionValue, Principal, Result, Secret, Server, Session, SessionId};
use bowshot_ipc::Primed;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Headers of clients of other servers, and the options that they set.
const OPTION_HEADERS: [(&str, &str); 3] =
    [("database", "catalog"), ("catalog", "catalog"), ("schema", "schema")];
/// User agents that read unsigned numbers as signed, and VARIANT as bytes, contain this: Arrow's JDBC driver, `JDBC Flight SQL
/// Driver`, and its derivatives.
const SIGNED_AGENT: &str = "JDBC";
/// User agents that query the server before any statement contain this: if such a client begins with a statement, it
/// has reconnected.
const ASKING_AGENT: &str = "ADBC Flight SQL Driver";
/// Headers by which a proxy in front of several servers has chosen this one. They choose nothing here; the log has them, so that
/// an operator can follow a call.
const ROUTING_HEADERS: [&str; 3] = ["tenant", "pool", "database"];
const ROUTING_CHARACTERS: usize = 100;
/// Begins the names of headers that set any session option: `bowshot-endpoints: auto`.
const OPTION_PREFIX: &str = "bowshot-";
/// Names the session of a call of gRPC-Web, as in requests over HTTP. Browsers send cookies without being asked.
pub(crate) const SESSION_HEADER: &str = "x-bowshot-session";

/// Header by which a client asks for the Unix socket (`same_host.rs`), and the server announces it.
const SAME_HOST: &str = "x-bowshot-same-host";

#[derive(Debug)]
pub(crate) struct Caller {
    connection: Arc<Connection>,
    principal: Principal,
    token: Option<Secret>,
    /// The session's name, from the cookie, or in gRPC-Web from the header.
    cookie: Option<String>,
    options: Vec<(String, OptionValue)>,
    /// Whether the client asks about the server before it sends statements.
    asks_first: bool,
    routing: Option<String>,
    deadline: Option<Instant>,
    messages: MessageSizes,
    opened: OnceLock<SessionId>,
}

impl Caller {
    pub(crate) async fn identify(
        connection: Arc<Connection>,
        headers: &HeaderMap,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let (principal, token) = auth::authenticate(&connection, headers).await?;
        let caller = Self::known(connection, principal, headers, deadline)?;
        Ok(Self { token, cookie: cookie::read(headers), ..caller })
    }

    /// A caller that another front end has authenticated. A header names its session.
    pub(crate) fn known(
        connection: Arc<Connection>,
        principal: Principal,
        headers: &HeaderMap,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let messages = MessageSizes::from_headers(headers, connection.server().limits())?;
        Ok(Self {
            connection,
            principal,
            token: None,
            cookie: headers.get(SESSION_HEADER).map(|name| name.to_str().unwrap_or_default().to_owned()),
            options: options(headers)?,
            asks_first: agent(headers).is_some_and(|agent| agent.contains(ASKING_AGENT)),
            routing: routing(headers),
            deadline,
            messages,
            opened: OnceLock::new(),
        })
    }

    pub(crate) fn server(&self) -> &dyn Server {
        self.connection.server()
    }

    pub(crate) fn profile(&self) -> &Profile {
        self.connection.profile()
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The announcement of the Unix socket, for local clients that ask.
    pub(crate) fn same_host(&self, headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
        let announcement = self.connection.announcement()?;
        let told = || (HeaderName::from_static(SAME_HOST), announcement.clone());
        headers.contains_key(SAME_HOST).then(told)
    }

    pub(crate) fn messages(&self) -> MessageSizes {
        self.messages
    }

    /// Whether the client has had a large message.
    pub(crate) fn primed(&self) -> &Primed {
        self.connection.primed()
    }

    /// Deadline of the response head, if the client set one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The session that this call opened, for the answer's cookie.
    pub(crate) fn session_id(&self) -> Option<SessionId> {
        self.opened.get().copied()
    }

    /// The call's session; opens one if there is none.
    ///
    /// # Errors
    /// `NotFound` if the caller's cookie names a session that is closed or expired.
    pub(crate) async fn session(&self) -> Result<Arc<dyn Session>> {
        match &self.cookie {
            Some(value) => self.by_cookie(value),
            None => {
                let session = self.current_or_new().await?;
                if self.asks_first && self.opened.get().is_some() {
                    self.connection.check_lost(self.who())?;
                }
                Ok(session)
            }
        }
    }

    /// As [`Self::session`], but replaces a closed session: for the calls with which clients connect.
    pub(crate) async fn session_or_new(&self) -> Result<Arc<dyn Session>> {
        match self.cookie.as_deref().map(|value| self.by_cookie(value)) {
            Some(Ok(session)) => Ok(session),
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
            Some(Err(_)) => {
                let session = self.current_or_new().await?;
                // The client must learn the new cookie even if the session was there already.
                let _ = self.opened.set(session.id());
                Ok(session)
            }
            None => self.current_or_new().await,
        }
    }

    pub(crate) async fn open_session(&self) -> Result<Option<Arc<dyn Session>>> {
        match &self.cookie {
            Some(value) => self.by_cookie(value).map(Some),
            None => Ok(self.connection.current(self.who()).await),
        }
    }

    /// Refuses calls whose session is closed.
    pub(crate) fn check_cookie(&self) -> Result<()> {
        self.cookie.as_ref().map_or(Ok(()), |value| self.by_cookie(value).map(|_| ()))
    }

    fn by_cookie(&self, value: &str) -> Result<Arc<dyn Session>> {
        self.connection.by_cookie(value, &self.principal).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::not_found("session not found: it was closed or has expired")
                .with_hint("connect again without the cookie `arrow_flight_session_id`, or the header `x-bowshot-session`"),
            _ => error,
        })
    }

    async fn current_or_new(&self) -> Result<Arc<dyn Session>> {
        let (session, new) = self.connection.current_or_new(self.who()).await?;
        if new {
            let _ = self.opened.set(session.id());
            if let Some(routing) = &self.routing {
                tracing::info!(session = %session.id(), routing, "a session was opened by way of a router");
            }
        }
        Ok(session)
    }

    fn who(&self) -> Who<'_> {
        Who { principal: &self.principal, token: self.token.as_ref(), options: &self.options }
    }
}

fn agent(headers: &HeaderMap) -> Option<&str> {
    headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok())
}

/// The session options that the headers ask for. They count for the session that the call opens, if it opens one.
fn options(headers: &HeaderMap) -> Result<Vec<(String, OptionValue)>> {
    let mut options = Vec::new();
    if agent(headers).is_some_and(|agent| agent.contains(SIGNED_AGENT)) {
        let plain = ["wide_numbers", "json_variants"];
        options.extend(plain.map(|option| (option.to_owned(), OptionValue::Bool(true))));
    }
    for (name, value) in headers {
        let name = name.as_str();
        let option = match OPTION_HEADERS.iter().find(|(header, _)| *header == name) {
            Some((_, option)) => (*option).to_owned(),
            None if name == message_size::HEADER => continue,
            None => match name.strip_prefix(OPTION_PREFIX) {
                Some(option) => option.replace('-', "_"),
                None => continue,
            },
        };
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_| Error::invalid(format!("the header `{name}` is not UTF-8")))?;
        if !text.is_empty() {
            options.push((option, OptionValue::String(text.to_owned())));
        }
    }
    Ok(options)
}

/// The headers of a router, in one line; `None` without the two that only routers send.
fn routing(headers: &HeaderMap) -> Option<String> {
    let [tenant, pool, _] = ROUTING_HEADERS;
    if !headers.contains_key(tenant) && !headers.contains_key(pool) {
        return None;
    }
    let told = ROUTING_HEADERS.into_iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().unwrap_or("?");
        let shown: String = value.chars().take(ROUTING_CHARACTERS).collect();
        Some(format!("{name}={shown}"))
    });
    Some(told.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_routers() {
        let mut headers = HeaderMap::new();
        headers.insert("database", "shop".parse().unwrap());
        assert_eq!(routing(&headers), None);
        headers.insert("tenant", "acme".parse().unwrap());
        headers.insert("pool", http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(routing(&headers).as_deref(), Some("tenant=acme pool=? database=shop"));
    }

    #[test]
    fn headers_that_mean_options() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("database", "shop"),
            ("schema", ""),
            ("bowshot-endpoints", "auto"),
            ("bowshot-time-zone", "UTC"),
            ("user-agent", "x"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let mut found = options(&headers).unwrap();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let text = |text: &str| OptionValue::String(text.to_owned());
        let expected = [("catalog", "shop"), ("endpoints", "auto"), ("time_zone", "UTC")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), text(value))));
        for (agent, signed) in [
            ("JDBC Flight SQL Driver 18.3.0 grpc-java-netty/1.71.0", true),
            ("grpc-java-netty/1.71.0", false),
            ("ADBC Flight SQL Driver v1.8.0 grpc-go/1.73.0", false),
        ] {
            headers.insert("user-agent", agent.parse().unwrap());
            let wide = ("wide_numbers".to_owned(), OptionValue::Bool(true));
            assert_eq!(options(&headers).unwrap().contains(&wide), signed, "{agent}");
        }
        headers.insert("schema", http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(options(&headers).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
