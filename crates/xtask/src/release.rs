//! `cargo xtask release`: builds the program and runs `packaging/release.py`. With `--glibc 2.28` the program needs no newer C library than that.

use crate::machine;
use crate::suite::needs;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};

/// What linkers of older C libraries are asked for; the others are built by the compilers of the machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(args: &[String]) -> Result<bool> {
    if args.iter().any(|arg| arg == "--help") {
        machine::say(
            "--glibc VERSION builds for machines with that C library; other options are for packaging/release.py",
        );
        return Ok(true);
    }
    let (glibc, args) = split(args)?;
    let program = match glibc {
        Some(version) => build_for(&version)?,
        None => build()?,
    };
    let Some(program) = program else { return Ok(false) };
    let status = machine::command(machine::python()?)
        .arg(machine::root().join("packaging/release.py"))
        .arg("--program")
        .arg(program)
        .arg("--out")
        .arg(machine::target_dir().join("packages"))
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .context("packaging/release.py could not be started")?;
    Ok(status.success())
}

/// Takes `--glibc VERSION` out of the options; the others are those of `packaging/release.py`.
fn split(args: &[String]) -> Result<(Option<String>, Vec<String>)> {
    let (mut glibc, mut rest) = (None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--glibc") {
            Some("") => glibc = Some(args.next().context("`--glibc` needs a version, such as 2.28")?.clone()),
            Some(value) if value.starts_with('=') => glibc = Some(value.trim_start_matches('=').to_owned()),
            _ => rest.push(arg.clone()),
        }
    }
    let is_version =
        |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.starts_with("2.");
    if let Some(version) = glibc.as_deref().filter(|version| !is_version(version)) {
        bail!("`--glibc {version}` is no version of glibc; write, for example, 2.28");
    }
    Ok((glibc, rest))
}

/// The program for machines like this one, unless the build fails.
fn build() -> Result<Option<PathBuf>> {
    let built = machine::show("cargo", &["build", "--release", "-p", "bowshot"])?;
    Ok(built.then(|| machine::target_dir().join("release/bowshot")))
}

/// The program for machines with this C library or a newer one. Zig has the symbols of each version; everything is compiled a second time.
fn build_for(glibc: &str) -> Result<Option<PathBuf>> {
    let python = needs::python(&machine::cache_dir()?, &machine::root().join("packaging/requirements.txt"))?;
    let tools = python.parent().map(Path::to_path_buf).context("the Python environment has no folder")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.clone()].into_iter().chain(env::split_paths(&path)))?;
    let target = format!("{TARGET}.{glibc}");
    machine::say(&format!("building against glibc {glibc}"));
    let status = machine::command(&tools.join("cargo-zigbuild").to_string_lossy())
        .args(["zigbuild", "--release", "-p", "bowshot", "--target", &target])
        .current_dir(machine::root())
        .env("PATH", path)
        .status()
        .context("`cargo-zigbuild` could not be started")?;
    if !status.success() {
        machine::say(&format!("is the target there? `rustup target add {TARGET}` gets it"));
        return Ok(None);
    }
    Ok(Some(machine::target_dir().join(TARGET).join("release/bowshot")))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_version_of_the_c_library_is_ours() {
        let given = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            split(&words).ok()
        };
        let rest = vec!["--parts".to_owned(), "wheel".to_owned()];
        assert_eq!(given(&["--parts", "wheel"]), Some((None, rest.clone())));
        for words in [&["--glibc", "2.28", "--parts", "wheel"], &["--parts", "wheel", "--glibc", "2.28"]] {
            assert_eq!(given(words), Some((Some("2.28".to_owned()), rest.clone())));
        }
        assert_eq!(given(&["--glibc=2.31"]), Some((Some("2.31".to_owned()), Vec::new())));
        for words in [&["--glibc"][..], &["--glibc", "new"], &["--glibc="]] {
            assert_eq!(given(words), None, "{words:?}");
        }
    }
}
