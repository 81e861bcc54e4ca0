//! A load generator: many clients, each with its own connection, each sending the same small query again and again.
//! Prints queries per second and percentiles as JSON.

#![expect(clippy::print_stdout, reason = "the measurement is the program's output")]

use anyhow::{Context, Result, ensure};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightDescriptor, Ticket};
use clap::{Parser, ValueEnum};
use futures::TryStreamExt;
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// One round trip: the SQL text is the ticket.
    Ticket,
    /// Two round trips: GetFlightInfo, DoGet.
    Info,
}

#[derive(Parser)]
struct Arguments {
    /// HOST:PORT of the Flight server.
    #[arg(long)]
    uri: String,
    #[arg(long, value_enum)]
    mode: Mode,
    #[arg(long, default_value_t = 32)]
    clients: usize,
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    #[arg(long, default_value = "SELECT 1")]
    sql: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut clients = Vec::new();
    for _ in 0..arguments.clients {
        let endpoint = Endpoint::from_shared(format!("http://{}", arguments.uri))?.tcp_nodelay(true);
        clients.push(FlightServiceClient::new(endpoint.connect().await?));
    }
    let begin = Instant::now();
    let end = begin + Duration::from_secs(arguments.seconds);
    let running: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(repeat(client, arguments.mode, arguments.sql.clone(), end)))
        .collect();
    let mut times = Vec::new();
    for client in running {
        times.extend(client.await??);
    }
    let elapsed = begin.elapsed().as_secs_f64();
    ensure!(!times.is_empty(), "no query was answered");
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let answer = serde_json::json!({
        "queries_per_second": times.len() as f64 / elapsed,
        "median_ms": at(0.5),
        "p90_ms": at(0.9),
        "p99_ms": at(0.99),
        "p999_ms": at(0.999),
    });
    println!("{answer}");
    Ok(())
}

async fn repeat(
    mut client: FlightServiceClient<Channel>,
    mode: Mode,
    sql: String,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while Instant::now() < end {
        let begin = Instant::now();
        let ticket = match mode {
            Mode::Ticket => Ticket::new(sql.clone()),
            Mode::Info => {
                let descriptor = FlightDescriptor::new_cmd(sql.clone());
                let info = client.get_flight_info(descriptor).await?.into_inner();
                let endpoint = info.endpoint.into_iter().next().context("no endpoint")?;
                endpoint.ticket.context("no ticket")?
            }
        };
        let messages: Vec<_> = client.do_get(ticket).await?.into_inner().try_collect().await?;
        ensure!(messages.len() >= 2, "the answer has no batch");
        times.push(begin.elapsed());
    }
    Ok(times)
}
