//! Several nodes in one process, over real sockets.

mod hostile;
mod members;
mod tls;

use crate::membership::{Cluster, Error, Member, Security, Settings, State};
use bowshot_api::Secret;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SECRET: &str = "a secret of some length";
/// How long something may take that takes a fraction of it on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn settings(join: &[&str]) -> Settings {
    let security = Security::SharedSecret(Secret::new(SECRET));
    Settings {
        join: join.iter().map(|address| (*address).to_owned()).collect(),
        build: "build 1".to_owned(),
        heartbeat: Duration::from_millis(50),
        suspect_after: Duration::from_millis(1_000),
        dead_after: Duration::from_millis(2_000),
        ..Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)), security)
    }
}

async fn start(settings: Settings) -> Cluster {
    Cluster::start(settings).await.expect("a node starts")
}

fn address(cluster: &Cluster) -> String {
    cluster.myself().address
}

/// How `seen` is, as `by` sees it.
fn state(by: &Cluster, seen: &Member) -> Option<State> {
    by.members().iter().find(|member| member.id == seen.id).map(|member| member.state)
}

/// Waits until `by` sees `seen` so.
async fn until(by: &Cluster, seen: &Member, wanted: Option<State>) {
    let deadline = Instant::now() + PATIENCE;
    while state(by, seen) != wanted {
        assert!(Instant::now() < deadline, "{:?} and not {wanted:?}: {:?}", state(by, seen), by.members());
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until all see one another alive.
async fn all_alive(nodes: &[&Cluster]) {
    for by in nodes {
        for seen in nodes {
            until(by, &seen.myself(), Some(State::Alive)).await;
        }
    }
}

fn refused(started: Result<Cluster, Error>) -> String {
    match started {
        Ok(_) => panic!("the node was taken"),
        Err(error) => format!("{error} ({})", error.hint().unwrap_or_default()),
    }
}
