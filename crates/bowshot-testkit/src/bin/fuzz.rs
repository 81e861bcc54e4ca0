//! Sends mutated requests to the real program and checks that it answers all of them and keeps nothing:
//! `fuzz [--calls N] [--seed N] [--exchanges] [--program PATH]`. `--exchanges` sends nothing but statements over streams of rows;
//! `--case N` repeats one case of a seed. Ends with 1 on any fault.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is the program's output")]

use anyhow::{Context, Result};
use bowshot_testkit::fuzz::run::{Kinds, Plan, Tally, run};
use bowshot_testkit::process::{Metrics, ServerProcess};
use clap::Parser;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Short lives, so that what nobody reads is gone soon; a time limit, because mutated joins can be endless.
const CONFIGURATION: &str = include_str!("../../../../tests/fuzz/bowshot.toml");

/// Gauges that must be zero when all clients are gone.
const ZERO: &[&str] = bowshot_api::words! {
    bowshot_sessions bowshot_running_queries bowshot_queued_queries bowshot_open_results
    bowshot_result_buffer_bytes bowshot_result_spill_bytes bowshot_query_memory_bytes
    bowshot_prepared_statements bowshot_open_transactions
};

/// File handles above the idle number that are fine: the scrape's own connection.
const SPARE_HANDLES: f64 = 2.0;
/// Memory above idle that the process may keep: caches and what the allocator holds back.
const KEPT_MEMORY: f64 = 1024.0 * 1024.0 * 1024.0;
/// How long the server may take to let go of everything.
const SETTLING: Duration = Duration::from_secs(180);

#[derive(Parser)]
struct Arguments {
    /// Requests to send.
    #[arg(long, default_value_t = 100_000)]
    calls: u64,
    /// Seed of all choices.
    #[arg(long, default_value_t = 20_261_121)]
    seed: u64,
    /// Clients at once.
    #[arg(long, default_value_t = 8)]
    workers: u64,
    /// Repeats one case only.
    #[arg(long)]
    case: Option<u64>,
    /// Sends nothing but exchanges: statements over rows that come with them.
    #[arg(long)]
    exchanges: bool,
    /// The program; next to this one by default.
    #[arg(long)]
    program: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let program = match arguments.program {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("bowshot"),
    };
    let data = tempfile::tempdir()?;
    let tables = tables(data.path())?;
    let mut server = ServerProcess::start(&program, &tables, CONFIGURATION).await?;
    let idle = warm(&server, arguments.seed).await?;
    println!("seed {}, {} calls, server {}", arguments.seed, arguments.calls, server.pid());
    let begin = Instant::now();
    let kinds = if arguments.exchanges { Kinds::Exchanges } else { Kinds::All };
    let plan = Plan {
        kinds,
        address: server.flight(),
        seed: arguments.seed,
        calls: arguments.calls,
        workers: if arguments.case.is_some() { 1 } else { arguments.workers },
        only: arguments.case,
    };
    let tally = Box::pin(run(plan, |made, failed| eprintln!("{made} calls, {failed} faults"))).await;
    print!("{}", summary(&tally, begin.elapsed()));
    let alive = server.is_alive();
    let settled =
        if alive { settle(&server, &idle).await } else { Err(anyhow::anyhow!("the server has ended")) };
    if let Err(error) = &settled {
        println!("NOT CLEAN: {error:#}\n{}", server.log());
    } else {
        println!("clean: sessions, results, buffers, spill, memory and file handles are back");
    }
    let failed = tally.failed() + u64::from(settled.is_err());
    println!("{} passed, {failed} failed", tally.total().saturating_sub(failed));
    let good = failed == 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Small tables for the seeds.
fn tables(folder: &Path) -> Result<Vec<String>> {
    let (mut numbers, mut words) = ("id,value,ratio,flag,day\n".to_owned(), "id,word\n".to_owned());
    for id in 0..1000 {
        let day = 1 + id % 28;
        writeln!(
            numbers,
            "{id},{},{},{},2024-01-{day:02}",
            id * 37 % 211,
            f64::from(id) / 1000.0,
            id % 3 == 0
        )?;
        writeln!(words, "{id},word{id}")?;
    }
    let mut tables = Vec::new();
    for (name, text) in [("numbers", numbers), ("words", words)] {
        let path = folder.join(format!("{name}.csv"));
        std::fs::write(&path, text).context("cannot write the tables")?;
        tables.push(format!("{name}={}", path.display()));
    }
    Ok(tables)
}

/// A first round fills caches and starts threads, so that the idle figures are those of a used server.
async fn warm(server: &ServerProcess, seed: u64) -> Result<Metrics> {
    let plan =
        Plan { address: server.flight(), seed: !seed, calls: 500, workers: 8, only: None, kinds: Kinds::All };
    Box::pin(run(plan, |_, _| {})).await;
    server.wait_metrics(SETTLING, zero).await.context("after the first round")
}

fn zero(metrics: &Metrics) -> Result<(), String> {
    for &name in ZERO {
        match metrics.get(name) {
            Some(0.0) => {}
            Some(value) => return Err(format!("{name} is {value}")),
            None => return Err(format!("/metrics has no {name}")),
        }
    }
    Ok(())
}

async fn settle(server: &ServerProcess, idle: &Metrics) -> Result<()> {
    let of = |metrics: &Metrics, name: &str| metrics.get(name).copied().unwrap_or(f64::NAN);
    let after = server
        .wait_metrics(SETTLING, |metrics| {
            zero(metrics)?;
            let (open, before) = (of(metrics, "process_open_fds"), of(idle, "process_open_fds"));
            if open <= before + SPARE_HANDLES {
                Ok(())
            } else {
                Err(format!("{open} file handles, {before} before"))
            }
        })
        .await?;
    let name = "process_resident_memory_bytes";
    let (held, before) = (of(&after, name), of(idle, name));
    println!("memory: {:.0} MB before, {:.0} MB after", before / 1e6, held / 1e6);
    anyhow::ensure!(held - before <= KEPT_MEMORY, "memory grew from {before} to {held} bytes");
    Ok(())
}

fn summary(tally: &Tally, elapsed: Duration) -> String {
    let mut out = String::new();
    for (group, (count, faults)) in &tally.faults {
        let _ = writeln!(out, "FAULT {count} x {group}");
        for fault in faults {
            let _ = writeln!(out, "  case {}: {}\n    {}", fault.case, fault.text, fault.request);
        }
    }
    let _ = writeln!(out, "calls by kind: {:?}", tally.calls);
    let _ = writeln!(out, "answers by code (below 0: without one): {:?}", tally.codes);
    let rate = tally.total() as f64 / elapsed.as_secs_f64();
    let _ = writeln!(out, "{:.0} s, {rate:.0} calls/s", elapsed.as_secs_f64());
    out
}
