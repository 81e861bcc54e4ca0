//! Bodies that are nearly right: whatever they are, they have an answer, and none that blames the server.

use super::{Running, tables};
use bowshot_test_server::types;
use std::env;

/// Pseudo-random numbers (xorshift), the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Bytes that mean something in one of the forms.
const WORDS: [&[u8]; 12] =
    [b"\"", b"\\", b"[", b"{", b"}", b",", b"\n", b"null", b"1e999", b"-", b"\xff\xff\xff\xff", b"\0\0\0\0"];

fn mutate(body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(body.len());
        match numbers.below(4) {
            0 => body.truncate(at),
            1 if !body.is_empty() => body[at] = numbers.below(256) as u8,
            2 => {
                let word = WORDS[numbers.below(WORDS.len())];
                body.splice(at..at, word.iter().copied());
            }
            _ => {
                let end = (at + numbers.below(20)).min(body.len());
                body.drain(at..end);
            }
        }
    }
    body
}

#[tokio::test]
async fn nearly_right_bodies_have_answers() {
    let rounds = env::var("BOWSHOT_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let running = Running::start().await;
    let rows = [tables::batch(3), types::batch()];
    let seeds: Vec<(&str, &str, &str, Vec<u8>)> = vec![
        (
            "POST",
            "/v1/sql",
            "application/json",
            br#"{"sql": "echo 2", "parameters": [1.5, "a\u00e4"], "options": {"time_zone": null}}"#.to_vec(),
        ),
        ("POST", "/v1/sessions", "application/json", br#"{"options": {"dialect": "mysql"}}"#.to_vec()),
        ("PUT", "/v1/tables/new", "text/csv", b"n,s,d\n1,\"a\"\"b\",2024-02-29\n2,,\n".to_vec()),
        ("POST", "/v1/tables/t", "text/csv", b"n,s\n1,a\n2,\"b\"\n".to_vec()),
        (
            "PUT",
            "/v1/tables/new",
            "application/json",
            br#"[{"a": 1, "b": [1.5, null], "c": {"d": "x"}}, {"a": null}]"#.to_vec(),
        ),
        (
            "POST",
            "/v1/tables/t",
            "application/x-ndjson",
            b"{\"n\": 1, \"s\": \"a\"}\n{\"n\": -2, \"s\": null}\n".to_vec(),
        ),
        ("PUT", "/v1/tables/new", "application/vnd.apache.arrow.stream", tables::stream(&rows[..1])),
        ("PUT", "/v1/tables/new", "application/vnd.apache.arrow.file", tables::file(&rows[..1])),
        ("PUT", "/v1/tables/new", "application/vnd.apache.arrow.stream", tables::stream(&rows[1..])),
    ];
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for _ in 0..rounds {
        for (method, path, media, body) in &seeds {
            let body = mutate(body, &mut numbers);
            let reply = running.ask(method, path, &[("content-type", media)], &body).await;
            let shown = String::from_utf8_lossy(&body);
            assert!(
                matches!(reply.status, 200 | 201 | 400 | 413 | 429),
                "{path} {media} {shown:?}: {reply:?}"
            );
        }
    }
    running.stop().await;
}
