//! Tables with more lines than the screen of a prompt go through the user's pager.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// What is held back to see whether it fits on the screen; nobody pages through more.
const MAX_BYTES: usize = 16 << 20;

/// Stdout, by a pager if it gets more lines than the screen has.
pub(super) struct Paged {
    screen_lines: usize,
    held: Vec<u8>,
    is_too_long: bool,
}

impl Paged {
    pub(super) fn new(screen_lines: usize) -> Self {
        Self { screen_lines, held: Vec::new(), is_too_long: false }
    }

    /// Shows what was held back, and waits until the user has left the pager.
    pub(super) fn show(self) -> io::Result<()> {
        let lines = self.held.iter().filter(|&&byte| byte == b'\n').count();
        if lines >= self.screen_lines
            && let Some(pager) = start()
        {
            return page(pager, &self.held);
        }
        let mut stdout = io::stdout();
        stdout.write_all(&self.held)?;
        stdout.flush()
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_too_long {
            return io::stdout().write(bytes);
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > MAX_BYTES {
            io::stdout().write_all(&std::mem::take(&mut self.held))?;
            self.is_too_long = true;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_too_long { io::stdout().flush() } else { Ok(()) }
    }
}

/// The pager that the user names, else `less`; none if there is no such program, or the name is empty.
fn start() -> Option<Child> {
    let named = ["BOWSHOT_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
    let named = named.unwrap_or_else(|| "less".to_owned());
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next()?);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Leave the text on the screen, and do not break long lines.
        command.env("LESS", "FRSX");
    }
    command.spawn().ok()
}

fn page(mut pager: Child, text: &[u8]) -> io::Result<()> {
    let written = pager.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    pager.wait()?;
    match written {
        // The user has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
