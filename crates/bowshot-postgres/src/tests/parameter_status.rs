//! Settings that clients are told of, and the modes of transactions.

use super::Port;

#[tokio::test]
async fn clients_are_told_of_settings_that_change() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("set application_name x", "C[SET] S[application_name x] ZI"),
        ("set application_name x", "C[SET] ZI"),
        ("set TimeZone +00:00", "C[SET] ZI"),
        ("instant", "T[at 1184] D[2024-07-01 12:00:00+00] C[INSTANT] ZI"),
        (
            "set TimeZone Europe/Berlin; instant",
            "C[SET] T[at 1184] D[2024-07-01 14:00:00+02] C[INSTANT] S[TimeZone Europe/Berlin] ZI",
        ),
        ("instant", "T[at 1184] D[2024-07-01 14:00:00+02] C[INSTANT] ZI"),
        ("set TimeZone Asia/Kolkata", "C[SET] S[TimeZone Asia/Kolkata] ZI"),
        ("instant", "T[at 1184] D[2024-07-01 17:30:00+05:30] C[INSTANT] ZI"),
        ("set TimeZone -03:00", "C[SET] S[TimeZone -03:00] ZI"),
        ("instant", "T[at 1184] D[2024-07-01 09:00:00-03] C[INSTANT] ZI"),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn what_a_client_began_with_is_what_it_goes_back_to() {
    let port = Port::new().await;
    let mut client = port.raw().await;
    client.start(&[("user", "ada"), ("application_name", "a"), ("TimeZone", "Asia/Tokyo")]).await;
    client.until_ready().await;
    client.query("set application_name b").await;
    port.server.effects();
    client.query("RESET application_name").await;
    let names = |effects: Vec<String>| {
        effects.iter().map(|effect| effect.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(port.server.effects()), ["RESET", "application_name"]);
    client.query("RESET ALL").await;
    assert_eq!(names(port.server.effects()), ["RESET", "dialect", "application_name", "TimeZone"]);
    client.query("DISCARD ALL").await;
    assert_eq!(names(port.server.effects()), ["DISCARD", "dialect", "application_name", "TimeZone"]);
}

#[tokio::test]
async fn a_transaction_that_has_done_nothing_can_become_read_only() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.query("begin").await;
    port.server.effects();
    assert_eq!(client.query("SET TRANSACTION READ ONLY").await, "C[SET] ZT");
    assert_eq!(port.server.effects(), ["ROLLBACK", "BEGIN TRANSACTION READ ONLY"]);
    client.query("insert").await;
    client.query("SET TRANSACTION READ ONLY").await;
    assert_eq!(port.server.effects(), ["insert", "SET TRANSACTION READ ONLY"]);
    client.query("rollback").await;
    assert_eq!(
        client.query("SET TRANSACTION READ ONLY").await,
        "N[25P01: SET TRANSACTION can only be used in transaction blocks] C[SET] ZI"
    );
}
