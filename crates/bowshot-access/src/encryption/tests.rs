//! Sealing with keys of all places: what opens, what does not, and what is told of it.

use super::*;

const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn sealed(key: &EncryptionKey) -> EncryptedText {
    key.encrypt("about", &Secret::new("hush hush")).unwrap()
}

#[test]
fn what_is_sealed_opens_with_what_was_said_beside_it_alone() {
    let key = EncryptionKey::in_memory();
    let one = sealed(&key);
    assert_eq!(key.decrypt("about", &one).unwrap().expose(), "hush hush");
    assert_eq!(key.decrypt("About", &one).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(key.decrypt("", &one).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_ne!(one.text, sealed(&key).text, "each has a nonce of its own");
    assert!(!STANDARD.decode(&one.text).unwrap().windows(4).any(|part| part == b"hush"));
}

#[test]
fn what_was_changed_does_not_open() {
    let key = EncryptionKey::in_memory();
    let whole = sealed(&key);
    let bytes = STANDARD.decode(&whole.text).unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let changed = EncryptedText { text: STANDARD.encode(changed), ..whole.clone() };
        assert_eq!(key.decrypt("about", &changed).unwrap_err().kind(), ErrorKind::Corrupt, "{place}");
    }
    for text in [String::new(), "?".to_owned(), STANDARD.encode(&bytes[..20]), format!("{}AAAA", whole.text)]
    {
        let changed = EncryptedText { text, ..whole.clone() };
        assert_eq!(key.decrypt("about", &changed).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn another_key_says_which_one_is_needed() {
    let (one, other) = (EncryptionKey::in_memory(), EncryptionKey::in_memory());
    let text = sealed(&one);
    for there in [&other, &EncryptionKey::beside(Path::new("/not/there"))] {
        let error = there.decrypt("about", &text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains(&text.key), "{error}");
    }
    sealed(&other);
    let named = EncryptedText { key: other.keys(false).unwrap().unwrap().name.clone(), ..text };
    assert_eq!(other.decrypt("about", &named).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn keys_are_read_in_all_spellings_and_others_are_refused() {
    let bytes = decoded(HEX).unwrap();
    for text in [STANDARD.encode(bytes), STANDARD_NO_PAD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)] {
        assert_eq!(decoded(&format!("{text}\n")), Some(bytes));
    }
    assert_eq!(decoded(&HEX.to_uppercase()), Some(bytes));
    for text in
        ["", "secret", &HEX[2..], &format!("{HEX}00"), &HEX.replace('0', "g"), &STANDARD.encode([7_u8; 31])]
    {
        assert_eq!(decoded(text), None, "{text}");
    }
}

#[test]
fn a_named_key_is_read_from_its_file_and_never_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, format!("{HEX}\n")).unwrap();
    let named = EncryptionKey::named(&format!("file:{}", path.display())).unwrap();
    let text = sealed(&named);
    let again = EncryptionKey::named(&format!("file:{}", path.display())).unwrap();
    assert_eq!(again.decrypt("about", &text).unwrap().expose(), "hush hush");
    assert!(!format!("{named:?}").contains("0011"));
    fs::write(&path, "hush").unwrap();
    for place in
        [HEX, "hush", "env:BOWSHOT_NOT_THERE", "file:/not/there", &format!("file:{}", path.display())]
    {
        let error = EncryptionKey::named(place).unwrap_err().to_string();
        assert!(!error.contains("hush") && !error.contains("0011"), "{error}");
    }
}

#[test]
fn a_key_file_is_made_when_it_is_needed_and_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let key = EncryptionKey::beside(folder.path());
    let stranger = sealed(&EncryptionKey::in_memory());
    assert!(key.decrypt("about", &stranger).is_err() && !path.exists(), "nothing is made to open");
    let text = sealed(&key);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let again = EncryptionKey::beside(folder.path());
    assert_eq!(again.decrypt("about", &text).unwrap().expose(), "hush hush");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(EncryptionKey::beside(folder.path()).decrypt("about", &text).is_err(), "others may read it");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "damaged").unwrap();
    let damaged = EncryptionKey::beside(folder.path());
    assert!(damaged.decrypt("about", &text).is_err() && damaged.encrypt("about", &Secret::new("x")).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "damaged", "it is not written over");
}
