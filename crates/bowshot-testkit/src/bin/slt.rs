//! Runs DataFusion's SQL test corpus over Flight and in process and compares: `slt [--only TEXT] [--json FILE]`.
//! Ends with 1 when fewer records than the threshold are identical.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is the program's output")]

use anyhow::Result;
use bowshot_testkit::slt::{corpus, local, pair, report::Report, server};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
struct Arguments {
    /// Only files whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// Where to write the report as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Share of identical records, in per cent, below which the run fails.
    #[arg(long, default_value_t = 99.5)]
    threshold: f64,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let corpus = corpus::read(&corpus::folder()?)?;
    let server = server::start(local::session_config()).await?;
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|text| name.contains(text));
    let mut files = Vec::new();
    for file in corpus.iter().filter(|file| file.exclusion.is_none() && wanted(&file.name)) {
        eprintln!("{} ({} records)", file.name, file.statements());
        files.push(Box::pin(pair::run(file, &server.address())).await);
    }
    let report = Report { files, excluded: Report::excluded(&corpus) };
    println!("{}", report.text());
    if let Some(path) = arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report.json())?)?;
    }
    if let Some(path) = std::env::var_os("BOWSHOT_RESULT") {
        std::fs::write(path, report.suite_result().to_string())?;
    }
    server.stop().await?;
    Ok(if 100.0 * report.share() >= arguments.threshold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
