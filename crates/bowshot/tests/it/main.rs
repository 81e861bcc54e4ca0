//! End to end: the built program, started as users start it, spoken to over its sockets. Each server has a folder and
//! ports of its own; when a test fails, the server's log is printed.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at once, and what a failing test prints is its report"
)]

mod access;
mod command_line;
mod configuration;
mod drain;
mod files;
mod http;
mod ports_file;
mod program;
