//! No import cycles among the modules of a crate. A module is a folder below `src`, or a file beside them.

use super::Tree;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// The sources whose modules stand in an order.
const SOURCES: [&str; 4] = [
    "crates/bowshot-cluster/src/",
    "crates/bowshot-databases/src/",
    "crates/bowshot-engine/src/",
    "crates/bowshot-reuse/src/",
];

/// For each module those that it imports from, with a place where it does.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<String, String>>;

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for source in SOURCES {
        let mut files = Vec::new();
        for path in tree.with_extension("rs").filter(|path| path.starts_with(source)) {
            files.push((path, tree.read(path)?));
        }
        found.extend(cycles(source, &files));
    }
    Ok(found)
}

fn cycles(source: &str, files: &[(&str, String)]) -> Vec<String> {
    let modules: BTreeSet<&str> = files.iter().filter_map(|(path, _)| module(source, path)).collect();
    let (mut imports, mut found) = (Imports::new(), Vec::new());
    for (path, text) in files {
        let Some(from) = module(source, path).filter(|_| !is_test(path)) else { continue };
        for (line, name) in names(text, depth(source, path)) {
            let place = format!("{path}:{line}");
            if modules.contains(name.as_str()) && name != from {
                imports.entry(from).or_default().entry(name).or_insert(place);
            } else if name.starts_with(char::is_uppercase) {
                found.push(format!("{place}: import `{name}` from its module, so that cycles are seen"));
            }
        }
    }
    for (from, those) in &imports {
        for (to, place) in those.iter().filter(|(to, _)| reaches(&imports, to, from)) {
            found.push(format!("{place}: `{from}` imports from `{to}`, which imports from `{from}`"));
        }
    }
    found
}

/// Whether one module imports from another, itself or by way of others.
fn reaches(imports: &Imports<'_>, from: &str, to: &str) -> bool {
    let (mut waiting, mut seen) = (vec![from], BTreeSet::new());
    while let Some(at) = waiting.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            waiting.extend(imports.get(at).into_iter().flat_map(|those| those.keys().map(String::as_str)));
        }
    }
    false
}

/// The module of a file; `None` for the root of the crate, which may know them all.
fn module<'p>(source: &str, path: &'p str) -> Option<&'p str> {
    let inside = path.strip_prefix(source)?;
    let module = inside.split('/').next()?.trim_end_matches(".rs");
    (module != "lib" && module != "main").then_some(module)
}

/// How many `super::` lead from a file to the root of its crate.
fn depth(source: &str, path: &str) -> usize {
    let inside = path.strip_prefix(source).unwrap_or(path).trim_end_matches(".rs");
    inside.trim_end_matches("/mod").split('/').count()
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// What a file names at the root of its crate, with the lines where it does.
fn names(text: &str, depth: usize) -> Vec<(usize, String)> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code: Vec<&str> = product.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            let before = code.get(..at).unwrap_or_default();
            if before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            let line = before.matches('\n').count() + 1;
            let after = code.get(at + root.len()..).unwrap_or_default();
            found.extend(first_names(after).into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// The first name of a path, or those of all paths between braces.
fn first_names(path: &str) -> Vec<String> {
    let Some(list) = path.strip_prefix('{') else { return word(path).into_iter().collect() };
    let (mut depth, mut starts, mut names) = (0_usize, true, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts = true,
            c if starts && !c.is_whitespace() => {
                names.extend(list.get(at..).and_then(word));
                starts = false;
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty() && *word != "super").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        cycles("src/", &files)
    }

    #[test]
    fn a_cycle_is_found_over_any_number_of_modules() {
        let plan = ("src/plan/mod.rs", "use crate::error::classify;\n");
        assert!(check(&[plan, ("src/error.rs", "")]).is_empty());
        let direct = check(&[plan, ("src/error.rs", "fn f() { crate::plan::logical() }\n")]);
        assert_eq!(direct.len(), 2);
        assert!(direct[0].starts_with("src/error.rs:1: `error` imports from `plan`"), "{direct:?}");
        let by_way =
            [plan, ("src/error.rs", "\nuse super::types;\n"), ("src/types/a.rs", "use super::super::plan;")];
        assert_eq!(check(&by_way).len(), 3);
    }

    #[test]
    fn lists_of_paths_are_read_and_comments_and_tests_are_not() {
        let modules = [("src/b.rs", "use crate::a;"), ("src/c.rs", "use crate::a;")];
        let with = |text| check(&[("src/a/x.rs", text), modules[0], modules[1]]).len();
        assert_eq!(with("use crate::{\n    a::y,\n    b::{X, c},\n};\n"), 2);
        assert_eq!(with("use crate::{c, b};\n"), 4);
        assert_eq!(with("// crate::b\n"), 0);
        assert_eq!(with("use super::b;\nlet x = $crate::c;\n"), 0, "that is `a`'s own `b`");
        assert_eq!(with("#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n"), 0);
        assert_eq!(check(&[("src/a/tests.rs", "use crate::b;"), modules[0]]).len(), 0);
    }

    #[test]
    fn the_root_hides_no_module() {
        assert_eq!(
            check(&[("src/lib.rs", "pub use a::X;\npub use b::Y;"), ("src/a.rs", "use crate::Y;")]).len(),
            1
        );
    }
}
