//! Bearer tokens: configured, personal, and issued after a login. Only SHA-256 hashes are stored.

use crate::{Error, TokenConfig};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowshot_api::{Principal, Secret};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};
use subtle::ConstantTimeEq;

/// SHA-256 of a token.
pub(crate) type TokenHash = [u8; 32];

/// The hash of a token in the configuration, in hexadecimal.
pub fn hash_token(token: &Secret) -> String {
    hash(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn hash(token: &Secret) -> TokenHash {
    Sha256::digest(token.expose().as_bytes()).into()
}

/// A new token: 256 random bits as 43 characters that need no quoting in headers, URLs and shells.
pub(crate) fn random() -> Result<Secret, Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(Error::NoRandomness)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Prefix of personal tokens, for people and secret scanners.
const PERSONAL: &str = "bst_";

/// A new personal token, and its hash for the catalog.
///
/// # Errors
/// When the system gives no randomness.
pub fn new_token() -> Result<(Secret, String), Error> {
    let token = Secret::new(format!("{PERSONAL}{}", random()?.expose()));
    let hash = hash_token(&token);
    Ok((token, hash))
}

/// Whether a text has the form of a personal token.
pub(crate) fn is_personal(text: &Secret) -> bool {
    text.expose().strip_prefix(PERSONAL).is_some_and(|rest| rest.len() == 43)
}

/// A token that a user has made: whose it is, its hash, and when it expires.
pub type PersonalToken = (String, String, Option<SystemTime>);

#[derive(Debug, Default, PartialEq)]
pub(crate) struct PersonalTokens(HashMap<TokenHash, (String, Option<SystemTime>)>);

impl PersonalTokens {
    /// Tokens with malformed hashes are skipped.
    pub(crate) fn new(tokens: Vec<PersonalToken>) -> Self {
        let tokens = tokens.into_iter();
        Self(tokens.filter_map(|(user, hash, expires)| Some((parse_hex(&hash)?, (user, expires)))).collect())
    }

    /// Whose token this is, as long as it is valid.
    pub(crate) fn find(&self, hash: &TokenHash, now: SystemTime) -> Option<Principal> {
        let (user, expires) = self.0.get(hash)?;
        let principal = Principal { expires: *expires, token: Some(*hash), ..Principal::user(user.as_str()) };
        (!principal.has_expired(now)).then_some(principal)
    }
}

/// The tokens of the configuration.
#[derive(Debug)]
pub(crate) struct FixedTokens(Vec<(TokenHash, String)>);

impl FixedTokens {
    pub(crate) fn new(tokens: Vec<TokenConfig>) -> Result<Self, Error> {
        let mut known: Vec<(TokenHash, String)> = Vec::with_capacity(tokens.len());
        for token in tokens {
            let Some(hash) = parse_hex(&token.sha256) else {
                return Err(Error::BadTokenHash { name: token.user });
            };
            if known.iter().any(|(other, _)| *other == hash) {
                return Err(Error::DuplicateToken { name: token.user });
            }
            known.push((hash, token.user));
        }
        Ok(Self(known))
    }

    /// Whose token this is. Looks at every entry, whichever fits.
    pub(crate) fn find(&self, wanted: &TokenHash) -> Option<&str> {
        let mut found = None;
        for (hash, user) in &self.0 {
            if bool::from(hash.ct_eq(wanted)) {
                found = Some(user.as_str());
            }
        }
        found
    }
}

fn parse_hex(text: &str) -> Option<TokenHash> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = TokenHash::default();
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: &u8| char::from(*c).to_digit(16);
        let [high, low] = pair else { return None };
        *byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    }
    Some(hash)
}

/// Issued tokens. Limited per user, so that a client that logs in for each call only replaces its own.
#[derive(Debug)]
pub(crate) struct IssuedTokens {
    lifetime: Duration,
    max_per_user: usize,
    by_hash: HashMap<TokenHash, Issued>,
    /// Each user's tokens, oldest first.
    by_user: HashMap<String, VecDeque<TokenHash>>,
}

#[derive(Debug)]
struct Issued {
    principal: Principal,
    expires: Instant,
}

impl IssuedTokens {
    pub(crate) fn new(lifetime: Duration, max_per_user: usize) -> Self {
        Self { lifetime, max_per_user: max_per_user.max(1), by_hash: HashMap::new(), by_user: HashMap::new() }
    }

    /// A token expires with the credentials that it was issued for.
    pub(crate) fn insert(&mut self, hash: TokenHash, principal: &Principal, now: Instant) {
        let queue = self.by_user.entry(principal.name.clone()).or_default();
        while let Some(oldest) = queue.front() {
            let expired = self.by_hash.get(oldest).is_none_or(|issued| issued.expires <= now);
            if !expired && queue.len() < self.max_per_user {
                break;
            }
            self.by_hash.remove(oldest);
            queue.pop_front();
        }
        queue.push_back(hash);
        let left = principal
            .expires
            .map(|expires| expires.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO));
        let expires = now + left.map_or(self.lifetime, |left| left.min(self.lifetime));
        self.by_hash.insert(hash, Issued { principal: principal.clone(), expires });
    }

    /// Takes all tokens of a user back.
    pub(crate) fn revoke(&mut self, user: &str) {
        for hash in self.by_user.remove(user).unwrap_or_default() {
            self.by_hash.remove(&hash);
        }
    }

    /// Whose token this is, as long as it is valid.
    pub(crate) fn find(&self, hash: &TokenHash, now: Instant) -> Option<&Principal> {
        self.by_hash.get(hash).filter(|issued| issued.expires > now).map(|issued| &issued.principal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ada() -> Principal {
        Principal::user("ada")
    }

    fn name_of(found: Option<&Principal>) -> Option<&str> {
        found.map(|principal| principal.name.as_str())
    }

    fn numbered(number: u8) -> TokenHash {
        [number; 32]
    }

    #[test]
    fn tokens_are_long_random_and_plain() {
        let (one, other) = (random().expect("random"), random().expect("random"));
        assert_ne!(one, other);
        assert_eq!(one.expose().len(), 43);
        assert!(one.expose().chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    }

    #[test]
    fn hashes_are_those_of_sha256sum() {
        assert_eq!(
            hash_token(&Secret::new("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(parse_hex(&hash_token(&Secret::new("abc"))), Some(hash(&Secret::new("abc"))));
        assert_eq!(
            parse_hex(&hash_token(&Secret::new("abc")).to_uppercase()),
            Some(hash(&Secret::new("abc")))
        );
        for bad in ["", "ba78", &"g".repeat(64), &"é".repeat(32), &"+1".repeat(32)] {
            assert_eq!(parse_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn tokens_of_users_are_known_by_their_hashes() {
        let (token, sha256) = new_token().expect("random");
        assert!(is_personal(&token) && !is_personal(&Secret::new("bst_short")));
        let now = SystemTime::now();
        let tokens = PersonalTokens::new(vec![
            ("ada".to_owned(), sha256, Some(now + HOUR)),
            ("bob".to_owned(), "nonsense".to_owned(), None),
        ]);
        let found = tokens.find(&hash(&token), now).expect("known");
        assert_eq!((found.name.as_str(), found.expires), ("ada", Some(now + HOUR)));
        assert!(tokens.find(&hash(&token), now + HOUR).is_none());
        assert!(tokens.find(&hash(&Secret::new("nonsense")), now).is_none());
    }

    #[test]
    fn issued_tokens_expire() {
        let start = Instant::now();
        let mut tokens = IssuedTokens::new(HOUR, 10);
        tokens.insert(numbered(1), &ada(), start);
        assert_eq!(name_of(tokens.find(&numbered(1), start)), Some("ada"));
        assert_eq!(name_of(tokens.find(&numbered(1), start + HOUR - Duration::from_secs(1))), Some("ada"));
        assert_eq!(name_of(tokens.find(&numbered(1), start + HOUR)), None);
        assert_eq!(name_of(tokens.find(&numbered(2), start)), None);
        tokens.insert(numbered(2), &ada(), start + HOUR);
        assert_eq!(tokens.by_hash.len(), 1, "the expired one is gone");
        let expires = Some(SystemTime::now() + HOUR / 2);
        tokens.insert(numbered(3), &Principal { expires, ..ada() }, start);
        assert_eq!(name_of(tokens.find(&numbered(3), start + HOUR / 4)), Some("ada"));
        assert_eq!(
            tokens.find(&numbered(3), start + HOUR * 3 / 4),
            None,
            "no longer than what it stands for"
        );
    }

    #[test]
    fn a_user_pushes_out_only_its_own_oldest_tokens() {
        let start = Instant::now();
        let mut tokens = IssuedTokens::new(HOUR, 2);
        tokens.insert(numbered(9), &Principal::user("bob"), start);
        for number in 1..=3 {
            tokens.insert(numbered(number), &ada(), start);
        }
        let found: Vec<_> =
            [1, 2, 3, 9].into_iter().map(|n| name_of(tokens.find(&numbered(n), start))).collect();
        assert_eq!(found, [None, Some("ada"), Some("ada"), Some("bob")]);
        assert_eq!(tokens.by_hash.len(), 3);
    }
}
