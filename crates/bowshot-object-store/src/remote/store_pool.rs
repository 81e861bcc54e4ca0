//! Open stores of one bucket, one for each set of credentials, chosen at each request. Stores of revoked secrets are closed then.

use super::client::Stores;
use super::fault::Fault;
use super::options::{PlaceSettings, RemoteOptions};
use super::secret_credentials;
use super::store_builder;
use super::url::RemoteUrl;
use super::vended::Vended;
use crate::Error;
use crate::secrets::{InForce, KeptSecret, Secrets, same};
use bowshot_api::Result;
use object_store::path::Path as Location;
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct StorePool {
    url: RemoteUrl,
    place: Option<PlaceSettings>,
    options: RemoteOptions,
    /// Credentials that a catalog has given, beside which there are no others.
    vended: Option<Arc<Vended>>,
    open: Mutex<Vec<Arc<Way>>>,
}

/// The stores of one bucket with the credentials of somebody.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) stores: Stores,
    /// Where the bucket is, as far as somebody has said it.
    pub(super) endpoint: String,
    /// Whose credentials they are; those that are no secret's when `None`.
    secret: Option<Arc<KeptSecret>>,
}

impl Way {
    /// What an error of the library means; of credentials that were refused, whose they are.
    pub(super) fn fault(&self, error: &object_store::Error) -> Fault {
        match (Fault::of(error), &self.secret) {
            (Fault::Refused(status), Some(secret)) => Fault::RefusedSecret(status, secret.name().to_owned()),
            (Fault::Credentials, Some(secret)) => Fault::Unusable(format!(
                "no access is given for the credentials of the secret `{}`",
                secret.name()
            )),
            (fault, _) => fault,
        }
    }

    fn is_by(&self, secret: Option<&Arc<KeptSecret>>) -> bool {
        same(self.secret.as_ref(), secret)
    }
}

impl StorePool {
    /// Opens the way to an address, unless it is a secret's, whose faults are those of its addresses alone.
    pub(super) fn open(
        url: &RemoteUrl,
        place: Option<&PlaceSettings>,
        options: &RemoteOptions,
    ) -> Result<Self> {
        Self::new(url, place, options, None)
    }

    /// Opens the one way to the files of a table for which a catalog gives credentials.
    pub(super) fn vended(
        url: &RemoteUrl,
        place: Option<&PlaceSettings>,
        options: &RemoteOptions,
        vended: &Arc<Vended>,
    ) -> Result<Self> {
        Self::new(url, place, options, Some(Arc::clone(vended)))
    }

    fn new(
        url: &RemoteUrl,
        place: Option<&PlaceSettings>,
        options: &RemoteOptions,
        vended: Option<Arc<Vended>>,
    ) -> Result<Self> {
        let (url, place, options) = (url.clone(), place.cloned(), options.clone());
        let pool = Self { url, place, options, vended, open: Mutex::default() };
        if pool.secret(&pool.url.location).is_none() {
            let way = pool.opened(None)?;
            pool.open.lock().push(Arc::new(way));
        }
        Ok(pool)
    }

    /// The secret whose credentials an address has, if any.
    pub(super) fn secret(&self, location: &Location) -> Option<Arc<KeptSecret>> {
        let secrets = self.secrets()?;
        let url = RemoteUrl { location: location.clone(), ..self.url.clone() };
        secret_credentials::secret(secrets, &url, self.place.as_ref())
    }

    /// All secrets that are in force; `None` for a server that keeps none.
    pub(super) fn in_force(&self) -> Option<Arc<InForce>> {
        self.secrets().map(Secrets::in_force)
    }

    pub(super) fn to(&self, location: &Location) -> std::result::Result<Arc<Way>, Fault> {
        let secret = self.secret(location);
        let in_force = self.in_force().unwrap_or_default();
        let mut open = self.open.lock();
        open.retain(|way| match &way.secret {
            Some(secret) => in_force.get(secret.name()).is_some_and(|now| Arc::ptr_eq(now, secret)),
            None => true,
        });
        if let Some(way) = open.iter().find(|way| way.is_by(secret.as_ref())) {
            return Ok(Arc::clone(way));
        }
        let way = self.opened(secret).map_err(|error| Fault::Unusable(error.message().to_owned()))?;
        let way = Arc::new(way);
        open.push(Arc::clone(&way));
        Ok(way)
    }

    fn opened(&self, secret: Option<Arc<KeptSecret>>) -> Result<Way> {
        let (url, place) = (&self.url, self.place.as_ref());
        let (stores, endpoint) = match (&secret, self.secrets()) {
            (Some(secret), Some(secrets)) => {
                store_builder::open_with((secret, secrets), url, place, &self.options)?
            }
            _ => store_builder::open(url, place, (&self.options, self.vended.as_ref()))?,
        };
        Ok(Way { stores, endpoint, secret })
    }

    fn secrets(&self) -> Option<&Secrets> {
        self.options.secrets.as_deref().filter(|_| self.vended.is_none())
    }
}

impl StorePool {
    /// The way that one store is, whatever is asked for.
    pub(super) fn of_one(stores: Stores) -> std::result::Result<Self, Error> {
        let url = RemoteUrl::parse("s3://bucket")?;
        let way = Way { stores, endpoint: String::new(), secret: None };
        let (options, open) = (RemoteOptions::default(), Mutex::new(vec![Arc::new(way)]));
        Ok(Self { url, place: None, options, vended: None, open })
    }
}
