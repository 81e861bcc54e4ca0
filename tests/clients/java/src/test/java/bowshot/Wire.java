package bowshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the drivers of other databases have to find: metadata, values, errors, cancel, transactions, bulk. */
abstract class Wire {
  private static final String SLOW =
      "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey";

  /** The server with some more parameters of the driver. */
  abstract String url(String parameters);

  /** Each way in which the driver sends statements, as parameters. */
  abstract List<String> modes();

  /** Parameters with which the driver asks for metadata. */
  String asking() {
    return "";
  }

  /** Whether what the driver asks of indexes and keys of others is there. */
  boolean tellsIndexes() {
    return true;
  }

  /** The name of a type of bytes, and one of points in time. */
  abstract String bytes();

  abstract String moment();

  /** What an error says: SQLSTATE, or where drivers have numbers, those. */
  abstract String told(SQLException error);

  abstract List<String[]> errors();

  Connection connect(String parameters) throws SQLException {
    return DriverManager.getConnection(url(parameters), "ada", "");
  }

  private String table(String name) {
    return getClass().getSimpleName().toLowerCase() + "_" + name;
  }

  @Test
  void connectsAndReads() throws SQLException {
    try (Connection connection = connect("")) {
      assertTrue(connection.isValid(10));
      try (ResultSet rows = connection.createStatement().executeQuery("SELECT n_name FROM nation ORDER BY 1 LIMIT 2")) {
        assertEquals(List.of("ALGERIA", "ARGENTINA"), Shop.column(rows, "n_name"));
      }
    }
  }

  @Test
  void metadata() throws SQLException {
    String table = table("meta");
    try (Connection connection = connect(asking()); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE " + table + " (a INT PRIMARY KEY, b VARCHAR(9) NOT NULL, c DECIMAL(10, 2))");
      var meta = connection.getMetaData();
      assertEquals(List.of(table), Shop.column(meta.getTables(null, null, table, new String[] {"TABLE"}), "TABLE_NAME"));
      assertEquals(List.of("a", "b", "c"), Shop.column(meta.getColumns(null, null, table, "%"), "COLUMN_NAME"));
      assertEquals(List.of("NO", "NO", "YES"), Shop.column(meta.getColumns(null, null, table, "%"), "IS_NULLABLE"));
      assertEquals(List.of("a"), Shop.column(meta.getPrimaryKeys(connection.getCatalog(), null, table), "COLUMN_NAME"));
      meta.getTypeInfo().close();
      meta.getCatalogs().close();
      meta.getSchemas().close();
      if (tellsIndexes()) {
        meta.getIndexInfo(connection.getCatalog(), null, table, false, true).close();
        meta.getImportedKeys(connection.getCatalog(), null, table).close();
      }
      statement.execute("DROP TABLE " + table);
    }
  }

  @Test
  void valuesGoThereAndComeBack() throws SQLException {
    Timestamp moment = Timestamp.valueOf("2024-01-02 03:04:05.000006");
    for (String mode : modes()) {
      String table = table("values");
      try (Connection connection = connect(mode); Statement statement = connection.createStatement()) {
        statement.execute("CREATE TABLE " + table + " (n INT, a SMALLINT, b BIGINT, c DOUBLE PRECISION,"
            + " d DECIMAL(20, 5), e BOOLEAN, f TEXT, g " + bytes() + ", h DATE, i " + moment() + ", j TEXT)");
        String sql = "INSERT INTO " + table + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
          for (int n = 0; n < 8; n++) {
            insert.setInt(1, n);
            insert.setShort(2, (short) -32768);
            insert.setLong(3, Long.MIN_VALUE);
            insert.setDouble(4, 0.1);
            insert.setBigDecimal(5, new BigDecimal("-99999999999.00001"));
            insert.setBoolean(6, true);
            insert.setString(7, "it's ä\n\\");
            insert.setBytes(8, new byte[] {0, -1, 92, 39});
            insert.setDate(9, java.sql.Date.valueOf("2024-02-29"));
            insert.setTimestamp(10, moment);
            insert.setString(11, null);
            assertEquals(1, insert.executeUpdate());
          }
        }
        try (PreparedStatement select = connection.prepareStatement("SELECT * FROM " + table + " WHERE n = ?")) {
          for (int n = 0; n < 8; n++) {
            select.setInt(1, n);
            try (ResultSet row = select.executeQuery()) {
              assertTrue(row.next());
              assertEquals((short) -32768, row.getShort("a"));
              assertEquals(Long.MIN_VALUE, row.getLong("b"));
              assertEquals(0.1, row.getDouble("c"));
              assertEquals(new BigDecimal("-99999999999.00001"), row.getBigDecimal("d"));
              assertTrue(row.getBoolean("e"));
              assertEquals("it's ä\n\\", row.getString("f"));
              assertArrayEquals(new byte[] {0, -1, 92, 39}, row.getBytes("g"));
              assertEquals(java.sql.Date.valueOf("2024-02-29"), row.getDate("h"));
              assertEquals(moment, row.getTimestamp("i"), mode);
              assertEquals(null, row.getString("j"));
            }
          }
        }
        statement.execute("DROP TABLE " + table);
      }
    }
  }

  @Test
  void errorsHaveTheirCodes() throws SQLException {
    try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
      for (String[] expected : errors()) {
        SQLException error = assertThrows(SQLException.class, () -> statement.executeQuery(expected[0]));
        assertEquals(expected[1], told(error), error.getMessage());
      }
      assertTrue(statement.executeQuery("SELECT 1").next());
    }
  }

  @Test
  void aCancelEndsWhatRuns() throws SQLException {
    try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      long started = System.nanoTime();
      assertThrows(SQLException.class, () -> statement.executeQuery(SLOW));
      assertTrue(System.nanoTime() - started < 20_000_000_000L);
      statement.setQueryTimeout(0);
      assertTrue(statement.executeQuery("SELECT 1").next());
    }
  }

  @Test
  void transactionsAndBatches() throws SQLException {
    String table = table("rows");
    try (Connection connection = connect(modes().get(modes().size() - 1)); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE " + table + " (a BIGINT, b VARCHAR(20))");
      connection.setAutoCommit(false);
      for (boolean keep : new boolean[] {false, true}) {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + table + " VALUES (?, ?)")) {
          for (int n = 0; n < 500; n++) {
            insert.setLong(1, n);
            insert.setString(2, "x" + n);
            insert.addBatch();
          }
          assertEquals(500, insert.executeBatch().length);
        }
        if (keep) {
          var savepoint = connection.setSavepoint();
          statement.execute("DELETE FROM " + table);
          connection.rollback(savepoint);
          connection.commit();
        } else {
          connection.rollback();
        }
      }
      connection.setAutoCommit(true);
      try (ResultSet row = statement.executeQuery("SELECT count(*), sum(a) FROM " + table)) {
        assertTrue(row.next());
        assertEquals(500, row.getLong(1));
        assertEquals(124_750, row.getLong(2));
      }
      statement.execute("DROP TABLE " + table);
    }
  }

  @Test
  void manyRowsComeInParts() throws SQLException {
    try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.setFetchSize(1000);
      long count = 0;
      try (ResultSet rows = statement.executeQuery("SELECT l_orderkey FROM lineitem")) {
        while (rows.next()) {
          count++;
        }
      }
      assertEquals(Shop.LINEITEM_ROWS, count);
      connection.commit();
    }
  }
}
