//! Every form of rows, and how each of them fails.

use super::Running;
use expect_test::expect;
use std::io::Read;

const STREAM: &str = "application/vnd.apache.arrow.stream";
const FILE: &str = "application/vnd.apache.arrow.file";
const PARQUET: &str = "application/vnd.apache.parquet";

#[tokio::test]
async fn texts_of_all_types() {
    let running = Running::start().await;
    let reply = running.sql("types", "application/json").await;
    let rows = reply.text().split_once("\"rows\":").unwrap().1.to_owned();
    expect![[r#"
        [
        [true,9223372036854775807,"NaN",123.45,"a\"b,\nc","00ff","2024-02-29","1970-01-01T00:00:01.500Z","1 mons 2 days 3.000000000 secs",[1,null],{"a":1,"b":"x"},null,"w"],
        [null,null,0.1,null,"",null,null,null,null,null,null,null,null]
        ],"row_count":2}
    "#]]
    .assert_eq(&rows);
    expect![[r#"
        {"bool":true,"int":9223372036854775807,"double":"NaN","decimal":123.45,"text":"a\"b,\nc","bytes":"00ff","date":"2024-02-29","moment":"1970-01-01T00:00:01.500Z","interval":"1 mons 2 days 3.000000000 secs","list":[1,null],"row":{"a":1,"b":"x"},"text_2":null,"word":"w"}
        {"bool":null,"int":null,"double":0.1,"decimal":null,"text":"","bytes":null,"date":null,"moment":null,"interval":null,"list":null,"row":null,"text_2":null,"word":null}
    "#]]
    .assert_eq(&running.sql("types", "application/x-ndjson").await.text());
    expect![[r#"
        bool,int,double,decimal,text,bytes,date,moment,interval,list,row,text,word
        true,9223372036854775807,NaN,123.45,"a""b,
        c",00ff,2024-02-29,1970-01-01T00:00:01.500Z,1 mons 2 days 3.000000000 secs,"[1,null]","{""a"":1,""b"":""x""}",,w
        ,,0.1,,"",,,,,,,,
    "#]]
    .assert_eq(&running.sql("types", "text/csv").await.text().replace("\r\n", "\n"));
    running.stop().await;
}

#[tokio::test]
async fn a_result_that_fails_never_looks_whole() {
    let running = Running::start().await;
    let reply = running.sql("break 50000", "application/json").await;
    let (body, id) = (reply.json(), reply.header("x-bowshot-query-id").unwrap().to_owned());
    assert_eq!((reply.status, body["rows"].as_array().map(Vec::len)), (200, Some(50_000)));
    assert_eq!(body["error"]["message"], "divide by zero");
    assert_eq!(body["error"]["query_id"], id.as_str());
    assert!(body.get("row_count").is_none());
    let reply = running.sql("break 50000", "application/x-ndjson").await;
    let text = reply.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (50_001, "{\"n\":0}"));
    let last = lines[50_000];
    assert!(last.starts_with("{\"error\":{") && last.contains("divide by zero"), "{last}");
    for accept in ["text/csv", STREAM, FILE] {
        let reply = running.sql("break 50000", accept).await;
        assert_eq!((reply.status, reply.is_whole), (200, false), "{accept}");
        assert!(!reply.body.is_empty(), "{accept}");
    }
    // Before the first byte there is a better way to tell, and a short result waits for its end.
    for (sql, accept) in [
        ("break 5000", PARQUET),
        ("break 0", "application/json"),
        ("break 0", "text/csv"),
        ("break 3", "application/json"),
        ("break 3", "application/x-ndjson"),
        ("break 3", "text/csv"),
        ("break 3", STREAM),
        ("break 3", FILE),
    ] {
        let reply = running.sql(sql, accept).await;
        assert_eq!(reply.error(), "400 invalid: divide by zero", "{accept}");
        assert!(reply.json()["error"]["query_id"].is_string());
    }
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0).await;
    running.stop().await;
}

fn unpack(coding: &str, body: &[u8]) -> std::io::Result<Vec<u8>> {
    if coding == "zstd" {
        return zstd::decode_all(body);
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[tokio::test]
async fn texts_are_compressed_for_who_takes_that() {
    let running = Running::start().await;
    let ask = async |sql: &str, accept: &str, encoding: &str| {
        let headers = [("content-type", "text/plain"), ("accept", accept), ("accept-encoding", encoding)];
        running.ask("POST", "/v1/sql", &headers, sql.as_bytes()).await
    };
    for (encoding, coding) in [("br, gzip, ZSTD;q=0.5", "zstd"), ("gzip, zstd;q=0", "gzip")] {
        for (sql, accept) in [
            ("rows 50000", "text/csv"),
            ("empty", "application/json"),
            ("break 500000", "application/x-ndjson"),
        ] {
            let plain = ask(sql, accept, "br, gzip;q=0.0").await;
            let packed = ask(sql, accept, encoding).await;
            assert_eq!(
                (plain.header("content-encoding"), packed.header("content-encoding")),
                (None, Some(coding)),
                "{sql}"
            );
            assert!(packed.is_whole, "{coding} {sql}");
            let (small, large) = (packed.body.len(), plain.body.len());
            assert!(sql != "rows 50000" || small < large * 2 / 3, "{coding}: {small} of {large}");
            // All but the ids of queries.
            assert_eq!(unpack(coding, &packed.body).unwrap().len(), plain.body.len(), "{sql}");
        }
        let cut = ask("break 500000", "text/csv", coding).await;
        assert!(!cut.is_whole && unpack(coding, &cut.body).is_err());
        assert_eq!(ask("rows 1", STREAM, coding).await.header("content-encoding"), None);
    }
    running.stop().await;
}
