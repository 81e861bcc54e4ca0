//! COPY over the connection.

use super::{Port, shown};

#[tokio::test]
async fn what_goes_wrong_leaves_nothing_and_the_connection_goes_on() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    for (table, data, end, expected) in [
        ("t", "x\ta\n", b'c', "E[22P02: invalid input syntax for type bigint: \"x\" (COPY, line 1)] ZI"),
        ("t", "1\n", b'c', "E[22P04: missing data for a column (COPY, line 1)] ZI"),
        ("t", "1\ta\tb\n", b'c', "E[22P04: extra data after last expected column (COPY, line 1)] ZI"),
        ("t", "1\ta\n", b'f', "E[57014: COPY from stdin failed: why] ZI"),
        ("refusing", "1\ta\n", b'c', "E[23502: column `a` must not be null] ZI"),
    ] {
        client.send(b'Q', &super::zero_ended(&format!("copy {table} from stdin"))).await;
        assert_eq!(client.next().await.unwrap().0, 'G');
        client.send(b'd', data.as_bytes()).await;
        client.send(end, if end == b'f' { b"why\0" } else { b"" }).await;
        assert_eq!(shown(&client.until_ready().await), expected);
    }
    assert_eq!(port.server.effects(), Vec::<String>::new());
    assert_eq!(client.query("rows 1").await, "T[n 20] D[0] C[ROWS] ZI");
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_writes_nothing() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    client.send(b'Q', b"copy t from stdin\0").await;
    assert_eq!(client.next().await.unwrap().0, 'G');
    client.send(b'd', b"1\ta\n").await;
    drop(client);
    port.server.until(|counts| counts.sessions == 0).await;
    assert_eq!(port.server.effects(), Vec::<String>::new());
}
