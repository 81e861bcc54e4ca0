//! Every automation of the repository. No other build script, Makefile or shell script decides anything. It builds in seconds, depends on no
//! crate of the product, and starts compilers, Python, Maven and Go as processes.

mod bench;
mod check;
mod console;
mod dependencies;
mod docs;
mod findings;
mod machine;
mod release;
mod suite;
mod tidy;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Automations of the Bowshot repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What to run before stopping: formatting, lints, tidy and the tests of the light crates.
    Check,
    /// Checks the rules of style and layout that no compiler checks.
    Tidy,
    /// All test suites against the release build: the README's test command.
    Test(TestArgs),
    /// Measures the server beside its peers and writes a report; `bench --help` shows scenarios and options.
    #[command(disable_help_flag = true)]
    Bench {
        /// Scenarios and options, for `bench/run.py`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Builds the console, which the program embeds.
    Console {
        /// Only tells whether the files that are checked in are of this source.
        #[arg(long)]
        check: bool,
    },
    /// Builds the program and its packages: tarball, wheel, Debian package, image, Helm chart, bill of materials, checksums.
    #[command(disable_help_flag = true)]
    Release {
        /// `--glibc 2.28` for machines with older C libraries; other options are for `packaging/release.py`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Surprises of other software: tells which of the scripts in `findings/` still show theirs.
    Findings {
        /// One of them alone.
        name: Option<String>,
    },
    /// Licences of other crates, crates in several versions, and what is newer in the registry.
    Dependencies,
    /// Writes the generated reference pages.
    Docs {
        /// Only tells whether they are up to date.
        #[arg(long)]
        check: bool,
    },
}

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Run only these suites or groups, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Run the suites that take tens of minutes each, and are no part of continuous integration.
    #[arg(long)]
    pub(crate) long: bool,
    /// List the suites and what they need.
    #[arg(long)]
    pub(crate) list: bool,
    /// Record the conformance results and write docs/reference/conformance.md.
    #[arg(long)]
    pub(crate) write_docs: bool,
    /// Record how long the suites took in tests/seconds.json and CONTRIBUTING.md.
    #[arg(long)]
    pub(crate) record_seconds: bool,
    /// Use the binaries of the last release build as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            machine::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<bool> {
    match cli.command {
        Command::Check => check::run(),
        Command::Tidy => tidy::run(),
        Command::Test(args) => suite::run(&args),
        Command::Bench { args } => bench::run(&args),
        Command::Findings { name } => findings::run(name.as_deref()),
        Command::Dependencies => dependencies::run(),
        Command::Docs { check } => docs::run(check),
        Command::Console { check } => console::run(check),
        Command::Release { args } => release::run(&args),
    }
}
