//! Relative links in Markdown files, their headings, and the paths in `ARCHITECTURE.md` must exist.

use super::Tree;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The page whose code names files of the repository, those of our crates without `crates/`.
const MAP: &str = "ARCHITECTURE.md";

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in tree.with_extension("md") {
        for (line, target) in links(&tree.read(path)?) {
            if let Some(reason) = broken(tree, path, &target) {
                found.push(format!("{path}:{line}: link `{target}`: {reason}"));
            }
        }
    }
    let paths = paths(&tree.read(MAP)?);
    let is_there = |path: &str| tree.root.join(path).exists() || tree.root.join("crates").join(path).exists();
    let missing = paths.into_iter().filter(|(_, path)| !is_there(path));
    found.extend(missing.map(|(line, path)| format!("{MAP}:{line}: there is no `{path}`")));
    Ok(found)
}

/// The code spans that are paths from the root of the repository or of its crates.
fn paths(text: &str) -> Vec<(usize, String)> {
    const FOLDERS: [&str; 6] = ["bench/", "clients/", "deploy/", "docs/", "packaging/", "tests/"];
    let is_path = |code: &str| {
        let is_rooted = code.starts_with("bowshot") || FOLDERS.iter().any(|folder| code.starts_with(folder));
        is_rooted && code.contains('/') && !code.contains(' ')
    };
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let codes = text.split('`').skip(1).step_by(2).filter(|code| is_path(code));
        found.extend(codes.map(|code| (line, code.to_owned())));
    }
    found
}

/// Lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (index, part) in line.split('`').enumerate() {
            // Odd parts are code.
            if index % 2 == 1 {
                continue;
            }
            for rest in part.split("](").skip(1) {
                if let Some((target, _)) = rest.split_once(')') {
                    let target = target.split_whitespace().next().unwrap_or_default();
                    found.push((number, target.to_owned()));
                }
            }
        }
    }
    found
}

fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let path = if file.is_empty() { PathBuf::from(from) } else { folder.join(file) };
    let full = tree.root.join(&path);
    if !full.exists() {
        return Some("no such file".to_owned());
    }
    if heading.is_empty() || full.is_dir() {
        return None;
    }
    let text = std::fs::read_to_string(&full).ok()?;
    let known = prose(&text).filter_map(|(_, line)| anchor(line)).any(|anchor| anchor == heading);
    (!known).then(|| "no such heading".to_owned())
}

/// The anchor that a heading line gets: lower case, spaces to hyphens, punctuation dropped.
fn anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_holds_no_links() {
        let text = "see [a](x.md) and `[b](y.md)`\n```\n[c](z.md)\n```\n[d](w.md#top \"title\")";
        assert_eq!(links(text), [(1, "x.md".to_owned()), (5, "w.md#top".to_owned())]);
    }

    #[test]
    fn paths_are_code_that_begins_with_a_crate_or_a_folder() {
        let text = "`bowshot-api` is in `bowshot-api/src/lib.rs`, `plan/` and\n`tests/suites.toml`; bench/x; `bowshot sql a/b`";
        assert_eq!(
            paths(text),
            [(1, "bowshot-api/src/lib.rs".to_owned()), (2, "tests/suites.toml".to_owned())]
        );
    }

    #[test]
    fn anchors_follow_the_usual_rule() {
        assert_eq!(anchor("## The `--data` flag, explained").as_deref(), Some("the---data-flag-explained"));
        assert_eq!(anchor("no heading"), None);
    }
}
