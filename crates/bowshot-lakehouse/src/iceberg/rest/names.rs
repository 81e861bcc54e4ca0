//! Names of a catalog: which of them there can be here, and how they stand in an address.
//!
//! Rules of access go by the name that somebody has typed, so that no name may lead to what has another one: an address says a name
//! to the letter, and what addresses, or those who read them, are known to change in silence is no name.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const MAX_NAME_BYTES: usize = 1_024;
/// All but what means itself everywhere in an address.
const WRITTEN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whether something can be called so: a table, or one part of a namespace.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
}

/// Whether a namespace can be a schema: a part with a dot in it would be two when it is asked for.
pub(super) fn is_namespace(parts: &[String]) -> bool {
    let bytes = parts.iter().map(|part| part.len() + 1).sum::<usize>();
    let is_part = |part: &String| is_name(part) && !part.contains('.');
    !parts.is_empty() && bytes <= MAX_NAME_BYTES + 1 && parts.iter().all(is_part)
}

pub(super) fn parts(schema: &str) -> Option<Vec<String>> {
    let parts: Vec<String> = schema.split('.').map(str::to_owned).collect();
    is_namespace(&parts).then_some(parts)
}

pub(super) fn path<'n>(base: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut path = base.strip_suffix('/').unwrap_or(base).to_owned();
    for name in names {
        path.push('/');
        path.extend(utf8_percent_encode(name, WRITTEN));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[test]
    fn names_that_addresses_change_are_none() {
        for name in ["", ".", "..", "or\tders", "or\nders", "orders\r", "a\u{1f}b", "\u{7f}", "\u{85}x"] {
            assert!(!is_name(name), "{name:?}");
            assert!(parts(name).is_none() && parts(&format!("db.{name}")).is_none(), "{name:?}");
        }
        assert!(!is_name(&"x".repeat(1_025)) && is_name(&"x".repeat(1_024)));
        assert!(parts(&"x".repeat(1_024)).is_some() && parts(&"x.".repeat(600)).is_none());
        assert!(parts(&"abc.".repeat(300)).is_none() && parts("a..b").is_none() && parts(".a").is_none());
        assert_eq!(parts("a.b").unwrap(), ["a", "b"]);
        assert!(!is_namespace(&["a.b".to_owned()]) && !is_namespace(&[]));
    }

    #[test]
    fn an_address_says_a_name_to_the_letter() {
        let names = [
            "orders", "ORDERS", "orders ", " orders", "a/b", "../x", "./x", "a\\b", "%6frders", "%2e%2e",
            "?", "#", "a;b", "a+b", "größe", "...", "a:b@c", "~a-b_c",
        ];
        for name in names {
            let mut url = Url::parse("http://h:1/api/").unwrap();
            let path = path(url.path(), ["v1", name].into_iter());
            url.set_path(&path);
            let parts: Vec<_> = url.path_segments().unwrap().collect();
            let said = percent_encoding::percent_decode_str(parts[2]).decode_utf8().unwrap();
            assert_eq!((url.path(), parts.len(), said.as_ref()), (path.as_str(), 3, name));
            assert!(url.query().is_none() && url.fragment().is_none());
        }
        assert_eq!(path("/api", ["a\u{1f}b c", "%"].into_iter()), "/api/a%1Fb%20c/%25");
    }
}
