//! The session cookie: parsed in all forms that clients send, written in one that all accept.

use bowshot_api::SessionId;
use http::{HeaderMap, HeaderValue};

/// The name that the Flight specification suggests.
const NAME: &str = "arrow_flight_session_id";

/// The value of the session cookie.
///
/// Reads `name=value; …` and the older `$Version="1"; name="value"`, from one or several cookie headers.
pub(crate) fn read(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(http::header::COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|text| text.split([';', ',']))
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| name.trim() == NAME)
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

pub(crate) fn write(session: SessionId) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{NAME}={session}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_as_clients_send_them() {
        for (texts, expected) in [
            (&["arrow_flight_session_id=abc"][..], Some("abc")),
            (&["a=b; arrow_flight_session_id=abc; c=d"], Some("abc")),
            (&["a=b", "arrow_flight_session_id=abc"], Some("abc")),
            (&[r#"$Version="1"; arrow_flight_session_id="abc";$Path="/""#], Some("abc")),
            (&[r#"$Version=1, arrow_flight_session_id = "abc""#], Some("abc")),
            (&["arrow_flight_session_id="], Some("")),
            (&["not_arrow_flight_session_id=abc"], None),
            (&["arrow_flight_session_id"], None),
            (&[""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(http::header::COOKIE, text.parse().unwrap());
            }
            assert_eq!(read(&headers).as_deref(), expected, "{texts:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let id = SessionId::random();
        let mut headers = HeaderMap::new();
        headers.insert(http::header::COOKIE, write(id).unwrap());
        assert_eq!(read(&headers).and_then(|text| SessionId::parse(&text)), Some(id));
    }
}
