//! The interactive prompt: a blocking line editor on its own thread, statements on this one.

use super::backslash_commands::{self, Next};
use super::complete::{Assistant, NamedTable, Names};
use super::statement::Runner;
use super::{is_broken_pipe, say};
use anyhow::{Context, Result};
use bowshot_flight::client::{Client, Columns, Table, keywords};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use tokio::sync::mpsc;

const PROMPT: &str = "bowshot> ";
const HISTORY_ENTRIES: usize = 10_000;
/// Of more tables than these, completion does not ask for the columns.
const TABLES_WITH_COLUMNS: usize = 1_000;

/// Reads and runs statements until the user leaves.
pub(super) async fn run(runner: &mut Runner, uri: &str) -> Result<ExitCode> {
    let names = Names::default();
    learn_names(&runner.client, &names).await;
    say(&format!("connected to {uri}; \\? for help, \\q to leave"));
    let mut editor = LineReader::start(names.clone())?;
    while let Some(Input { text: input, screen_lines }) = editor.next().await? {
        runner.screen_lines = screen_lines;
        match execute(runner, &input).await {
            Ok(Next::Quit) => break,
            Ok(Next::Continue) => {}
            Err(error) if is_broken_pipe(&error) => break,
            Err(error) => say(&format!("error: {error:#}")),
        }
        if changes_names(&input) {
            learn_names(&runner.client, &names).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that was entered at once; a failure skips the rest of it.
async fn execute(runner: &mut Runner, input: &str) -> Result<Next> {
    if leaves(input) {
        return Ok(Next::Quit);
    }
    if input.trim_start().starts_with('\\') {
        return backslash_commands::run(runner, input).await;
    }
    input.clone_into(&mut runner.last);
    backslash_commands::run_each(runner, input).await?;
    Ok(Next::Continue)
}

/// Whether the input is `exit` or `quit`, as other shells have it.
pub(super) fn leaves(input: &str) -> bool {
    let word = input.trim().trim_end_matches(';').trim_end();
    ["exit", "quit"].iter().any(|leave| word.eq_ignore_ascii_case(leave))
}

/// Completion is a comfort: without names it completes keywords only, and of very many tables no columns.
async fn learn_names(client: &Client, names: &Names) {
    let Ok(mut tables) = client.tables(None, Columns::Omit).await else { return };
    if tables.len() <= TABLES_WITH_COLUMNS
        && let Ok(with_columns) = client.tables(None, Columns::Include).await
    {
        tables = with_columns;
    }
    names.set(tables.into_iter().map(named).collect());
}

fn named(table: Table) -> NamedTable {
    let columns = table.columns.iter().flat_map(|columns| columns.fields());
    let columns = columns.map(|field| field.name().clone()).collect();
    let name = match table.schema_name.as_str() {
        "main" => table.name,
        schema => format!("{schema}.{}", table.name),
    };
    NamedTable { name, columns }
}

fn changes_names(input: &str) -> bool {
    let word = input.trim_start().split(char::is_whitespace).next().unwrap_or_default();
    ["create", "drop", "alter", "set", "use", "\\i", "\\e"]
        .iter()
        .any(|change| word.eq_ignore_ascii_case(change))
}

/// What was entered, and how many lines the screen had then.
struct Input {
    text: String,
    screen_lines: Option<usize>,
}

/// The line editor, asked for one input at a time, so that it never touches the terminal while a statement runs.
struct LineReader {
    requests: mpsc::Sender<()>,
    inputs: mpsc::Receiver<Result<Option<Input>>>,
}

impl LineReader {
    fn start(names: Names) -> Result<Self> {
        let (requests, mut wanted) = mpsc::channel(1);
        let (found, inputs) = mpsc::channel(1);
        let mut editor = editor(names)?;
        let read = move || {
            let history = history_path();
            while wanted.blocking_recv().is_some() {
                if found.blocking_send(read(&mut editor, history.as_ref())).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("prompt".to_owned()).spawn(read)?;
        Ok(Self { requests, inputs })
    }

    /// The next input; nothing when the user leaves.
    async fn next(&mut self) -> Result<Option<Input>> {
        self.requests.send(()).await.context("the line editor stopped")?;
        self.inputs.recv().await.context("the line editor stopped")?
    }
}

type SqlEditor = Editor<Assistant, FileHistory>;

fn editor(names: Names) -> Result<SqlEditor> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_ENTRIES)?
        .history_ignore_space(true)
        .auto_add_history(false)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Assistant { names, keywords: keywords() }));
    if let Some(path) = history_path() {
        // There is none at the first start.
        drop(editor.load_history(&path));
    }
    Ok(editor)
}

fn read(editor: &mut SqlEditor, history: Option<&PathBuf>) -> Result<Option<Input>> {
    loop {
        match editor.readline(PROMPT) {
            Ok(input) if input.trim().is_empty() => {}
            Ok(text) => {
                remember(editor, &text, history);
                let screen_lines = editor.dimensions().map(|(_, lines)| usize::from(lines));
                return Ok(Some(Input { text, screen_lines }));
            }
            // Ctrl-C at the prompt drops the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(None),
            Err(error) => return Err(error).context("cannot read from the terminal"),
        }
    }
}

/// A history that cannot be written is no reason to stop.
fn remember(editor: &mut SqlEditor, input: &str, history: Option<&PathBuf>) {
    if editor.add_history_entry(input).unwrap_or(false)
        && let Some(path) = history
    {
        drop(path.parent().map(std::fs::create_dir_all));
        drop(editor.append_history(path));
    }
}

fn history_path() -> Option<PathBuf> {
    let folder = dirs::state_dir().or_else(dirs::data_local_dir)?;
    Some(folder.join("bowshot").join("history"))
}
