//! One client connection and its sessions. A call's session is found by its cookie, else by the bearer token of a
//! handshake, else by its connection. A session that was never named by cookie or token is closed with its
//! connection; others end after `session_timeout`.

use crate::Profile;
use crate::connection_limiter::EvictionHandle;
use crate::lost_sessions::LostSessions;
use bowshot_api::{
    AuthCache, ClientCertificate, Credentials, Error, ErrorKind, OptionValue, Principal, Result, Secret,
    Server, Session, SessionId,
};
use bowshot_ipc::Primed;
use http::HeaderValue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Named sessions that one connection keeps alive; proxies may carry several.
const NAMED_SESSIONS: usize = 64;

#[derive(Debug)]
pub(crate) struct Shared {
    server: Arc<dyn Server>,
    profile: Profile,
    /// Tokens from handshakes and the sessions that they name.
    tokens: Mutex<HashMap<String, Arc<TokenSession>>>,
    /// Sessions of live connections; the flag is set once a cookie has named them.
    tied: Mutex<HashMap<SessionId, Arc<AtomicBool>>>,
    lost: LostSessions,
}

#[derive(Debug)]
struct TokenSession {
    principal: Principal,
    session: tokio::sync::Mutex<Option<SessionId>>,
}

impl Shared {
    pub(crate) fn new(server: Arc<dyn Server>, profile: Profile) -> Self {
        Self {
            server,
            profile,
            tokens: Mutex::default(),
            tied: Mutex::default(),
            lost: LostSessions::default(),
        }
    }

    pub(crate) fn server(&self) -> &dyn Server {
        self.server.as_ref()
    }

    fn token(&self, token: &Secret) -> Option<Arc<TokenSession>> {
        self.tokens.lock().get(token.expose()).map(Arc::clone)
    }

    fn keep_token(&self, token: &Secret, principal: &Principal) -> Result<()> {
        let mut tokens = self.tokens.lock();
        let limit = self.server.limits().max_sessions;
        if tokens.len() >= limit {
            tokens.retain(|_, entry| self.is_used(entry));
        }
        if tokens.len() >= limit {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("too many handshakes: {limit} sessions"),
            )
            .with_hint("close sessions, or raise `limits.max_sessions`"));
        }
        let entry =
            TokenSession { principal: without_token(principal), session: tokio::sync::Mutex::new(None) };
        tokens.insert(token.expose().to_owned(), Arc::new(entry));
        Ok(())
    }

    /// Whether a token names an open session, or is being used right now.
    fn is_used(&self, entry: &TokenSession) -> bool {
        match entry.session.try_lock() {
            Ok(id) => id.is_some_and(|id| self.server.find_session(id, &entry.principal).is_ok()),
            Err(_) => true,
        }
    }

    /// Notes that a cookie has named a session, so that it outlives its connection.
    fn untie(&self, id: SessionId) {
        if let Some(named) = self.tied.lock().get(&id) {
            named.store(true, Ordering::Relaxed);
        }
    }
}

/// A principal's session on a connection.
#[derive(Debug)]
struct Tied {
    principal: Principal,
    id: SessionId,
    named: Arc<AtomicBool>,
    opened_with: Vec<(String, OptionValue)>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    address: IpAddr,
    announcement: Option<HeaderValue>,
    eviction: EvictionHandle,
    auth_cache: AuthCache,
    certificate: OnceLock<Arc<ClientCertificate>>,
    /// Sessions by principal; `None` after the end of the connection. Locked while a session is opened, so that
    /// concurrent calls open one only, and none after [`Self::end`].
    sessions: tokio::sync::Mutex<Option<Vec<Tied>>>,
    /// Sessions that calls of this connection have named by cookie or token.
    named: Mutex<Vec<(SessionId, Principal)>>,
    /// Whether the client has had a large message.
    primed: Primed,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, address: IpAddr, eviction: EvictionHandle) -> Self {
        Self {
            shared,
            address,
            announcement: None,
            eviction,
            auth_cache: AuthCache::default(),
            certificate: OnceLock::new(),
            sessions: tokio::sync::Mutex::new(Some(Vec::new())),
            named: Mutex::default(),
            primed: Primed::default(),
        }
    }

    /// Adds the announcement of the Unix socket.
    pub(crate) fn announcing(self, announcement: Option<HeaderValue>) -> Self {
        Self { announcement, ..self }
    }

    pub(crate) fn announcement(&self) -> Option<&HeaderValue> {
        self.announcement.as_ref()
    }

    pub(crate) fn keep_certificate(&self, certificate: Option<Arc<ClientCertificate>>) {
        if let Some(certificate) = certificate {
            self.certificate.get_or_init(|| certificate);
        }
    }

    pub(crate) fn certificate(&self) -> Option<&Arc<ClientCertificate>> {
        self.certificate.get()
    }

    pub(crate) fn server(&self) -> &dyn Server {
        self.shared.server()
    }

    /// Authenticates a call; the connection is no longer evicted then.
    pub(crate) async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        let principal = self.server().authenticate_from(credentials, Some(self.address)).await?;
        self.eviction.mark_authenticated();
        Ok(principal)
    }

    /// As [`Self::authenticate`], for a header and its parsed credentials.
    pub(crate) async fn identify(&self, shown: (&[u8], &Credentials)) -> Result<Principal> {
        let principal = self.auth_cache.identify(self.server(), shown, Some(self.address)).await?;
        self.eviction.mark_authenticated();
        Ok(principal)
    }

    pub(crate) fn primed(&self) -> &Primed {
        &self.primed
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.shared.profile
    }

    /// A new token for a principal; the first call that needs a session ties one to it.
    pub(crate) fn issue_token(&self, principal: &Principal) -> Result<Secret> {
        let token = self.server().issue_token(principal);
        self.shared.keep_token(&token, principal)?;
        Ok(token)
    }

    pub(crate) fn by_cookie(&self, value: &str, principal: &Principal) -> Result<Arc<dyn Session>> {
        let id = SessionId::parse(value).ok_or_else(|| Error::not_found("session not found"))?;
        let session = self.server().find_session(id, principal)?;
        self.shared.untie(id);
        self.name(id, principal);
        Ok(session)
    }

    pub(crate) async fn current(&self, caller: Who<'_>) -> Option<Arc<dyn Session>> {
        if let Some(entry) = self.token_session(caller) {
            let id = *entry.session.lock().await;
            return id.and_then(|id| self.server().find_session(id, caller.principal).ok());
        }
        let sessions = self.sessions.lock().await;
        let tied = sessions.iter().flatten().find(|tied| &tied.principal == caller.principal)?;
        self.server().find_session(tied.id, caller.principal).ok()
    }

    /// The session of a token or of this connection, or a new one. Returns whether it is new.
    pub(crate) async fn current_or_new(&self, caller: Who<'_>) -> Result<(Arc<dyn Session>, bool)> {
        if let Some(entry) = self.token_session(caller) {
            let mut id = entry.session.lock().await;
            if let Some(session) = id.and_then(|id| self.server().find_session(id, caller.principal).ok()) {
                self.name(session.id(), caller.principal);
                return Ok((session, false));
            }
            let session = self.open_session(caller).await?;
            *id = Some(session.id());
            self.name(session.id(), caller.principal);
            return Ok((session, true));
        }
        let mut sessions = self.sessions.lock().await;
        let sessions = sessions.as_mut().ok_or_else(|| {
            Error::new(ErrorKind::Cancelled, "the connection has ended").with_hint("connect again")
        })?;
        let tied = sessions.iter().find(|tied| &tied.principal == caller.principal);
        if let Some(session) =
            tied.and_then(|tied| self.server().find_session(tied.id, caller.principal).ok())
        {
            return Ok((session, false));
        }
        let session = self.open_session(caller).await?;
        let named = Arc::new(AtomicBool::new(false));
        self.shared.tied.lock().insert(session.id(), Arc::clone(&named));
        sessions.retain(|tied| {
            let other = &tied.principal != caller.principal;
            if !other {
                self.shared.tied.lock().remove(&tied.id);
            }
            other
        });
        let (principal, opened_with) = (without_token(caller.principal), session.options());
        sessions.push(Tied { principal, id: session.id(), named, opened_with });
        Ok((session, true))
    }

    /// Refuses the first statement of a client that has connected again by itself, if that has cost it a session.
    ///
    /// # Errors
    /// `NotFound`, with what to do.
    pub(crate) fn check_lost(&self, caller: Who<'_>) -> Result<()> {
        match self.token_session(caller) {
            Some(_) => Ok(()),
            None => self.shared.lost.check(&without_token(caller.principal), self.address),
        }
    }

    /// Opens a session and sets its options before it can be found.
    async fn open_session(&self, caller: Who<'_>) -> Result<Arc<dyn Session>> {
        let session = self.server().open_session(caller.principal).await?;
        for (name, value) in caller.options {
            if let Err(error) = session.set_option(name, Some(value.clone())).await {
                session.close().await;
                return Err(match error.kind() {
                    ErrorKind::NotFound => {
                        Error::invalid(format!("a header sets an unknown option: `{name}`"))
                            .with_hint("leave out the header, or see the list of session options")
                    }
                    _ => error,
                });
            }
        }
        Ok(session)
    }

    fn token_session(&self, caller: Who<'_>) -> Option<Arc<TokenSession>> {
        let entry = self.shared.token(caller.token?)?;
        (&entry.principal == caller.principal).then_some(entry)
    }

    fn name(&self, id: SessionId, principal: &Principal) {
        let mut named = self.named.lock();
        if named.iter().any(|(known, _)| *known == id) {
            return;
        }
        if named.len() >= NAMED_SESSIONS {
            named.remove(0);
        }
        named.push((id, without_token(principal)));
    }

    /// Uses the connection's sessions, so that they do not count as idle while the client is connected and perhaps
    /// reads one long result.
    pub(crate) fn touch(&self) {
        // An expired session is replaced when it is next needed.
        let touched = |id, principal: &Principal| self.server().find_session(id, principal).is_ok();
        self.named.lock().retain(|(id, principal)| touched(*id, principal));
        // A held lock means that a session is in use.
        let Ok(sessions) = self.sessions.try_lock() else { return };
        for tied in sessions.iter().flatten() {
            touched(tied.id, &tied.principal);
        }
    }

    /// Closes the sessions without a name.
    pub(crate) async fn end(&self) {
        let sessions = self.sessions.lock().await.take();
        for tied in sessions.into_iter().flatten() {
            self.shared.tied.lock().remove(&tied.id);
            if tied.named.load(Ordering::Relaxed) {
                continue;
            }
            if let Ok(session) = self.server().find_session(tied.id, &tied.principal) {
                let whose = (tied.principal, self.address);
                self.shared.lost.note(session.as_ref(), &tied.opened_with, whose);
                session.close().await;
            }
        }
    }
}

/// The caller without its forwarded token, which belongs to the session only: a cached copy would replace newer ones.
fn without_token(principal: &Principal) -> Principal {
    Principal { bearer: None, ..principal.clone() }
}

/// Identifies a caller without cookie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) token: Option<&'a Secret>,
    /// Options of a new session.
    pub(crate) options: &'a [(String, OptionValue)],
}
