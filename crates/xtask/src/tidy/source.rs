//! Rules about source files: length, module heads, empty names, and bypassed lints.

use super::Tree;
use anyhow::Result;

const MAX_RUST_LINES: usize = 500;
const MAX_PYTHON_LINES: usize = 400;
const MAX_FILE_BYTES: u64 = 200_000;
/// Results of benchmarks grow with each run: nothing of them is dropped.
const RESULTS: &str = "bench/results/";
const MAX_RESULTS_BYTES: u64 = 2_000_000;
/// What `cargo xtask console` builds, which has a limit of its own over all files.
const BUILT: &str = "clients/console/dist/";
const MAX_BUILT_BYTES: u64 = 500_000;

/// Where `unsafe` may stand.
const UNSAFE: &str = "crates/bowshot-ipc/";

/// Who splits SQL into tokens and parses it.
const SQL: &str = "crates/bowshot-sql/";
/// What reads SQL.
const SQL_READERS: [&str; 4] = ["Tokenizer::new(", "Parser::new(&", "Parser::parse_sql(", "DFParser::"];

/// Words that no name may contain: they say nothing about the thing.
const EMPTY_NAMES: [&str; 4] = ["manager", "helper", "utils", "misc"];

/// Ways around the lints and tests that cannot fail, with what to do instead.
const BYPASSES: &[(&str, &str)] = &[
    ("#[allow(", "use `#[expect(…, reason = \"…\")]`"),
    ("#![allow(", "use `#![expect(…, reason = \"…\")]`"),
    ("#[ignore", "a test runs or goes"),
    ("should_panic", "match the error instead"),
];

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in tree.with_extension("rs") {
        let text = tree.read(path)?;
        found.extend(in_rust(path, &text));
    }
    for path in tree.with_extension("py") {
        let lines = tree.read(path)?.lines().count();
        if lines > MAX_PYTHON_LINES {
            found.push(format!("{path}: {lines} lines, at most {MAX_PYTHON_LINES}: split by subject"));
        }
    }
    for path in &tree.files {
        found.extend(conflicts(path, &tree.read_lossy(path)?));
    }
    for path in tree.files.iter().filter(|path| !path.ends_with(".lock")) {
        let size = tree.size(path);
        let most = match path {
            path if path.starts_with(RESULTS) => MAX_RESULTS_BYTES,
            path if path.starts_with(BUILT) => MAX_BUILT_BYTES,
            _ => MAX_FILE_BYTES,
        };
        if size > most {
            found.push(format!("{path}: {size} bytes, at most {most}"));
        }
    }
    Ok(found)
}

/// Places where a merge has left both sides.
fn conflicts(path: &str, text: &str) -> Vec<String> {
    let is_mark = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    let marks = text.lines().enumerate().filter(|(_, line)| is_mark(line));
    marks.map(|(index, _)| format!("{path}:{}: a merge was left undecided", index + 1)).collect()
}

fn in_rust(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.starts_with("//!") {
        found.push(format!("{path}:1: begin with a `//!` head: what it does, what it must never do"));
    }
    let product: Vec<&str> = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").collect();
    let excused = text.lines().take(20).any(|line| line.starts_with("//! tidy: long because"));
    if product.len() > MAX_RUST_LINES && !excused {
        found.push(format!("{path}: {} lines, at most {MAX_RUST_LINES}: split by subject", product.len()));
    }
    for (index, line) in text.lines().enumerate() {
        found.extend(in_line(path, line).map(|complaint| format!("{path}:{}: {complaint}", index + 1)));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if EMPTY_NAMES.iter().any(|word| name.contains(word)) {
        found.push(format!("{path}: the file name says nothing about its subject"));
    }
    found
}

fn in_line(path: &str, line: &str) -> Option<String> {
    for marker in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")] {
        if line.contains(&format!("// {marker}")) && !line.contains(&format!("{marker}(#")) {
            return Some(format!("`{marker}` without an issue number"));
        }
    }
    let code = code_of(line);
    if let Some((bypass, instead)) = BYPASSES.iter().find(|(bypass, _)| code.contains(bypass)) {
        return Some(format!("`{bypass}`: {instead}"));
    }
    if code.contains("unsafe ") && !path.starts_with(UNSAFE) {
        return Some("`unsafe` is allowed in bowshot-ipc only".to_owned());
    }
    if SQL_READERS.iter().any(|reader| code.contains(reader)) && !path.starts_with(SQL) {
        return Some(
            "SQL is read in bowshot-sql alone: use its `parse`, or its `read_…` for texts of our own"
                .to_owned(),
        );
    }
    let defined = defined_name(code)?.to_ascii_lowercase();
    let word = EMPTY_NAMES.iter().find(|word| defined.contains(*word))?;
    Some(format!("`{word}` in a name says nothing; name the thing"))
}

/// The line without a trailing comment and without what stands in quotes on it.
pub(super) fn code_of(line: &str) -> &str {
    let end = [line.find("//"), line.find('"')].into_iter().flatten().min().unwrap_or(line.len());
    line.get(..end).unwrap_or(line)
}

pub(super) fn defined_name(code: &str) -> Option<&str> {
    const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static"];
    let mut words = code.split_whitespace();
    words.find(|word| KEYWORDS.contains(word))?;
    words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_find_what_they_forbid() {
        for (line, complaint) in [
            ("let x = 1;", false),
            ("pub struct SessionManager;", true),
            ("fn sort_helper(x: u8) {}", true),
            ("let manager = other::Manager::new();", false),
            ("#[allow(dead_code)]", true),
            ("// the lint `#[allow(` is refused", false),
            ("#[ignore]", true),
            ("unsafe { x() }", true),
            ("let s = \"unsafe \";", false),
            ("let tokens = Tokenizer::new(&dialect, sql);", true),
            ("let parser = DFParserBuilder::new(sql);", false),
        ] {
            assert_eq!(in_line("crates/a/src/b.rs", line).is_some(), complaint, "{line}");
        }
    }

    #[test]
    fn merges_that_were_left_are_found() {
        let left = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n";
        assert_eq!(conflicts("a.md", left).len(), 2);
        assert!(conflicts("a.md", "title\n=======\n x <<<<<<< HEAD\n<<<<<<<\n").is_empty());
    }

    #[test]
    fn long_files_and_missing_heads_are_found() {
        assert!(in_rust("a.rs", "//! head\nfn a() {}\n").is_empty());
        assert_eq!(in_rust("a.rs", "fn a() {}\n").len(), 1);
        let long = format!("//! head\n{}", "fn a() {}\n".repeat(MAX_RUST_LINES));
        assert_eq!(in_rust("a.rs", &long).len(), 1);
        let tested = long.replacen("fn a() {}\n", "#[cfg(test)]\n", 1);
        assert!(in_rust("a.rs", &tested).is_empty());
    }
}
