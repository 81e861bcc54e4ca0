//! Where the corpus is, and which of its files run.
//!
//! The files come with the crate `datafusion-sqllogictest`, so they are in the registry's folder once the dependencies
//! are there. A file runs unless [`Exclusion`] names a reason; reasons are counted in the report.

use anyhow::{Context, Result, bail};
use datafusion_sqllogictest::DFColumnType;
use sqllogictest::{Record, parse_file};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The records of one file.
pub type Records = Vec<Record<DFColumnType>>;

/// Why a file does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// It tests the functions of `datafusion-spark`, which Bowshot does not have.
    SparkFunctions,
    /// It reads or writes files: external tables, COPY, functions over files.
    OutsideData,
    /// It needs tables or functions that the corpus' own runner registers in Rust.
    RustFixtures,
}

impl Exclusion {
    pub const ALL: [Self; 3] = [Self::SparkFunctions, Self::OutsideData, Self::RustFixtures];

    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::SparkFunctions => "tests functions of datafusion-spark",
            Self::OutsideData => "reads or writes files",
            Self::RustFixtures => "needs tables that the corpus' runner registers in Rust",
        }
    }
}

/// What a statement says when it needs files. Compared in upper case.
const OUTSIDE_DATA: [&str; 8] = [
    "STORED AS",
    "LOCATION '",
    "COPY ",
    "TEST_FILES/",
    "CORE/TESTS/DATA",
    "PARQUET-TESTING",
    "PARQUET_METADATA(",
    "CREATE EXTERNAL",
];

/// Files for which the corpus' runner prepares its context (`TestContext::try_new_for_test_file`).
const RUST_FIXTURES: &[&str] = bowshot_api::words! {
    aggregate arrow_field async_udf avro cast_extension_type_metadata cte dictionary_struct dynamic_file
    information_schema_columns information_schema_table_types joins map metadata range_partitioning
    union_function
};

/// One file of the corpus.
#[derive(Debug)]
pub struct TestFile {
    /// Name under `test_files`, with `/`.
    pub name: String,
    /// Its records, included files expanded.
    pub records: Records,
    /// Why it does not run, if it does not.
    pub exclusion: Option<Exclusion>,
}

impl TestFile {
    /// Statements and queries in it.
    pub fn statements(&self) -> usize {
        self.records.iter().filter(|record| sql(record).is_some()).count()
    }
}

/// The SQL of a record that runs something.
pub fn sql(record: &Record<DFColumnType>) -> Option<&str> {
    match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } | Record::Let { sql, .. } => Some(sql),
        _ => None,
    }
}

/// Reads the whole corpus, sorted by name.
pub fn read(folder: &Path) -> Result<Vec<TestFile>> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
        let records = parse_file(&path).with_context(|| format!("cannot parse `{name}`"))?;
        let exclusion = exclusion(&name, &records);
        files.push(TestFile { name, records, exclusion });
    }
    Ok(files)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            paths.push(path);
        }
    }
    Ok(())
}

fn exclusion(name: &str, records: &Records) -> Option<Exclusion> {
    if name.starts_with("spark/") {
        return Some(Exclusion::SparkFunctions);
    }
    let outside = records.iter().filter_map(sql).any(|sql| {
        let sql = sql.to_uppercase();
        OUTSIDE_DATA.iter().any(|mark| sql.contains(mark))
    });
    if outside {
        return Some(Exclusion::OutsideData);
    }
    let stem = name.strip_suffix(".slt").unwrap_or(name);
    RUST_FIXTURES.contains(&stem).then_some(Exclusion::RustFixtures)
}

/// The corpus' folder, by asking cargo where the crate is.
pub fn folder() -> Result<PathBuf> {
    // Cargo names the clone that runs: another one may have built this.
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(Path::new(&crate_folder).join("Cargo.toml"))
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == "datafusion-sqllogictest")
        .and_then(|package| package["manifest_path"].as_str())
        .context("the crate `datafusion-sqllogictest` is not a dependency")?;
    Ok(Path::new(manifest).with_file_name("test_files"))
}
