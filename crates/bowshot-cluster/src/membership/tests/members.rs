//! Nodes that come, go, and no longer understand one another.

use super::*;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

/// Waits until so many members can be given work.
async fn workers(by: &Cluster, number: usize) {
    let deadline = Instant::now() + PATIENCE;
    while by.workers().len() != number {
        assert!(Instant::now() < deadline, "{:?}", by.members());
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_node_that_leaves_says_so_and_waits_for_its_parts() {
    let first = start(settings(&[])).await;
    let second = start(settings(&[&address(&first)])).await;
    all_alive(&[&first, &second]).await;
    let (_one, _two) = (first.work().expect("the first taker"), second.work().expect("the first taker"));
    workers(&first, 2).await;
    let (leaving, part) = (second.myself(), second.begin_task());
    let leave = tokio::spawn({
        let second = second.clone();
        async move { second.leave(PATIENCE).await }
    });
    until(&first, &leaving, Some(State::Leaving)).await;
    workers(&first, 1).await;
    sleep(Duration::from_millis(200)).await;
    assert!(!leave.is_finished(), "a part still runs");
    drop(part);
    leave.await.expect("it leaves");
    drop(second);
    until(&first, &leaving, Some(State::Dead)).await;
}

#[tokio::test]
async fn a_failure_that_is_reported_counts_until_the_next_answer() {
    let first = start(settings(&[])).await;
    let second = start(settings(&[&address(&first)])).await;
    all_alive(&[&first, &second]).await;
    let mut changes = first.changes();
    changes.mark_unchanged();
    first.report_failure(&address(&second));
    changes.changed().await.expect("the node is there");
    until(&first, &second.myself(), Some(State::Alive)).await;
}

#[tokio::test]
async fn nodes_of_another_build_are_members_and_get_no_work() {
    let first = start(settings(&[])).await;
    let other = start(Settings { build: "build 2".to_owned(), ..settings(&[&address(&first)]) }).await;
    let _work = other.work().expect("the first taker");
    until(&first, &other.myself(), Some(State::Alive)).await;
    assert_eq!(first.workers().len(), 0);
    let error = first.connect(&address(&other)).await.expect_err("another build");
    assert!(error.to_string().contains("another build"), "{error}");
}

#[tokio::test]
async fn data_of_another_cluster_is_refused() {
    let first = start(Settings { cluster: Some(Uuid::new_v4()), ..settings(&[]) }).await;
    let text = refused(
        Cluster::start(Settings { cluster: Some(Uuid::new_v4()), ..settings(&[&address(&first)]) }).await,
    );
    assert!(text.contains("belongs to cluster"), "{text}");
    let settled = start(settings(&[])).await;
    settled.settle();
    let other = Settings { cluster: Some(Uuid::new_v4()), ..settings(&[&address(&settled)]) };
    assert!(refused(Cluster::start(other).await).contains("belongs to cluster"));
    // One without data takes the word of the other.
    let second = start(settings(&[&address(&first)])).await;
    assert_eq!(first.cluster(), second.cluster());
    all_alive(&[&first, &second]).await;
}

#[tokio::test]
async fn members_connect_for_work() {
    let first = start(settings(&[])).await;
    let second = start(settings(&[&address(&first)])).await;
    all_alive(&[&first, &second]).await;
    let error = first.connect(&address(&second)).await.expect_err("nobody serves");
    assert!(error.to_string().contains("does not accept work"), "{error}");
    let mut work = second.work().expect("the first taker");
    assert!(second.work().is_none());
    let mut stream = first.connect(&address(&second)).await.expect("a connection");
    let mut served = work.next().await.expect("a connection").expect("no error");
    assert_eq!((stream.peer(), served.peer()), (second.myself().id, first.myself().id));
    stream.write_all(b"question").await.expect("written");
    let mut question = [0; 8];
    served.read_exact(&mut question).await.expect("read");
    assert_eq!(&question, b"question");
    drop(stream);
    assert_eq!(served.read(&mut question).await.expect("the end"), 0);
    let error = first.connect("127.0.0.1:1").await.expect_err("no member");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

/// Lets connections through to a node until it is told not to.
struct Proxy {
    address: SocketAddr,
    open: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let open = Arc::new(AtomicBool::new(true));
        let is_open = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let is_open = Arc::clone(&is_open);
                tokio::spawn(async move {
                    let Ok(mut to) = TcpStream::connect(to).await else { return };
                    let cut = async {
                        while is_open.load(Ordering::Acquire) {
                            sleep(Duration::from_millis(5)).await;
                        }
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        () = cut => {}
                    }
                });
            }
        });
        Self { address, open }
    }
}

#[tokio::test]
async fn a_cut_in_one_direction_is_seen_on_both_sides() {
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let proxy = Proxy::start(port).await;
    // Long enough that nobody is dead for what a busy machine holds up.
    let dead_after = Duration::from_secs(5);
    let first = start(Settings { dead_after, ..settings(&[]) }).await;
    // Others reach the second one through the proxy only; it reaches them directly.
    let second = start(Settings {
        listen: port,
        advertise: Some(proxy.address.to_string()),
        dead_after,
        ..settings(&[&address(&first)])
    })
    .await;
    all_alive(&[&first, &second]).await;
    proxy.open.store(false, Ordering::Release);
    until(&first, &second.myself(), Some(State::Suspect)).await;
    until(&second, &first.myself(), Some(State::Suspect)).await;
    // It stays so: it is heard, so that it is not dead.
    sleep(dead_after + Duration::from_secs(2)).await;
    assert_eq!(state(&first, &second.myself()), Some(State::Suspect));
    assert_eq!(state(&second, &first.myself()), Some(State::Suspect));
    proxy.open.store(true, Ordering::Release);
    all_alive(&[&first, &second]).await;
}
