package bowshot;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** pgjdbc. */
class PostgresTest extends Wire {
  @Override
  String url(String parameters) {
    return "jdbc:postgresql://127.0.0.1:" + System.getenv("BOWSHOT_PG_PORT") + "/bowshot?sslmode=disable" + parameters;
  }

  /** Not in its simple mode, where it writes dates with a zone behind them into the text. */
  @Override
  List<String> modes() {
    return List.of("", "&prepareThreshold=1", "&binaryTransfer=false", "&reWriteBatchedInserts=true");
  }

  @Override
  String bytes() {
    return "BYTEA";
  }

  @Override
  String moment() {
    return "TIMESTAMP";
  }

  @Override
  String told(SQLException error) {
    return error.getSQLState();
  }

  @Override
  List<String[]> errors() {
    return List.of(
        new String[] {"SELECT * FROM missing", "42P01"},
        new String[] {"SELECT missing FROM nation", "42703"},
        new String[] {"SELECT missing(1)", "42883"},
        new String[] {"SELEC 1", "42601"},
        new String[] {"SELECT 1 / 0", "22012"},
        new String[] {"SELECT 'x'::int", "22P02"});
  }

  @Test
  void uuidsAndJsonAreThemselves() throws SQLException {
    UUID id = UUID.fromString("6fb1aaaa-0000-0000-0000-000000000001");
    for (String mode : modes()) {
      try (Connection connection = connect(mode); Statement statement = connection.createStatement()) {
        statement.execute("CREATE TABLE postgrestest_uuids (id UUID, doc JSON)");
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO postgrestest_uuids VALUES (?, ?::json)")) {
          insert.setObject(1, id);
          insert.setString(2, "{\"a\": 1}");
          assertEquals(1, insert.executeUpdate());
        }
        try (PreparedStatement query = connection.prepareStatement("SELECT id, doc FROM postgrestest_uuids WHERE id = ?")) {
          for (int n = 0; n < 3; n++) {
            query.setObject(1, id);
            try (ResultSet rows = query.executeQuery()) {
              assertEquals(true, rows.next());
              assertEquals(id, rows.getObject(1));
              assertEquals(id, rows.getObject("id", UUID.class));
              assertEquals("json", rows.getMetaData().getColumnTypeName(2));
              assertEquals("{\"a\": 1}", rows.getString(2));
            }
          }
        }
        statement.execute("DROP TABLE postgrestest_uuids");
      }
    }
  }
}
