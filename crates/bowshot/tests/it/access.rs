//! Users files that are not understood.

use crate::program::sample_folder;
use std::path::Path;

#[test]
fn users_that_are_not_understood_stop_the_server() {
    let folder = sample_folder();
    let refuse = |text: &str| {
        std::fs::write(folder.path().join("users.toml"), text).expect("write");
        serve_with_users(folder.path())
    };
    for (text, word) in [
        ("", "lists no users"),
        ("[[users]]\nname = 'ada'\npassword = 'lovelace'\n", "unknown field `password`"),
        ("[[users]]\nname = 'ada'\npassword_hash = 'lovelace'\n", "password hash of user `ada`"),
        ("[[users]\n", "line 1"),
    ] {
        let said = refuse(text);
        assert!(said.starts_with("exit 2\nerror: ") && said.contains(word), "{text}: {said}");
        assert!(!said.contains("lovelace"), "a secret is shown: {said}");
    }
    std::fs::remove_file(folder.path().join("users.toml")).expect("remove");
    let said = serve_with_users(folder.path());
    assert!(said.starts_with("exit 2\nerror: cannot read the users file"), "{said}");
}

fn serve_with_users(folder: &Path) -> String {
    crate::program::run(
        folder,
        &["serve", "--users-file", "users.toml", "--flight", "127.0.0.1:0", "--http", "off"],
    )
}
