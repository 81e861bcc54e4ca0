//! A catalog over HTTP: its addresses, and who the server is to it.

use super::fault::CatalogFault;
use super::names::{is_name, path};
use super::responses::{Config, LoadedTable, Token, WholeTable};
use super::settings::{IcebergSettings, Login};
use bowshot_api::Secret;
use bowshot_object_store::{Answer, Call, Method, Remotes, WebClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::Serializer;

/// Bytes of the answer that has the metadata of a table, and of others.
const MAX_TABLE_BYTES: usize = 48 << 20;
pub(super) const MAX_BYTES: usize = 8 << 20;
/// Between the parts of a namespace in an address.
pub(super) const SEPARATOR: &str = "\u{1f}";
/// How long a token is used that says nothing of it, and how long before its end none is used any more.
const TOKEN_LASTS: Duration = Duration::from_secs(300);
const TOKEN_MARGIN: Duration = Duration::from_secs(60);
const MAX_TOKEN_LASTS: Duration = Duration::from_secs(86_400);
/// How long is believed what a catalog says of its addresses.
const CONFIG_BELIEVED: Duration = Duration::from_secs(600);

type Result<T> = std::result::Result<T, CatalogFault>;

/// The HTTP client of a REST catalog.
#[derive(Debug)]
pub(super) struct Service {
    settings: Arc<IcebergSettings>,
    client: WebClient,
    /// What stands between version and names, and since when that is known.
    prefix: Mutex<Option<(Instant, Vec<String>)>>,
    /// The token in use, and until when it is.
    token: Mutex<Option<(Instant, Secret)>>,
}

impl Service {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub(super) fn new(settings: Arc<IcebergSettings>, remotes: &Remotes) -> bowshot_api::Result<Self> {
        let token_uri = match &settings.login {
            Login::Client { uri, .. } => uri.as_ref(),
            Login::Nobody | Login::Token(_) => None,
        };
        let plain = [Some(&settings.uri), token_uri].into_iter().flatten().any(|url| url.scheme() == "http");
        let authority = settings.authority.as_ref().map(|path| path.to_string_lossy().into_owned());
        let client = remotes.web((plain, authority.as_deref()), settings.timeout)?;
        Ok(Self { settings, client, prefix: Mutex::default(), token: Mutex::default() })
    }

    pub(super) fn timeout(&self) -> Duration {
        self.client.timeout()
    }

    /// The namespaces that the operator has chosen; none where all are seen.
    pub(super) fn chosen(&self) -> &[String] {
        &self.settings.schemas
    }

    pub(super) async fn table(&self, namespace: &[String], table: &str) -> Result<Option<LoadedTable>> {
        let answer = self.table_answer(namespace, table).await?;
        answer.map(|answer| parsed(&answer)).transpose()
    }

    pub(super) async fn whole_table(
        &self,
        namespace: &[String],
        table: &str,
    ) -> Result<Option<(LoadedTable, Value)>> {
        let Some(answer) = self.table_answer(namespace, table).await? else { return Ok(None) };
        let whole: WholeTable = parsed(&answer)?;
        Ok(Some((parsed(&answer)?, whole.metadata)))
    }

    async fn table_answer(&self, namespace: &[String], table: &str) -> Result<Option<Answer>> {
        let namespace = namespace.join(SEPARATOR);
        let url = self.address(&["namespaces", &namespace, "tables", table]).await?;
        let answer = self.asked(url, MAX_TABLE_BYTES, None).await?;
        Ok(Some(answer).filter(|answer| answer.status != 404))
    }

    /// Commits a change of a table.
    ///
    /// # Errors
    /// [`CatalogFault::Conflict`] if the table is not as the change requires it, and those of the catalog, after some of which the change
    /// may be there.
    pub(super) async fn commit(&self, namespace: &[String], table: &str, change: &Value) -> Result<()> {
        let namespace = namespace.join(SEPARATOR);
        let change = Method::PostJson(change.to_string().into());
        self.change(&["namespaces", &namespace, "tables", table], change).await
    }

    /// The same, sent only once: a change cannot be told from an equal one, so a repeated one could conflict with itself.
    pub(super) async fn commit_once(&self, namespace: &[String], table: &str, change: &Value) -> Result<()> {
        let namespace = namespace.join(SEPARATOR);
        let change = Method::PostJsonOnce(change.to_string().into());
        self.change(&["namespaces", &namespace, "tables", table], change).await
    }

    /// Makes a table, or a namespace.
    pub(super) async fn create_table(&self, namespace: &[String], new: &Value) -> Result<()> {
        let namespace = namespace.join(SEPARATOR);
        self.change(&["namespaces", &namespace, "tables"], Method::PostJson(new.to_string().into())).await
    }

    pub(super) async fn create_namespace(&self, namespace: &[String]) -> Result<()> {
        let new = json!({"namespace": namespace, "properties": {}});
        self.change(&["namespaces"], Method::PostJson(new.to_string().into())).await
    }

    /// Drops a table, or a namespace.
    pub(super) async fn drop_table(&self, namespace: &[String], table: &str) -> Result<()> {
        let namespace = namespace.join(SEPARATOR);
        self.change(&["namespaces", &namespace, "tables", table], Method::Delete).await
    }

    pub(super) async fn drop_namespace(&self, namespace: &[String]) -> Result<()> {
        self.change(&["namespaces", &namespace.join(SEPARATOR)], Method::Delete).await
    }

    async fn change(&self, names: &[&str], method: Method) -> Result<()> {
        let url = self.address(names).await?;
        accepted(&self.send(method, (url, MAX_TABLE_BYTES, None)).await?)
    }

    pub(super) async fn address(&self, names: &[&str]) -> Result<Url> {
        let prefix = self.prefix().await?;
        let names = prefix.iter().map(String::as_str).chain(names.iter().copied());
        self.plain_address(names)
    }

    fn plain_address<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<Url> {
        let mut url = self.settings.uri.clone();
        let path = path(url.path(), std::iter::once("v1").chain(names));
        url.set_path(&path);
        // Nothing is asked for by an address that has become another one.
        match url.path() == path {
            true => Ok(url),
            false => Err(CatalogFault::Settings("its names do not form a valid URL".to_owned())),
        }
    }

    async fn prefix(&self) -> Result<Vec<String>> {
        let mut known = self.prefix.lock().await;
        if let Some((_, prefix)) = known.as_ref().filter(|(since, _)| since.elapsed() < CONFIG_BELIEVED) {
            return Ok(prefix.clone());
        }
        let mut url = self.plain_address(std::iter::once("config"))?;
        if let Some(warehouse) = &self.settings.warehouse {
            url.query_pairs_mut().append_pair("warehouse", warehouse);
        }
        let answer: Config = parsed(&self.asked(url, MAX_BYTES, None).await?)?;
        if !answer.is_whole() {
            return Err(CatalogFault::Strange("it does not follow the specification"));
        }
        let parts = answer.prefix().unwrap_or_default().split('/').filter(|part| !part.is_empty());
        let prefix: Vec<String> = parts.map(str::to_owned).collect();
        if !prefix.iter().all(|part| is_name(part)) {
            return Err(CatalogFault::Strange("its prefix leads to another address"));
        }
        *known = Some((Instant::now(), prefix.clone()));
        Ok(prefix)
    }

    /// Asks; with another token once more, if the one that is in use is not taken any more. Waits no longer than it is told.
    pub(super) async fn asked(&self, url: Url, most: usize, until: Option<Instant>) -> Result<Answer> {
        self.send(Method::Get, (url, most, until)).await
    }

    async fn send(
        &self,
        method: Method,
        (url, most, until): (Url, usize, Option<Instant>),
    ) -> Result<Answer> {
        let mut headers = Vec::new();
        if self.settings.is_vended {
            headers.push(("x-iceberg-access-delegation", "vended-credentials"));
        }
        let call = Call { url, bearer: self.bearer().await?, headers, method, most, until };
        let answer = self.client.call(call.clone()).await.map_err(CatalogFault::Asked)?;
        let Some(refused) = call.bearer.as_ref().filter(|_| matches!(answer.status, 401 | 419)) else {
            return Ok(answer);
        };
        {
            let mut token = self.token.lock().await;
            // Somebody who has asked at the same time may have a new one already.
            if token.as_ref().is_some_and(|(_, token)| token.expose() == refused.expose()) {
                *token = None;
            }
        }
        let call = Call { bearer: self.bearer().await?, ..call };
        self.client.call(call).await.map_err(CatalogFault::Asked)
    }

    async fn bearer(&self) -> Result<Option<Secret>> {
        if matches!(self.settings.login, Login::Nobody) {
            return Ok(None);
        }
        let mut token = self.token.lock().await;
        if let Some((_, token)) = token.as_ref().filter(|(until, _)| Instant::now() < *until) {
            return Ok(Some(token.clone()));
        }
        let (lasts, new) = match &self.settings.login {
            Login::Nobody => return Ok(None),
            Login::Token(place) => (TOKEN_LASTS, place.read().map_err(CatalogFault::Settings)?),
            Login::Client { id, secret, scope, uri } => {
                let (id, secret) = (id.read(), secret.read());
                let (id, secret) =
                    (id.map_err(CatalogFault::Settings)?, secret.map_err(CatalogFault::Settings)?);
                self.granted((&id, &secret), scope, uri.as_ref()).await?
            }
        };
        *token = Some((Instant::now() + lasts, new.clone()));
        Ok(Some(new))
    }

    /// A token for client credentials, and how long it is to be used.
    async fn granted(
        &self,
        (id, secret): (&Secret, &Secret),
        scope: &str,
        uri: Option<&Url>,
    ) -> Result<(Duration, Secret)> {
        let url = match uri {
            Some(url) => url.clone(),
            None => self.plain_address(["oauth", "tokens"].into_iter())?,
        };
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", id.expose())
            .append_pair("client_secret", secret.expose())
            .append_pair("scope", scope)
            .finish();
        let method = Method::PostForm(Secret::new(form));
        let call = Call { url, bearer: None, headers: Vec::new(), method, most: MAX_BYTES, until: None };
        let answer = self.client.call(call).await.map_err(CatalogFault::Asked)?;
        // Wrong credentials are told as a bad request there.
        if matches!(answer.status, 400 | 401 | 403) {
            return Err(CatalogFault::Refused(answer.status));
        }
        let token: Token = parsed(&answer)?;
        let lasts = token.expires_in.map_or(TOKEN_LASTS, Duration::from_secs).min(MAX_TOKEN_LASTS);
        Ok((lasts.saturating_sub(TOKEN_MARGIN).max(TOKEN_MARGIN / 6), Secret::new(token.access_token)))
    }
}

fn accepted(answer: &Answer) -> Result<()> {
    match answer.status {
        200..=299 => Ok(()),
        401 | 403 | 419 => Err(CatalogFault::Refused(answer.status)),
        409 => Err(CatalogFault::Conflict),
        other => Err(CatalogFault::Status(other)),
    }
}

pub(super) fn parsed<T: DeserializeOwned>(answer: &Answer) -> Result<T> {
    match answer.status {
        200 => serde_json::from_slice(&answer.bytes)
            .map_err(|_| CatalogFault::Strange("it does not follow the specification")),
        401 | 403 | 419 => Err(CatalogFault::Refused(answer.status)),
        other => Err(CatalogFault::Status(other)),
    }
}
