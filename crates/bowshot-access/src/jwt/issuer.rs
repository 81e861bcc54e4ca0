//! One issuer with its keys: fetched on first use, cached, and fetched again when they are old or a key is missing.
//! The fetch rate is limited, however many tokens arrive.

use super::claims;
use super::config::{JwtConfig, Source};
use super::fetch::Fetcher;
use super::keys::{Algorithm, Keys};
use super::token::Unverified;
use crate::Error;
use bowshot_api::Principal;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Older keys are not trusted, even if the issuer cannot be reached: it may have revoked one.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// Older keys are not trusted, even if the issuer cannot be reached: it may have revoked one.
const BELIEVED: Duration = Duration::from_secs(60 * 60);
/// At least this is between two fetches for keys that are not there.
const PAUSE: Duration = Duration::from_secs(10);
/// Fetches that fail are repeated after the pause, twice it, and so on up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug)]
pub(super) struct Issuer {
    config: JwtConfig,
    algorithms: Vec<Algorithm>,
    fetcher: Fetcher,
    state: Mutex<State>,
    /// Held during a fetch, so that there is one at a time.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    keys: Arc<Keys>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
    /// Failed fetches since the last success.
    failures: u32,
}

impl State {
    fn is_fresh(&self, now: Instant) -> bool {
        self.fetched.is_some_and(|fetched| now.duration_since(fetched) < FRESH)
    }

    /// The keys, while they are trusted.
    fn believed(&self, now: Instant) -> Arc<Keys> {
        match self.fetched {
            Some(fetched) if now.duration_since(fetched) < BELIEVED => Arc::clone(&self.keys),
            _ => Arc::default(),
        }
    }

    fn may_ask(&self, now: Instant) -> bool {
        let pause = PAUSE.saturating_mul(1_u32 << self.failures.saturating_sub(1).min(8)).min(LONGEST_PAUSE);
        self.asked.is_none_or(|asked| now.duration_since(asked) >= pause)
    }
}

impl Issuer {
    pub(super) fn new(config: JwtConfig) -> Result<Self, Error> {
        config.check()?;
        let algorithms = config.algorithms()?;
        let fetcher = Fetcher::new(&config)?;
        let mut state = State::default();
        if let Source::File(file) = fetcher.source() {
            // A file is there from the beginning; an address may answer later.
            let text = std::fs::read(file)
                .map_err(|error| super::bad(&config.issuer, format!("`{}`: {error}", file.display())))?;
            let keys = Keys::parse(&text).map_err(|reason| {
                super::bad(&config.issuer, format!("`{}` holds {reason}", file.display()))
            })?;
            state = State { keys: Arc::new(keys), fetched: Some(Instant::now()), ..state };
        }
        Ok(Self {
            config,
            algorithms,
            fetcher,
            state: Mutex::new(state),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn config(&self) -> &JwtConfig {
        &self.config
    }

    pub(super) fn name(&self) -> &str {
        &self.config.issuer
    }

    /// # Errors
    /// The reason why the signature is not one of this issuer.
    pub(super) async fn check_signature(&self, token: &Unverified<'_>) -> Result<(), String> {
        if !self.algorithms.contains(&token.algorithm) {
            return Err(format!("signatures by {} are not accepted", token.algorithm.name()));
        }
        let wanted = (token.kid.as_deref(), token.algorithm);
        let keys = self.keys_with(wanted).await;
        if !keys.has(wanted.0, wanted.1) {
            return Err("its key is unknown".to_owned());
        }
        match keys.have_signed(wanted, token.signed, &token.signature) {
            true => Ok(()),
            false => Err("its signature is wrong".to_owned()),
        }
    }

    /// # Errors
    /// The reason why the claims let nobody in.
    pub(super) fn read_claims(&self, token: &Unverified<'_>, now: SystemTime) -> Result<Principal, String> {
        claims::read(&self.config, &token.claims, now)
    }

    /// The keys, fetched if they are old or lack the wanted one.
    async fn keys_with(&self, wanted: (Option<&str>, Algorithm)) -> Arc<Keys> {
        let good = |state: &State, now: Instant| state.is_fresh(now) && state.keys.has(wanted.0, wanted.1);
        if let Some(keys) = self.look(good) {
            return keys;
        }
        let believed = self.look(|state, now| state.believed(now).has(wanted.0, wanted.1));
        let _one = match (self.fetching.try_lock(), believed) {
            (Ok(one), _) => one,
            // A fetch is in progress; use the current keys.
            (Err(_), Some(keys)) => return keys,
            (Err(_), None) => self.fetching.lock().await,
        };
        // The previous holder may have fetched the key, or just failed.
        if let Some(keys) = self.look(|state, now| good(state, now) || !state.may_ask(now)) {
            return keys;
        }
        self.state.lock().asked = Some(Instant::now());
        let fetched = self.fetcher.fetch().await.and_then(|document| Keys::parse(&document));
        let mut state = self.state.lock();
        match fetched {
            Ok(keys) => {
                *state = State {
                    keys: Arc::new(keys),
                    fetched: Some(Instant::now()),
                    asked: state.asked,
                    failures: 0,
                };
            }
            Err(reason) => {
                state.failures = state.failures.saturating_add(1);
                tracing::warn!(issuer = self.name(), reason, "the keys of an issuer cannot be fetched");
            }
        }
        state.believed(Instant::now())
    }

    fn look(&self, is_enough: impl Fn(&State, Instant) -> bool) -> Option<Arc<Keys>> {
        let (state, now) = (self.state.lock(), Instant::now());
        is_enough(&state, now).then(|| state.believed(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_that_fails_is_asked_less_and_less() {
        let now = Instant::now() + LONGEST_PAUSE * 2;
        let state = |failures, ago| State { asked: Some(now - ago), failures, ..State::default() };
        assert!(State::default().may_ask(now));
        assert!(!state(0, PAUSE / 2).may_ask(now) && state(0, PAUSE).may_ask(now));
        assert!(!state(3, PAUSE * 3).may_ask(now) && state(3, PAUSE * 4).may_ask(now));
        assert!(!state(u32::MAX, LONGEST_PAUSE / 2).may_ask(now));
        assert!(state(u32::MAX, LONGEST_PAUSE).may_ask(now));
    }

    #[test]
    fn keys_that_cannot_be_fetched_again_are_believed_for_an_hour() {
        let document = br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}"#;
        let keys = Arc::new(Keys::parse(document).expect("keys"));
        let fetched = Instant::now();
        let state = State { keys, fetched: Some(fetched), ..State::default() };
        let has = |keys: Arc<Keys>| keys.has(None, Algorithm::EdDsa);
        assert!(state.is_fresh(fetched) && !state.is_fresh(fetched + FRESH));
        assert!(has(state.believed(fetched + FRESH)) && !has(state.believed(fetched + BELIEVED)));
    }
}
