//! Client code to paste while the demo runs.

/// For a browser, Python (the package, ADBC and pyarrow), JDBC and the shell.
pub(super) fn text(flight: &str, http: Option<&str>) -> String {
    let authority = flight.trim_start_matches("grpc://");
    let console = http.map(|http| format!("Console\n  {http}/console\n\n")).unwrap_or_default();
    let metrics = http.map(|http| format!("\nMetrics\n  curl {http}/metrics\n")).unwrap_or_default();
    format!(
        r#"The server stays up; Ctrl-C ends it.

{console}Python (package `bowshot`)
  import bowshot
  connection = bowshot.connect("{flight}", autocommit=True)
  print(connection.sql("SELECT l_returnflag, count(*) FROM lineitem GROUP BY 1"))

Python, ADBC (pip install adbc-driver-flightsql pyarrow)
  from adbc_driver_flightsql import dbapi
  with dbapi.connect("{flight}", autocommit=True) as connection, connection.cursor() as cursor:
      cursor.execute("SELECT l_returnflag, count(*) FROM lineitem GROUP BY 1")
      print(cursor.fetch_arrow_table())

Python, pyarrow alone (pip install pyarrow)
  from pyarrow import flight
  client = flight.connect("{flight}")
  print(client.do_get(flight.Ticket(b"SELECT * FROM lineitem LIMIT 5")).read_all())

JDBC (Arrow Flight SQL driver)
  jdbc:arrow-flight-sql://{authority}?useEncryption=false

Shell
  bowshot sql --uri {flight} "SELECT count(*) FROM lineitem"
{metrics}"#
    )
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn addresses_are_filled_in() {
        let text = text("grpc://127.0.0.1:50051", Some("http://127.0.0.1:8080"));
        for part in [
            "http://127.0.0.1:8080/console\n",
            "bowshot.connect(\"grpc://127.0.0.1:50051\", autocommit=True)",
            "dbapi.connect(\"grpc://127.0.0.1:50051\", autocommit=True)",
            "jdbc:arrow-flight-sql://127.0.0.1:50051?useEncryption=false",
            "bowshot sql --uri grpc://127.0.0.1:50051 ",
            "curl http://127.0.0.1:8080/metrics",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
