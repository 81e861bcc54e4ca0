//! COPY over the connection.

use super::{Port, shown};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

#[tokio::test]
async fn rows_come_in_all_forms() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("copy (rows 2) to stdout", "H d[0] d[1] c C[COPY 2] ZI"),
        ("COPY (rows 1) TO STDOUT (FORMAT csv, HEADER)", "H d[n] d[0] c C[COPY 1] ZI"),
        ("copy (rows 1) to stdout; rows 1", "H d[0] c C[COPY 1] T[n 20] D[0] C[ROWS] ZI"),
        ("copy (fail) to stdout", "E[22012: divide by zero] ZI"),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    client.send(b'Q', b"copy (rows 1) to stdout (format binary)\0").await;
    let answers = client.until_ready().await;
    let bytes: Vec<u8> =
        answers.iter().filter(|(tag, _)| *tag == 'd').flat_map(|(_, body)| body.clone()).collect();
    let expected = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\0\xff\xff";
    assert_eq!(bytes, expected);
}

#[tokio::test]
async fn rows_are_written_as_they_come() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.send(b'Q', b"copy t from stdin\0").await;
    assert_eq!(client.next().await.unwrap(), ('G', vec![0, 0, 2, 0, 0, 0, 0]));
    for part in ["1\ta\\n", "b\n2\t\\", "N\n\\.\n"] {
        client.send(b'd', part.as_bytes()).await;
    }
    client.send(b'c', b"").await;
    assert_eq!(shown(&client.until_ready().await), "C[COPY 2] ZI");
    let written = std::mem::take(&mut *port.server.written.lock());
    assert_eq!(written[0].column(0).as_primitive::<Int64Type>().values().as_ref(), [1, 2]);
    let texts: Vec<_> = written[0].column(1).as_string::<i32>().iter().collect();
    assert_eq!(texts, [Some("a\nb"), None]);
}

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
