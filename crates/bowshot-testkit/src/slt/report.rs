//! Counts over all files, as text and as JSON.

use super::corpus::{Exclusion, TestFile};
use super::pair::{FileResult, Outcome};
use serde_json::{Value, json};
use std::fmt::Write;

/// How many rows of a differing answer are shown.
const SHOWN_ROWS: usize = 5;

/// Everything that one run found.
#[derive(Debug)]
pub struct Report {
    /// Files that ran.
    pub files: Vec<FileResult>,
    /// Files and records left out, by reason.
    pub excluded: Vec<(Exclusion, usize, usize)>,
}

impl Report {
    /// Counts what does not run.
    pub fn excluded(corpus: &[TestFile]) -> Vec<(Exclusion, usize, usize)> {
        let of = |reason| corpus.iter().filter(move |file| file.exclusion == Some(reason));
        Exclusion::ALL
            .into_iter()
            .map(|reason| (reason, of(reason).count(), of(reason).map(TestFile::statements).sum()))
            .collect()
    }

    fn sum(&self, count: impl Fn(&FileResult) -> usize) -> usize {
        self.files.iter().map(count).sum()
    }

    /// Share of identical records, 0 to 1.
    pub fn share(&self) -> f64 {
        self.sum(|file| file.identical) as f64 / self.sum(|file| file.records).max(1) as f64
    }

    /// One line that says it all.
    pub fn headline(&self) -> String {
        format!(
            "{} of {} records identical to in-process DataFusion ({:.2} %) in {} files",
            self.sum(|file| file.identical),
            self.sum(|file| file.records),
            100.0 * self.share(),
            self.files.len(),
        )
    }

    /// The report for readers.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for file in &self.files {
            for difference in &file.differences {
                let _ = writeln!(out, "--- {}\n{}", difference.location, difference.sql.trim());
                let _ = writeln!(out, "  in process: {}", shown(&difference.local));
                let _ = writeln!(out, "  on the wire: {}", shown(&difference.wire));
            }
        }
        let (records, identical) = (self.sum(|file| file.records), self.sum(|file| file.identical));
        let _ = writeln!(out, "\n{}", self.headline());
        let _ = writeln!(out, "{identical} passed, {} failed", records - identical);
        let _ = writeln!(out, "  failed on both sides: {}", self.sum(|file| file.failed_on_both));
        let _ =
            writeln!(out, "  as the corpus expects, in process: {}", self.sum(|file| file.local_as_expected));
        let _ =
            writeln!(out, "  as the corpus expects, on the wire: {}", self.sum(|file| file.wire_as_expected));
        for (reason, files, records) in &self.excluded {
            let _ = writeln!(out, "  left out: {files} files, {records} records: {}", reason.text());
        }
        out
    }

    /// The result as `cargo xtask test` records it for conformance suites.
    pub fn suite_result(&self) -> Value {
        let failed: Vec<Value> = self
            .files
            .iter()
            .flat_map(|file| &file.differences)
            .map(|found| json!({"test": found.location, "reason": "not as in process"}))
            .collect();
        let excluded: Vec<Value> = self
            .excluded
            .iter()
            .map(|(reason, files, records)| {
                json!({"test": format!("{files} files, {records} records"), "reason": reason.text()})
            })
            .collect();
        json!({"passed": self.sum(|file| file.identical), "failed": failed, "excluded": excluded})
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(file_json).collect();
        let excluded: Vec<Value> = self
            .excluded
            .iter()
            .map(|(reason, files, records)| json!({"reason": reason.text(), "files": files, "records": records}))
            .collect();
        json!({
            "records": self.sum(|file| file.records),
            "identical": self.sum(|file| file.identical),
            "failed_on_both": self.sum(|file| file.failed_on_both),
            "local_as_expected": self.sum(|file| file.local_as_expected),
            "wire_as_expected": self.sum(|file| file.wire_as_expected),
            "share": self.share(),
            "excluded": excluded,
            "files": files,
        })
    }
}

fn file_json(file: &FileResult) -> Value {
    let different: Vec<&str> = file.differences.iter().map(|found| found.location.as_str()).collect();
    json!({
        "name": file.name,
        "records": file.records,
        "identical": file.identical,
        "failed_on_both": file.failed_on_both,
        "local_as_expected": file.local_as_expected,
        "wire_as_expected": file.wire_as_expected,
        "different": different,
    })
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(message) => format!("failed: {message}"),
        Outcome::Rows { types, rows } => {
            let mut text = format!("{} rows {types}", rows.len());
            for row in rows.iter().take(SHOWN_ROWS) {
                let _ = write!(text, "\n    {}", row.join(" | "));
            }
            text
        }
    }
}
