package bowshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Batches of rows, changes through execute(), transactions. Each test has the table `jdbc_rows` for itself. */
class WritingTest {
  private Connection connection;
  private Statement statement;

  @BeforeEach
  void create() throws SQLException {
    connection = Shop.connect();
    statement = connection.createStatement();
    statement.executeUpdate("CREATE TABLE jdbc_rows (id BIGINT, name VARCHAR)");
  }

  @AfterEach
  void drop() throws SQLException {
    statement.executeUpdate("DROP TABLE jdbc_rows");
    connection.close();
  }

  /** The rows as a connection of its own sees them. */
  private List<String> elsewhere() throws SQLException {
    try (Connection other = Shop.connect()) {
      String sql = "SELECT id || coalesce(name, '-') AS both FROM jdbc_rows ORDER BY id, name";
      return Shop.column(other.createStatement().executeQuery(sql), "both");
    }
  }

  private int[] runBatch(String sql, long... ids) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(sql)) {
      for (long id : ids) {
        insert.setLong(1, id);
        insert.addBatch();
      }
      return insert.executeBatch();
    }
  }

  @Test
  void aBatchIsWrittenAtOnce() throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_rows VALUES (?, ?)")) {
      for (long id = 1; id <= 3; id++) {
        insert.setLong(1, id);
        if (id == 2) {
          insert.setNull(2, Types.VARCHAR);
        } else {
          insert.setString(2, "größe");
        }
        insert.addBatch();
      }
      // The driver gives the sum in place of one count for each row.
      assertArrayEquals(new int[] {3}, insert.executeBatch());
      insert.setLong(1, 4);
      insert.setString(2, "d");
      insert.addBatch();
      assertArrayEquals(new long[] {1}, insert.executeLargeBatch());
    }
    assertEquals(List.of("1größe", "2-", "3größe", "4d"), elsewhere());
  }

  @Test
  void batchesUpdateAndDelete() throws SQLException {
    runBatch("INSERT INTO jdbc_rows VALUES (?, 'a')", 1, 2, 3, 4);
    assertArrayEquals(new int[] {2}, runBatch("UPDATE jdbc_rows SET name = 'b' WHERE id = ?", 1, 3));
    assertArrayEquals(new int[] {1}, runBatch("DELETE FROM jdbc_rows WHERE id = ?", 4, 5));
    assertEquals(List.of("1b", "2a", "3b"), elsewhere());
  }

  @Test
  void aLargeBatchIsWritten() throws SQLException {
    long[] ids = new long[20_000];
    for (int row = 0; row < ids.length; row++) {
      ids[row] = row;
    }
    assertArrayEquals(new int[] {ids.length}, runBatch("INSERT INTO jdbc_rows VALUES (?, 'a')", ids));
    ResultSet sums = statement.executeQuery("SELECT count(*) || ' ' || sum(id) AS sums FROM jdbc_rows");
    assertEquals(List.of("20000 199990000"), Shop.column(sums, "sums"));
  }

  @Test
  void aBatchThatFailsWritesNothing() throws SQLException {
    assertThrows(SQLException.class, () -> runBatch("INSERT INTO jdbc_rows SELECT 10 / ?, 'a'", 1, 2, 0));
    assertEquals(List.of(), elsewhere());
  }

  @Test
  void executeTellsWhatWasChanged() throws SQLException {
    assertFalse(statement.execute("INSERT INTO jdbc_rows VALUES (1, 'a'), (2, 'b')"));
    assertEquals(2, statement.getUpdateCount());
    assertFalse(statement.execute("UPDATE jdbc_rows SET name = 'c' WHERE id = 2"));
    assertEquals(1, statement.getUpdateCount());
    assertFalse(statement.execute("CREATE VIEW jdbc_view AS SELECT * FROM jdbc_rows"));
    assertFalse(statement.execute("DROP VIEW jdbc_view"));
    assertEquals(List.of("1a", "2c"), elsewhere());
  }

  @Test
  void aPreparedChangeIsMadeOnceForEachExecute() throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_rows VALUES (?, 'a')")) {
      for (long id = 1; id <= 2; id++) {
        insert.setLong(1, id);
        // The driver runs it as a query, whether or not anybody reads the rows; so the count is one.
        assertTrue(insert.execute());
      }
      try (ResultSet rows = insert.getResultSet()) {
        assertTrue(rows.next());
        assertEquals(1, rows.getLong("count"));
        assertFalse(rows.next());
      }
    }
    assertEquals(List.of("1a", "2a"), elsewhere());
  }

  @Test
  void statementsBeginAndEndTransactions() throws SQLException {
    statement.execute("BEGIN");
    runBatch("INSERT INTO jdbc_rows VALUES (?, 'a')", 1, 2);
    assertEquals(List.of(), elsewhere());
    statement.execute("ROLLBACK");
    assertEquals(List.of(), elsewhere());
    statement.execute("BEGIN");
    statement.executeUpdate("INSERT INTO jdbc_rows VALUES (3, 'b')");
    assertEquals(List.of(), elsewhere());
    statement.execute("COMMIT");
    assertEquals(List.of("3b"), elsewhere());
  }
}
