//! What a suite needs before it runs: a Python environment with pinned packages, and the paths in its command line.

use super::table::Suite;
use crate::machine;
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Places that commands name as `{root}`, `{bin}`, `{cache}` and `{python}`.
pub(super) struct Places {
    root: PathBuf,
    bin: PathBuf,
    cache: PathBuf,
    python: Option<PathBuf>,
}

/// One at a time: suites that run side by side may have one environment.
static MAKING: Mutex<()> = Mutex::new(());

pub(super) fn places(suite: &Suite) -> Result<Places> {
    let _one = MAKING.lock();
    let cache = machine::cache_dir()?;
    let python = match &suite.requirements {
        Some(requirements) => Some(python(&cache, &machine::root().join(requirements))?),
        None => None,
    };
    Ok(Places { root: machine::root(), bin: machine::target_dir().join("release"), cache, python })
}

impl Places {
    /// The command of a suite, ready to start.
    pub(super) fn command(&self, words: &[String], folder: &str, result: &Path) -> Result<Command> {
        let words: Vec<String> = words.iter().map(|word| self.fill(word)).collect();
        let (program, args) = words.split_first().context("an empty command")?;
        if program.contains('{') {
            bail!("`{program}` names an unknown place");
        }
        let mut command = machine::command(program);
        command
            .args(args)
            .current_dir(self.root.join(folder))
            .env("BOWSHOT_BIN", &self.bin)
            .env("BOWSHOT_RESULT", result)
            .env("GOBIN", self.cache.join("go-bin"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }

    fn fill(&self, word: &str) -> String {
        let python = self.python.as_deref().map(Path::to_string_lossy);
        let mut filled = word
            .replace("{root}", &self.root.to_string_lossy())
            .replace("{bin}", &self.bin.to_string_lossy())
            .replace("{cache}", &self.cache.to_string_lossy());
        if let Some(python) = python {
            filled = filled.replace("{python}", &python);
        }
        filled
    }
}

/// A virtual environment for a file of pinned requirements; made once for each content of that file.
pub(crate) fn python(cache: &Path, requirements: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read `{}`", requirements.display()))?;
    let base = machine::python()?;
    let version = machine::read(base, &["-c", "import sys; print('%d.%d' % sys.version_info[:2])"])?;
    let folder = cache.join(format!("python-{:016x}", fingerprint(&[version.trim(), &text])));
    let program = folder.join("bin/python");
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(program);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).context("a half-made Python environment cannot be removed")?;
    }
    machine::say(&format!("making a Python {} environment in {}", version.trim(), folder.display()));
    let folder_text = folder.to_string_lossy();
    if !machine::show(base, &["-m", "venv", &folder_text])? {
        bail!("`{base} -m venv` failed: on Debian and Ubuntu install python3-venv");
    }
    let requirements = requirements.to_string_lossy();
    let install = ["-m", "pip", "install", "--disable-pip-version-check", "-r", &requirements];
    if !machine::show(&program.to_string_lossy(), &install)? {
        bail!("the packages of `{requirements}` could not be installed");
    }
    fs::write(&complete, "").context("cannot finish the Python environment")?;
    Ok(program)
}

/// FNV-1a: names a folder, nothing more.
fn fingerprint(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn other_requirements_are_another_environment() {
        assert_ne!(fingerprint(&["3.11", "a==1"]), fingerprint(&["3.11", "a==2"]));
        assert_ne!(fingerprint(&["3.11", "a"]), fingerprint(&["3.1", "1a"]));
    }
}
