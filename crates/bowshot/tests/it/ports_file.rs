//! The ports file: whole, when everything answers, gone with the server.

use crate::program::{Signal, TestServer, sample_folder};

#[test]
fn it_names_the_addresses_and_goes_with_the_server() {
    let mut server = TestServer::start(&[]);
    let path = server.path("ports.json");
    let text = std::fs::read_to_string(&path).expect("ports file");
    let ports: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(ports["flight"].as_str().expect("flight").starts_with("grpc://127.0.0.1:"), "{text}");
    assert!(ports["http"].as_str().expect("http").starts_with("http://127.0.0.1:"), "{text}");
    assert_eq!(ports["pid"].as_u64(), Some(u64::from(server.pid())));
    assert_eq!(server.get("/ready").0, 200);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait(), Some(0));
    assert!(!path.exists());
}

#[test]
fn it_replaces_what_a_killed_server_left() {
    let folder = sample_folder();
    std::fs::write(folder.path().join("ports.json"), "{\"flight\": \"old\"").expect("write");
    let server = TestServer::start_in(folder, &["orders.csv"]);
    assert!(server.flight.starts_with("grpc://"));
}

#[test]
fn a_front_end_that_is_off_is_not_in_it() {
    let folder = sample_folder();
    let server = TestServer::start_in(folder, &["orders.csv", "--set", "http=off"]);
    assert_eq!(server.http, "");
    assert!(server.flight.starts_with("grpc://"));
}

#[test]
fn a_file_that_cannot_be_written_stops_the_server() {
    let folder = sample_folder();
    let said = crate::program::run(
        folder.path(),
        &["serve", "--flight", "127.0.0.1:0", "--http", "off", "--ports-file", "no/such/folder/ports.json"],
    );
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert!(said.contains("error: cannot write the ports file `no/such/folder/ports.json`"), "{said}");
}
