//! What a configuration is refused for, what a name becomes in a DN and a filter, and what is remembered. A directory that
//! answers is asked in `tests/access`.

use super::template::{DistinguishedName, Filter};
use super::*;
use std::time::Duration;

fn config(text: &str) -> LdapConfig {
    toml::from_str(text).expect("a configuration")
}

#[test]
fn what_is_not_understood_is_refused() {
    let named = "user_dn = \"uid={user},dc=x\"";
    for (text, reason) in [
        (format!("url = \"ldap://h\"\n{named}"), "in cleartext"),
        (format!("url = \"ldap://h\"\nstarttls = true\ninsecure = true\n{named}"), "exclude"),
        (format!("url = \"ldaps://h\"\ninsecure = true\n{named}"), "is encrypted"),
        (format!("url = \"https://h\"\n{named}"), "begins with"),
        (format!("url = \"ldaps://h/dc=x\"\n{named}"), "nothing else"),
        (format!("url = \"ldaps://u:p@h\"\n{named}"), "nothing else"),
        ("url = \"ldaps://h\"".to_owned(), "is needed"),
        (format!("url = \"ldaps://h\"\nuser_base = \"dc=x\"\n{named}"), "exclude"),
        (format!("url = \"ldaps://h\"\nuser_filter = \"(uid={{user}})\"\n{named}"), "below `user_base`"),
        ("url = \"ldaps://h\"\nuser_dn = \"uid=ada,dc=x\"".to_owned(), "once"),
        ("url = \"ldaps://h\"\nuser_dn = \"{user}\"".to_owned(), "whole value"),
        ("url = \"ldaps://h\"\nuser_dn = \"uid=a{user},dc=x\"".to_owned(), "whole value"),
        ("url = \"ldaps://h\"\nuser_base = \"dc=x\"\nuser_filter = \"uid={user}\"".to_owned(), "no filter"),
        (
            "url = \"ldaps://h\"\nuser_base = \"dc=x\"\nuser_filter = \"(uid=ada)\"".to_owned(),
            "lacks the placeholder",
        ),
        ("url = \"ldaps://h\"\nuser_base = \"dc=x\"\nuser_filter = \"(uid={user}\"".to_owned(), "no filter"),
        (format!("url = \"ldaps://h\"\nadmin_group = \"a\"\n{named}"), "need `group_base`"),
        (format!("url = \"ldaps://h\"\nbind_dn = \"cn=a\"\n{named}"), "belong together"),
        (format!("url = \"ldaps://h\"\nbind_password_file = \"/nowhere\"\n{named}"), "/nowhere"),
        (format!("url = \"ldaps://h\"\nbind_password_env = \"BOWSHOT_NO_SUCH\"\n{named}"), "has no text"),
        (format!("url = \"ldaps://h\"\ntimeout_seconds = 0\n{named}"), "timeout_seconds"),
        (format!("url = \"ldaps://h\"\ncache_seconds = 3600\n{named}"), "cache_seconds"),
        (format!("url = \"ldaps://h\"\nmax_connections = 0\n{named}"), "max_connections"),
        (format!("url = \"ldaps://h\"\nsession_seconds = 0\n{named}"), "session_seconds"),
        (format!("url = \"ldaps://h\"\nca_file = \"/nowhere\"\n{named}"), "/nowhere"),
    ] {
        let error = Directories::new(vec![config(&text)]).expect_err(&text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(toml::from_str::<LdapConfig>("url = \"ldaps://h\"\nbind_password = \"x\"").is_err());
    let good = config(&format!("url = \"ldap://h\"\ninsecure = true\n{named}"));
    assert!(Directories::new(vec![good.clone(), good.clone()]).is_err(), "twice");
    let directories = Directories::new(vec![good.clone()]).expect("good");
    assert!(directories.are(&[good]) && directories.has("ldap://h") && directories.places() == 8);
    assert!(directories.may_know("ada", false) && !directories.may_know("ada", true));
    for name in ["", "a:b", "a\0b", "a\nb", &"x".repeat(129)] {
        assert!(!directories.may_know(name, false), "{name:?}");
    }
}

#[test]
fn a_name_is_a_value_in_a_dn() {
    let name = DistinguishedName::parse("uid={user},ou=people,dc=example,dc=org").expect("a template");
    for (user, expected) in [
        ("ada", "ada"),
        ("ada,ou=admins", "ada\\2cou\\3dadmins"),
        ("ada+cn=x", "ada\\2bcn\\3dx"),
        ("#ada", "\\23ada"),
        (" ada ", "\\20ada\\20"),
        ("a\\2c", "a\\5c2c"),
        ("\"a\";<b>", "\\22a\\22\\3b\\3cb\\3e"),
        ("{user}", "{user}"),
        ("Zoë", "Zoë"),
    ] {
        assert_eq!(name.of(user), format!("uid={expected},ou=people,dc=example,dc=org"), "{user}");
    }
}

#[test]
fn a_name_is_a_value_in_a_filter() {
    let filter = Filter::parse_groups("(|(member={dn})(memberUid={user}))").expect("a template");
    for (user, dn, expected) in [
        ("ada", "uid=ada", "(|(member=uid=ada)(memberUid=ada))"),
        ("*)(uid=*", "x", "(|(member=x)(memberUid=\\2a\\29\\28uid=\\2a))"),
        ("a\\00", "(x)*", "(|(member=\\28x\\29\\2a)(memberUid=a\\5c00))"),
        ("{dn}", "{user}", "(|(member={user})(memberUid={dn}))"),
    ] {
        let text = filter.of(user, dn);
        assert_eq!(text, expected);
        assert!(ldap3::parse_filter(&text).is_ok(), "{text}");
    }
    assert!(Filter::parse_user("(member={dn})").is_err(), "it is not known yet");
}

#[test]
fn what_was_right_is_remembered_for_its_time() {
    let (remembered, now) = (BindCache::new().expect("random"), Instant::now());
    let (right, wrong) = (Secret::new("right"), Secret::new("wrong"));
    let (ada, until) = (Principal::user("ada"), now + Duration::from_secs(30));
    assert!(remembered.find("ada", &right, now).is_none());
    remembered.note(("ada", &right), &ada, until);
    assert_eq!(remembered.find("ada", &right, now), Some(ada.clone()));
    assert!(remembered.find("ada", &wrong, now).is_none());
    assert!(remembered.find("bob", &right, now).is_none());
    assert!(remembered.find("ada", &right, until).is_none());
    remembered.note(("bob", &right), &Principal::user("bob"), now);
    assert!(remembered.find("bob", &right, now).is_none(), "no time at all");
}
