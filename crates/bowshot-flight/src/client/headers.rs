//! Request headers for credentials and session, updated from responses.

use super::{Error, Login, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

#[derive(Debug)]
pub(super) struct Headers {
    authorization: Option<MetadataValue<Ascii>>,
    cookies: BTreeMap<String, String>,
}

impl Headers {
    pub(super) fn new(login: &Login) -> Result<Self> {
        let authorization = match login {
            Login::Anonymous => None,
            Login::Token(token) => Some(sensitive(format!("Bearer {}", token.expose()))?),
            Login::Password { user, password } => {
                let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
                Some(sensitive(format!("Basic {pair}"))?)
            }
        };
        Ok(Self { authorization, cookies: BTreeMap::new() })
    }

    pub(super) fn apply(&self, metadata: &mut MetadataMap) {
        if let Some(authorization) = &self.authorization {
            metadata.insert("authorization", authorization.clone());
        }
        if self.cookies.is_empty() {
            return;
        }
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if let Ok(cookie) = MetadataValue::try_from(pairs.join("; ")) {
            metadata.insert("cookie", cookie);
        }
    }

    /// Stores bearer tokens and cookies of a response.
    pub(super) fn learn(&mut self, metadata: &MetadataMap) {
        if let Some(token) = metadata.get("authorization")
            && token.as_bytes().starts_with(b"Bearer ")
        {
            let mut token = token.clone();
            token.set_sensitive(true);
            self.authorization = Some(token);
        }
        for cookie in metadata.get_all("set-cookie") {
            let Ok(text) = cookie.to_str() else { continue };
            let pair = text.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }
}

fn sensitive(text: String) -> Result<MetadataValue<Ascii>> {
    let mut value = MetadataValue::try_from(text).map_err(|_| Error::Login)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Secret;

    #[test]
    fn token_and_cookies_of_responses_are_sent_again() {
        let login = Login::Password { user: "ada".to_owned(), password: Secret::new("lace") };
        let mut headers = Headers::new(&login).unwrap();
        let sent = |headers: &Headers, name: &str| {
            let mut metadata = MetadataMap::new();
            headers.apply(&mut metadata);
            metadata.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(sent(&headers, "authorization").unwrap(), "Basic YWRhOmxhY2U=");
        assert_eq!(sent(&headers, "cookie"), None);
        let mut response = MetadataMap::new();
        response.insert("authorization", "Bearer abc".parse().unwrap());
        response.append("set-cookie", "session=1; Path=/; HttpOnly".parse().unwrap());
        response.append("set-cookie", "node=b".parse().unwrap());
        headers.learn(&response);
        assert_eq!(sent(&headers, "authorization").unwrap(), "Bearer abc");
        assert_eq!(sent(&headers, "cookie").unwrap(), "node=b; session=1");
        assert!(!format!("{headers:?}").contains("abc"));
    }
}
