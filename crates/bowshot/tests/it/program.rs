//! Starts the program and waits for what it says, never for time to pass.

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use bowshot_flight::client::{Client, Login, Target};
use futures::TryStreamExt;
pub(crate) use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait for anything that the program should do; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program with the given arguments, in `folder`, without the variables of whoever runs the tests.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowshot"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOWSHOT_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

/// Runs the program to its end with `input` on stdin.
pub(crate) fn run_with_input(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut command = command(folder, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses its arguments does not read.
    _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

/// Runs the program to its end and gives its exit code and everything that it said, with the folder's name blanked.
pub(crate) fn run(folder: &Path, args: &[&str]) -> String {
    describe(&run_with_input(folder, args, ""), folder)
}

pub(crate) fn describe(output: &Output, folder: &Path) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "FOLDER");
    let code = output.status.code().map_or("signal".to_owned(), |code| code.to_string());
    format!("exit {code}\n{}{}", text(&output.stdout), text(&output.stderr))
}

/// A folder with small tables: `orders.csv` (4 rows) and `people.json` (2 rows).
pub(crate) fn sample_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let orders = "id,customer,amount\n1,ada,10.5\n2,bob,20.25\n3,ada,30.0\n4,,40.0\n";
    std::fs::write(folder.path().join("orders.csv"), orders).expect("write");
    let people = "{\"name\": \"ada\", \"age\": 36}\n{\"name\": \"bob\", \"age\": 41}\n";
    std::fs::write(folder.path().join("people.json"), people).expect("write");
    folder
}

/// A running server.
pub(crate) struct TestServer {
    child: Child,
    pub(crate) folder: TempDir,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    pub(crate) flight: String,
    pub(crate) http: String,
}

impl TestServer {
    /// Serves the sample folder with more arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(sample_folder(), &[&["orders.csv", "people.json"], args].concat())
    }

    /// Starts a server in `folder` and waits until it is ready.
    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Self {
        let ports = folder.path().join("ports.json");
        let fixed = ["serve", "--flight", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ports-file"];
        let mut command = command(folder.path(), &fixed);
        command.arg(&ports).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (said, lines) = channel();
        let stderr = child.stderr.take().expect("stderr");
        let copy = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = copy.lock();
                log.push_str(&line);
                log.push('\n');
                _ = said.send(line);
            }
        });
        let mut server = Self {
            child,
            folder,
            lines,
            log,
            reader: Some(reader),
            flight: String::new(),
            http: String::new(),
        };
        server.wait_for_line("ready");
        let ports: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&ports).expect("ports file")).expect("JSON");
        let address =
            |name: &str| ports.get(name).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
        server.flight = address("flight");
        server.http = address("http");
        server
    }

    /// Waits until the program says something with `text` in it.
    pub(crate) fn wait_for_line(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(_) => panic!("the server never said `{text}`:\n{}", self.log.lock()),
            }
        }
    }

    /// Everything that the server has said.
    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a process id"));
        kill(pid, signal).expect("the server runs");
    }

    /// Waits for the end and gives the exit code; the log is complete then.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let code = self.child.wait().expect("the server ends").code();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log was read");
        }
        code
    }

    /// Status and body of a GET request.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.http.trim_start_matches("http://")).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: bowshot\r\nconnection: close\r\n\r\n").expect("send");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("read");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    /// The value of a gauge or counter without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.get("/metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no metric `{name}` in\n{text}")).parse().expect("a number")
    }

    /// Polls a gauge until it has the value: state that the server reaches by itself, within our patience.
    pub(crate) fn wait_for_metric(&self, name: &str, expected: f64) {
        let end = std::time::Instant::now() + PATIENCE;
        while self.metric(name) != expected {
            assert!(std::time::Instant::now() < end, "`{name}` never became {expected}");
        }
    }

    pub(crate) async fn connect(&self, login: Login) -> bowshot_flight::client::Result<Client> {
        Client::connect(&Target::new(&self.flight, login)).await
    }

    pub(crate) async fn client(&self) -> Client {
        self.connect(Login::Anonymous).await.expect("connect")
    }

    /// The result of a query as a text table, or the error.
    pub(crate) async fn query(&self, sql: &str) -> String {
        show(&self.client().await, sql).await
    }
}

/// The result of a query as a text table, or the error.
pub(crate) async fn show(client: &Client, sql: &str) -> String {
    match fetch(client, sql).await {
        Ok(batches) => pretty_format_batches(&batches).expect("a table").to_string(),
        Err(error) => format!("error: {error}"),
    }
}

pub(crate) async fn fetch(client: &Client, sql: &str) -> bowshot_flight::client::Result<Vec<RecordBatch>> {
    client.execute(sql).await?.batches().try_collect().await
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- the server's log ---\n{}", self.log.lock());
        }
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
