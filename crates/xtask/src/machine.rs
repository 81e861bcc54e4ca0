//! The repository folder, available tools, and how to run them.

use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

thread_local! {
    /// What this thread says, held back until it has said all of it.
    static HELD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// One line to the person (or CI log) that watches; a closed pipe is not an error of ours.
pub(crate) fn say(line: &str) {
    let is_held = HELD.with_borrow_mut(|held| {
        held.as_mut().map(|text| {
            text.push_str(line);
            text.push('\n');
        })
    });
    if is_held.is_none() {
        print(&format!("{line}\n"));
    }
}

/// Does something whose lines appear together when it is done, whatever other threads say meanwhile.
pub(crate) fn said_together<T>(work: impl FnOnce() -> T) -> T {
    HELD.set(Some(String::new()));
    let done = work();
    print(&HELD.take().unwrap_or_default());
    done
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // Cargo says it anew at each start: two clones that share a target folder share this program too.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = Path::new(&manifest);
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// Cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where environments and downloads of the tests live; never inside the repository.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    if let Some(dir) = env::var_os("BOWSHOT_CACHE") {
        return Ok(PathBuf::from(dir));
    }
    let home = env::var_os("HOME")
        .context("HOME is not set; set BOWSHOT_CACHE to a folder for test environments")?;
    Ok(PathBuf::from(home).join(".cache").join("bowshot"))
}

/// Whether this is a continuous integration run, where nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// The Python on the path.
pub(crate) fn python() -> Result<&'static str> {
    ["python3", "python"]
        .into_iter()
        .find(|name| has(name))
        .context("python3 not found: install Python 3.11 or later")
}

/// A command without what Cargo tells this program about itself. Build scripts of dependencies ask Cargo to run them
/// again when such a variable changes (ring's does), so that with them each clone, and each change between `cargo` and
/// `cargo xtask`, would compile everything above ring anew.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// Runs a command in the repository root with its output shown, at once or together with what its thread says.
pub(crate) fn show(program: &str, args: &[&str]) -> Result<bool> {
    say(&format!("$ {program} {}", args.join(" ")));
    let mut command = command(program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    let failed = || format!("`{program}` could not be started");
    if HELD.with_borrow(Option::is_none) {
        return Ok(command.status().with_context(failed)?.success());
    }
    let output = command.output().with_context(failed)?;
    for text in [&output.stdout, &output.stderr] {
        String::from_utf8_lossy(text).lines().for_each(say);
    }
    Ok(output.status.success())
}

/// Runs a command in the repository root and returns what it printed to stdout.
pub(crate) fn read(program: &str, args: &[&str]) -> Result<String> {
    let output = command(program)
        .args(args)
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{program}` could not be started"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed with {}", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{program}` printed something that is not UTF-8"))
}
