//! The console's page and its files.

use super::{Running, choices};
use bowshot_api::Limits;

#[tokio::test]
async fn the_page_comes_with_its_policy() {
    let running = Running::start().await;
    let page = running.ask("GET", "/console", &[], b"").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    // What the page names is there, under the type that it has.
    for (name, media) in
        [("console.js", "text/javascript"), ("console.css", "text/css"), ("icon.svg", "image/")]
    {
        assert!(page.text().contains(&format!("/console/{name}")), "{name}");
        let file = running.ask("GET", &format!("/console/{name}"), &[], b"").await;
        assert!(file.header("content-type").is_some_and(|told| told.starts_with(media)), "{name}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    }
    for name in ["missing", "..%2fCargo.toml", "%00"] {
        let reply = running.ask("GET", &format!("/console/{name}"), &[], b"").await;
        assert_eq!(reply.status, 404, "{name}");
    }
    running.stop().await;
    let running = Running::open(Limits::default(), true, choices()).await;
    assert_eq!(running.ask("GET", "/console/access", &[], b"").await.json()["anonymous"], false);
    running.stop().await;
}

#[tokio::test]
async fn a_browser_is_led_there_and_keeps_what_it_has() {
    let running = Running::start().await;
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let reply = running.ask("GET", "/", &[browser], b"").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/console")));
    let access = running.ask("GET", "/console/access", &[], b"").await.json();
    assert_eq!(access["anonymous"], true);
    assert!(running.ask("GET", "/", &[("accept", "*/*")], b"").await.text().starts_with("Bowshot 1.2.3"));
    let tag = running.ask("GET", "/console", &[], b"").await.header("etag").expect("a tag").to_owned();
    let again = running.ask("GET", "/console", &[("if-none-match", &tag)], b"").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    running.stop().await;
}
