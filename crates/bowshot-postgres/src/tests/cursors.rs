//! Cursors as statements.

use super::Port;

#[tokio::test]
async fn cursors_are_read_forward() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("begin", "C[BEGIN] ZT"),
        ("declare c no scroll cursor for rows 2500", "C[DECLARE CURSOR] ZT"),
        ("fetch c", "T[n 20] D[0] C[FETCH 1] ZT"),
        ("fetch forward 2 from \"c\"", "T[n 20] D[1] D[2] C[FETCH 2] ZT"),
        ("fetch 0 from c", "T[n 20] C[FETCH 0] ZT"),
        ("move 1500 in c", "C[MOVE 1500] ZT"),
        ("fetch next from c", "T[n 20] D[1503] C[FETCH 1] ZT"),
        ("move all in c", "C[MOVE 996] ZT"),
        ("fetch all from c", "T[n 20] C[FETCH 0] ZT"),
        ("close c", "C[CLOSE CURSOR] ZT"),
        (
            "declare c cursor for rows 1; fetch all c; close all",
            "C[DECLARE CURSOR] T[n 20] D[0] C[FETCH 1] C[CLOSE CURSOR ALL] ZT",
        ),
        ("commit", "C[COMMIT] ZI"),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    port.door.until(|counts| counts.streams == 0).await;
}

#[tokio::test]
async fn cursors_live_as_long_as_they_should() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    let outside = "E[25P01: DECLARE CURSOR can only be used in transaction blocks] ZI";
    let missing = "E[34000: cursor \"c\" does not exist]";
    for (sql, expected) in [
        ("declare c cursor for rows 2", outside.to_owned()),
        ("fetch c", format!("{missing} ZI")),
        ("close c", format!("{missing} ZI")),
        ("begin; declare c cursor for rows 2; commit", "C[BEGIN] C[DECLARE CURSOR] C[COMMIT] ZI".to_owned()),
        ("fetch c", format!("{missing} ZI")),
        (
            "begin; declare c cursor with hold for rows 2; commit",
            "C[BEGIN] C[DECLARE CURSOR] C[COMMIT] ZI".to_owned(),
        ),
        ("fetch c", "T[n 20] D[0] C[FETCH 1] ZI".to_owned()),
        ("declare c cursor with hold for rows 1", "E[42P03: cursor \"c\" already exists] ZI".to_owned()),
        ("begin; fetch c; rollback", "C[BEGIN] T[n 20] D[1] C[FETCH 1] C[ROLLBACK] ZI".to_owned()),
        ("fetch c", "T[n 20] C[FETCH 0] ZI".to_owned()),
        ("close c", "C[CLOSE CURSOR] ZI".to_owned()),
        (
            "begin; declare c cursor with hold for rows 2; rollback",
            "C[BEGIN] C[DECLARE CURSOR] C[ROLLBACK] ZI".to_owned(),
        ),
        ("fetch c", format!("{missing} ZI")),
        ("begin; fetch c", format!("C[BEGIN] {missing} ZE")),
        ("rollback", "C[ROLLBACK] ZI".to_owned()),
        (
            "declare c scroll cursor with hold for rows 2",
            "E[0A000: cursors that scroll are not supported] ZI".to_owned(),
        ),
        ("declare c cursor with hold for insert", "E[42601: DECLARE CURSOR takes a query] ZI".to_owned()),
        (
            "declare c cursor with hold for wrong",
            "E[42601: syntax error: unexpected `x` at line 1, column 4: 35] ZI".to_owned(),
        ),
        ("declare c cursor with hold for rows 9", "C[DECLARE CURSOR] ZI".to_owned()),
        ("fetch prior from c", "E[55000: cursor can only scan forward] ZI".to_owned()),
        ("DISCARD ALL", "C[DISCARD ALL] ZI".to_owned()),
        ("fetch c", format!("{missing} ZI")),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    port.door.until(|counts| counts.streams == 0).await;
}

#[tokio::test]
async fn cursors_have_values_and_columns_in_steps() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.query("begin").await;
    client.parse("", "declare \"C\" cursor for echo 2", &[20, 25]).await;
    client.send(b'D', b"S\0").await;
    client.bind("", "", (0, 0), &[Some(b"7"), Some(b"x")]).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await, "1 t[20, 25] n 2 C[DECLARE CURSOR] ZT");
    client.send(b'D', b"PC\0").await;
    client.parse("f", "fetch all from \"C\"", &[]).await;
    client.send(b'D', b"Sf\0").await;
    client.bind("", "f", (0, 1), &[]).await;
    client.send(b'D', b"P\0").await;
    client.execute("", 0).await;
    let columns = "T[$1 20|$2 25]";
    let values = "D[\0\0\0\0\0\0\0\u{7}|x]";
    assert_eq!(client.sync().await, format!("{columns} 1 t[] {columns} 2 {columns} {values} C[FETCH 1] ZT"));
    client.parse("", "close \"C\"", &[]).await;
    client.bind("", "", (0, 0), &[]).await;
    client.execute("", 0).await;
    client.send(b'D', b"PC\0").await;
    assert_eq!(client.sync().await, "1 2 C[CLOSE CURSOR] E[34000: portal \"C\" does not exist] ZE");
}
