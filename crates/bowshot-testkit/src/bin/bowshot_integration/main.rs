//! `bowshot_integration --scenario NAME --port 0 --ports-file FILE`: the Flight SQL front end over a server API that answers as a scenario of
//! the Arrow integration suite expects. Only what is below the server API is simulated.

mod scenario;
mod server;
mod session;

use bowshot_flight::Choices;
use scenario::Scenario;
use server::Canned;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

struct Arguments {
    scenario: String,
    port: u16,
    ports_file: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(std::io::stderr(), "bowshot_integration: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let scenario = Scenario::find(&arguments.scenario)
        .ok_or_else(|| format!("unknown scenario `{}`", arguments.scenario))?;
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let ports =
        format!("{{\"flight\":\"grpc://{}\",\"pid\":{}}}\n", listener.local_addr()?, std::process::id());
    // Readers must never see half a file.
    let unfinished = arguments.ports_file.with_extension("unfinished");
    std::fs::write(&unfinished, ports)?;
    std::fs::rename(&unfinished, &arguments.ports_file)?;
    let choices = Choices { profile: scenario.profile.clone(), ..Choices::default() };
    let server = Arc::new(Canned::new(scenario));
    bowshot_flight::serve_with(listener, server, choices, async move {
        terminate.recv().await;
    })
    .await?;
    Ok(())
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let (mut scenario, mut port, mut ports_file) = (None, 0, None);
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
        match flag.as_str() {
            "--scenario" => scenario = Some(value),
            "--port" => port = value.parse()?,
            "--ports-file" => ports_file = Some(PathBuf::from(value)),
            other => return Err(format!("unknown flag `{other}`").into()),
        }
    }
    Ok(Arguments {
        scenario: scenario.ok_or("`--scenario` is missing")?,
        port,
        ports_file: ports_file.ok_or("`--ports-file` is missing")?,
    })
}
