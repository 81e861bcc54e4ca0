//! The keys of an issuer, and signature checks.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// Keys of one issuer.
const MAX_KEYS: usize = 64;

bowshot_api::named! {
    /// Algorithms of signatures, as tokens and keys name them. Each of them has a public key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Algorithm: name {
        Rs256 = "RS256",
        Rs384 = "RS384",
        Rs512 = "RS512",
        Ps256 = "PS256",
        Ps384 = "PS384",
        Ps512 = "PS512",
        Es256 = "ES256",
        Es384 = "ES384",
        EdDsa = "EdDSA",
    }
}

impl Algorithm {
    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }

    /// The curve, and the bytes of each coordinate.
    fn curve(self) -> Option<(&'static str, usize, &'static EcdsaVerificationAlgorithm)> {
        match self {
            Self::Es256 => Some(("P-256", 32, &ECDSA_P256_SHA256_FIXED)),
            Self::Es384 => Some(("P-384", 48, &ECDSA_P384_SHA384_FIXED)),
            _ => None,
        }
    }
}

/// The keys of an issuer.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug, Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// A key as it is written. Private parts, should there be any, are not read.
#[derive(Debug, Deserialize)]
struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Reads a key set. Keys that cannot be read are left out, since sets hold keys of kinds that are new; keys for
    /// encryption and shared secrets are left out since they verify nothing.
    pub(super) fn parse(document: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(document).map_err(|error| format!("no JSON Web Key Set: {error}"))?;
        if document.keys.len() > MAX_KEYS {
            return Err(format!("a key set of more than {MAX_KEYS} keys"));
        }
        let keys = document.keys.into_iter().filter_map(|key| serde_json::from_value::<Key>(key).ok());
        let keys: Vec<Key> = keys.filter(Key::verifies).collect();
        if keys.is_empty() {
            return Err("a key set without a public key for signatures".to_owned());
        }
        Ok(Self(keys))
    }

    /// Whether there is a key that a token may be signed with.
    pub(super) fn has(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        self.fitting(kid, algorithm).next().is_some()
    }

    /// Whether one of the candidate keys verifies a signature.
    pub(super) fn have_signed(
        &self,
        (kid, algorithm): (Option<&str>, Algorithm),
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        self.fitting(kid, algorithm).any(|key| key.has_signed(algorithm, message, signature) == Some(true))
    }

    fn fitting(&self, kid: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| {
            (kid.is_none() || key.kid.as_deref() == kid)
                && key.alg.as_deref().is_none_or(|name| name == algorithm.name())
                && key.is_of(algorithm)
        })
    }
}

impl Key {
    fn verifies(&self) -> bool {
        matches!(self.kty.as_str(), "RSA" | "EC" | "OKP")
            && self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"))
    }

    fn is_of(&self, algorithm: Algorithm) -> bool {
        match algorithm.curve() {
            Some((curve, ..)) => self.kty == "EC" && self.crv.as_deref() == Some(curve),
            None if algorithm == Algorithm::EdDsa => {
                self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519")
            }
            None => self.kty == "RSA",
        }
    }

    /// `None` if the key is not whole.
    fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Option<bool> {
        let part = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_ref()?).ok();
        if let Some(parameters) = algorithm.rsa() {
            let (mut n, mut e) = (part(&self.n)?, part(&self.e)?);
            for number in [&mut n, &mut e] {
                let zeros = number.iter().take_while(|byte| **byte == 0).count();
                number.drain(..zeros);
            }
            return Some(RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok());
        }
        let x = part(&self.x)?;
        if let Some((_, bytes, curve)) = algorithm.curve() {
            let y = part(&self.y).filter(|y| y.len() == bytes && x.len() == bytes)?;
            // The form of a point with both coordinates.
            let point = [&[4_u8][..], &x, &y].concat();
            return Some(UnparsedPublicKey::new(curve, point).verify(message, signature).is_ok());
        }
        Some(UnparsedPublicKey::new(&ED25519, x).verify(message, signature).is_ok())
    }
}
