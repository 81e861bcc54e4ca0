//! Commands in the documentation: every `bowshot` line in a shell block names an existing subcommand and flags, every `cargo xtask` line an
//! existing command.

use super::tree_of_documents;
use crate::machine;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Checks the commands of all documents; each complaint names the file and the line.
pub(super) fn complaints(root: &Path, bowshot: &Path) -> Result<Vec<String>> {
    let mut helps = Helps { bowshot: bowshot.to_string_lossy().into_owned(), known: BTreeMap::new() };
    let mut found = Vec::new();
    for path in tree_of_documents()? {
        let text = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        for (number, line) in shell_lines(&text) {
            found.extend(helps.wrong(&line).map(|wrong| format!("{path}:{number}: {wrong}")));
        }
    }
    Ok(found)
}

/// Lines of shell blocks, with continuations joined and prompts and comments taken away.
fn shell_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut shell, mut fenced) = (false, false);
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fenced = !fenced;
            shell = fenced && matches!(kind.trim(), "" | "sh" | "bash" | "shell" | "console");
            continue;
        }
        if !shell {
            continue;
        }
        let (number, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        joined.push_str(line.trim().trim_start_matches("$ ").split(" #").next().unwrap_or_default());
        if let Some(start) = joined.strip_suffix('\\') {
            open = Some((number, format!("{} ", start.trim_end())));
        } else {
            lines.push((number, joined));
        }
    }
    lines
}

/// The help texts of subcommands, asked for once each.
struct Helps {
    bowshot: String,
    known: BTreeMap<(String, String), Option<String>>,
}

impl Helps {
    fn wrong(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (program, rest) = match words.as_slice() {
            ["bowshot", rest @ ..] => ("bowshot", rest),
            ["cargo", "run", "--release", "--", rest @ ..] => ("bowshot", rest),
            ["cargo", "xtask", rest @ ..] => ("xtask", rest),
            _ => return None,
        };
        let subcommand = rest.first().filter(|word| !word.starts_with('-'))?;
        // The shape of the command line, not a command: `bowshot serve [PATH…]`.
        let Some(mut help) = self.help(program, &[subcommand]) else {
            return Some(format!("`{program}` has no subcommand `{subcommand}`"));
        };
        if let Some(below) =
            rest.get(1).filter(|word| help.contains("\nCommands:\n") && !word.starts_with('-'))
        {
            let Some(of_below) = self.help(program, &[subcommand, below]) else {
                return Some(format!("`{program} {subcommand}` has no subcommand `{below}`"));
            };
            help = of_below;
        }
        let flags = rest.iter().filter_map(|word| word.trim_start_matches('[').split('=').next());
        let unknown = flags
            .filter(|word| word.starts_with("--") && word.len() > 2)
            .map(|flag| flag.trim_end_matches(']'))
            .find(|flag| !help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == *flag));
        unknown.map(|flag| format!("`{program} {subcommand}` has no flag `{flag}`"))
    }

    fn help(&mut self, program: &str, subcommand: &[&str]) -> Option<String> {
        let key = (program.to_owned(), subcommand.join(" "));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let path = match program {
            "bowshot" => Some(self.bowshot.clone()),
            _ => std::env::current_exe().ok().map(|path| path.to_string_lossy().into_owned()),
        };
        let output = path.and_then(|path| {
            let mut command = Command::new(path);
            command.args(subcommand).arg("--help").current_dir(machine::root()).stdin(Stdio::null());
            command.output().ok()
        });
        let help = output
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        self.known.insert(key, help.clone());
        help
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_blocks_are_read() {
        let text = "bowshot a\n```bash\n$ bowshot serve x \\\n  --flight y # why\n# note\n```\n```python\nbowshot z\n```\n";
        let lines = shell_lines(text);
        assert_eq!(lines[0], (3, "bowshot serve x --flight y".to_owned()));
        assert!(lines.iter().all(|(_, line)| !line.contains('z')));
    }

    #[test]
    fn flags_are_looked_up() {
        let key = ("bowshot".to_owned(), "serve".to_owned());
        let help = Some("      --flight <ADDR>  where".to_owned());
        let mut helps = Helps { bowshot: "/nowhere".to_owned(), known: BTreeMap::from([(key, help)]) };
        assert_eq!(helps.wrong("bowshot serve data --flight off"), None);
        assert_eq!(helps.wrong("bowshot serve [--flight ADDR]"), None);
        assert_eq!(helps.wrong("bowshot --version"), None);
        assert_eq!(helps.wrong("ls --no-such"), None);
        assert!(helps.wrong("bowshot serve --flights off").is_some());
        assert!(helps.wrong("bowshot nothing").is_some());
    }
}
