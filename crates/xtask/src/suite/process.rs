//! Runs the command of a suite, shows and keeps its output, and stops it at its time limit.

use crate::machine;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A command that has ended.
pub(super) struct Finished {
    pub(super) success: bool,
    pub(super) timed_out: bool,
    pub(super) output: String,
}

/// How long a command that was interrupted at its limit may clean up.
const GRACE: Duration = Duration::from_secs(20);

pub(super) fn run(mut command: Command, limit: Duration) -> Result<Finished> {
    let shown = format!("{command:?}").replace('"', "");
    machine::say(&format!("$ {}", shown.rsplit("PYTHONDONTWRITEBYTECODE=1 ").next().unwrap_or(&shown)));
    // At a terminal the suite stays in our process group, so that Ctrl-C reaches it.
    let own_group = !std::io::stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("`{shown}` could not be started"))?;
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        forward(stdout, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        forward(stderr, sender);
    }
    let (output, timed_out) = follow(&lines, &mut child, own_group, limit);
    let success = child.wait().context("a suite's process cannot be waited for")?.success() && !timed_out;
    Ok(Finished { success, timed_out, output })
}

fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
}

fn follow(lines: &Receiver<String>, child: &mut Child, own_group: bool, limit: Duration) -> (String, bool) {
    let mut output = String::new();
    let mut deadline = Instant::now() + limit;
    let mut signals = ["-INT", "-KILL"].into_iter();
    let mut timed_out = false;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                machine::say(&line);
                output.push_str(&line);
                output.push('\n');
            }
            Err(RecvTimeoutError::Disconnected) => return (output, timed_out),
            Err(RecvTimeoutError::Timeout) => {
                timed_out = true;
                deadline = Instant::now() + GRACE;
                let Some(signal) = signals.next() else { return (output, timed_out) };
                stop(child, signal, own_group);
            }
        }
    }
}

fn stop(child: &mut Child, signal: &str, own_group: bool) {
    let target = if own_group { format!("-{}", child.id()) } else { child.id().to_string() };
    // Failure means that the process has ended already.
    let _ = Command::new("kill").args([signal, "--", &target]).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Finished {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit).unwrap()
    }

    #[test]
    fn output_of_both_pipes_is_kept() {
        let run = shell("echo out; echo err >&2; exit 3", Duration::from_secs(60));
        assert!(!run.success && !run.timed_out);
        assert!(run.output.contains("out\n") && run.output.contains("err\n"));
    }

    #[test]
    fn the_limit_ends_a_command() {
        let run = shell("exec sleep 600", Duration::from_millis(50));
        assert!(run.timed_out && !run.success);
    }
}
