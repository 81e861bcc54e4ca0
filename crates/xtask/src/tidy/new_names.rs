//! New names must not contain a retired word of the glossary of `STYLE.md`. Names that exist or only move are ignored. Outside CI the title of
//! the last commit is checked too.

use super::Tree;
use super::source::{code_of, defined_name};
use crate::machine;
use anyhow::Result;
use std::collections::BTreeSet;

/// Words that once had a meaning of our own. Those that are plain words elsewhere (`known`, `live`, `read`) are left to reviewers.
const RETIRED: &str = "apart arriving chores door doors elsewhere foretold forgetful house judging kept lent parcel road roads \
                        room rooms shown told upkeep voucher vouchers";

const MAX_TITLE: usize = 72;

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut changes = machine::read("git", &["diff", "HEAD", "--no-renames", "--unified=0", "--", "*.rs"])?;
    let untracked = machine::read("git", &["ls-files", "--others", "--exclude-standard", "--", "*.rs"])?;
    for path in untracked.lines() {
        found.extend(in_path(path));
        let added: String = tree.read(path)?.lines().map(|line| format!("+{line}\n")).collect();
        changes.push_str(&format!("+++ b/{path}\n{added}"));
    }
    for path in machine::read("git", &["diff", "HEAD", "--name-only", "--diff-filter=A"])?.lines() {
        found.extend(in_path(path));
    }
    found.extend(in_changes(&changes));
    if !machine::is_ci() {
        let title = machine::read("git", &["log", "-1", "--no-merges", "--format=%s"])?;
        found.extend(in_title(title.trim()));
    }
    Ok(found)
}

fn in_path(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?.split('.').next()?;
    retired(name).map(|word| format!("{path}: `{word}` is retired, see the glossary of STYLE.md"))
}

/// The names that added lines define and removed lines do not.
fn in_changes(changes: &str) -> Vec<String> {
    let defined = |line: &str| defined_name(code_of(line)).map(str::to_owned);
    let removed: BTreeSet<String> =
        changes.lines().filter_map(|line| line.strip_prefix('-')).filter_map(defined).collect();
    let (mut path, mut found) = ("", Vec::new());
    for line in changes.lines() {
        if let Some(file) = line.strip_prefix("+++ b/") {
            path = file;
        } else if let Some(name) = line.strip_prefix('+').and_then(defined)
            && let Some(word) = retired(&name)
            && !removed.contains(&name)
        {
            found.push(format!(
                "{path}: `{word}` in the new name `{name}` is retired, see the glossary of STYLE.md"
            ));
        }
    }
    found
}

/// The retired word among the words of a name, in whichever case.
fn retired(name: &str) -> Option<&'static str> {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    // `HOUSE_RULES` has all of its letters on their own.
    let words: Vec<String> = if name.chars().any(char::is_lowercase) {
        snake.split(['_', '-']).map(str::to_owned).collect()
    } else {
        name.split(['_', '-']).map(str::to_lowercase).collect()
    };
    RETIRED.split_whitespace().find(|word| words.iter().any(|found| found == word))
}

fn in_title(title: &str) -> Option<String> {
    let length = title.chars().count();
    if length > MAX_TITLE {
        return Some(format!("title of the last commit: {length} characters, at most {MAX_TITLE}"));
    }
    let has_area = title.split_once(": ").is_some_and(|(area, _)| !area.is_empty());
    (!has_area).then(|| "title of the last commit: begin with `area: `".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retired_words_are_found_in_names_of_every_case() {
        for (name, word) in [
            ("door", Some("door")),
            ("ask_door", Some("door")),
            ("HouseKey", Some("house")),
            ("MAX_ROOMS", Some("rooms")),
            ("is-told", Some("told")),
            ("outdoor_rooming", None),
            ("Roadmap", None),
            ("threshold", None),
        ] {
            assert_eq!(retired(name), word, "{name}");
        }
        assert!(in_path("crates/a/src/door.rs").is_some() && in_path("door/a.rs").is_none());
    }

    #[test]
    fn only_names_that_are_new_are_found() {
        let check = |changes: &str| in_changes(changes).len();
        assert_eq!(
            check("--- a/x.rs\n+++ b/x.rs\n+fn is_told() {}\n+// fn door() {}\n+    let kept = 1;\n"),
            1
        );
        assert_eq!(check("+++ b/x.rs\n+fn is_told() {}\n--- a/y.rs\n+++ b/y.rs\n-    fn is_told() {}\n"), 0);
        assert_eq!(check("+++ b/x.rs\n fn door() {}\n-struct Room;\n"), 0);
    }

    #[test]
    fn titles_have_an_area_and_a_limit() {
        assert_eq!(in_title("engine: answer faster"), None);
        assert!(in_title("answer faster").is_some());
        assert!(in_title(&format!("engine: {}", "x".repeat(65))).is_some());
    }
}
