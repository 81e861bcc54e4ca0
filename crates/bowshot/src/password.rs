//! `bowshot hash-password`: reads a password from stdin, writes its hash to stdout. A password is never an argument, which other users of the
//! machine could read.

use crate::usage::Usage;
use anyhow::{Context, Result};
use bowshot_api::Secret;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Read, Stdin, Write};

/// Longest password line.
const MAX_BYTES: u64 = 4096;

pub(crate) fn run() -> Result<()> {
    let password = read()?;
    let hash = bowshot_access::hash_password(&password)
        .map_err(|error| Usage::from(bowshot_api::Error::from(error)))?;
    crate::print(&format!("{hash}\n"))
}

fn read() -> Result<Secret> {
    let stdin = std::io::stdin();
    let _quiet = if stdin.is_terminal() {
        write!(std::io::stderr(), "password: ")?;
        Some(Quiet::new()?)
    } else {
        None
    };
    let mut line = String::new();
    stdin.lock().take(MAX_BYTES).read_line(&mut line).context("cannot read a password from stdin")?;
    Ok(Secret::new(line.trim_end_matches(['\n', '\r'])))
}

/// Turns the terminal's echo off until it is dropped.
struct Quiet {
    stdin: Stdin,
    before: Termios,
}

impl Quiet {
    fn new() -> Result<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).context("cannot read the terminal's settings")?;
        let mut quiet = before.clone();
        quiet.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&stdin, SetArg::TCSANOW, &quiet).context("cannot hide what is typed")?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Errors are ignored: the newline is only cosmetic.
        _ = tcsetattr(&self.stdin, SetArg::TCSANOW, &self.before);
        _ = writeln!(std::io::stderr());
    }
}
