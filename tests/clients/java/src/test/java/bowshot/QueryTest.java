package bowshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Plain and prepared queries, values of every type, cancelling, errors. */
class QueryTest {
  private Connection connection;

  @BeforeEach
  void open() throws SQLException {
    connection = Shop.connect();
  }

  @AfterEach
  void close() throws SQLException {
    connection.close();
  }

  private interface Binder {
    void bind(PreparedStatement statement) throws SQLException;
  }

  private String one(String sql, Binder binder) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      binder.bind(statement);
      try (ResultSet rows = statement.executeQuery()) {
        assertTrue(rows.next(), sql);
        String value = rows.getString(1);
        assertFalse(rows.next(), sql);
        return value;
      }
    }
  }

  @Test
  void plainQuery() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery("SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey")) {
      for (int key = 0; key < 25; key++) {
        assertTrue(rows.next());
        assertEquals(key, rows.getLong(1));
        assertEquals(key == 7, "GERMANY".equals(rows.getString("n_name")));
      }
      assertFalse(rows.next());
    }
  }

  @Test
  void largeFetch() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT * FROM lineitem")) {
      long count = 0;
      while (rows.next()) {
        count++;
        assertTrue(rows.getLong("l_orderkey") > 0);
      }
      assertEquals(Shop.LINEITEM_ROWS, count);
    }
  }

  @Test
  void everyPlainTypeIsRead() throws SQLException {
    String columns =
        "c_bool, c_int8, c_int16, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64,"
            + " c_float32, c_float64, c_decimal, c_string, c_binary, c_date, c_time, c_timestamp_s,"
            + " c_timestamp_ms, c_timestamp_us, c_timestamp_ns, c_timestamp_utc, c_list, c_struct";
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT " + columns + " FROM plain_types")) {
      assertTrue(rows.next());
      assertTrue(rows.getBoolean("c_bool"));
      for (String name : new String[] {"c_int8", "c_int16", "c_int32", "c_int64", "c_uint8", "c_uint32"}) {
        assertEquals(1, rows.getLong(name), name);
      }
      assertEquals(1.5, rows.getDouble("c_float32"));
      assertEquals(1.5, rows.getDouble("c_float64"));
      assertEquals(new BigDecimal("1.50"), rows.getBigDecimal("c_decimal"));
      assertEquals("a", rows.getString("c_string"));
      assertArrayEquals(new byte[] {'a'}, rows.getBytes("c_binary"));
      assertEquals(LocalDate.of(2024, 2, 29), rows.getDate("c_date").toLocalDate());
      assertEquals("12:34:56", rows.getTime("c_time").toString().substring(0, 8));
      for (String name : new String[] {"c_timestamp_ms", "c_timestamp_us", "c_timestamp_ns"}) {
        assertEquals(Timestamp.valueOf("2024-02-29 12:34:56.789"), rows.getTimestamp(name), name);
      }
      assertEquals(Timestamp.valueOf("2024-02-29 12:34:56"), rows.getTimestamp("c_timestamp_s"));
      Object[] list = (Object[]) rows.getArray("c_list").getArray();
      assertEquals(2, list.length);
      assertTrue(rows.next());
      ResultSetMetaData metadata = rows.getMetaData();
      for (int index = 1; index <= metadata.getColumnCount(); index++) {
        // The driver has no getObject for timestamps with a time zone.
        assertNull(rows.getString(index), metadata.getColumnName(index));
        assertTrue(rows.wasNull());
      }
    }
  }

  @Test
  void resultSetMetadata() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery("SELECT n_nationkey AS k, n_name, 1.5 AS r FROM nation")) {
      ResultSetMetaData metadata = rows.getMetaData();
      assertEquals(3, metadata.getColumnCount());
      assertEquals("k", metadata.getColumnLabel(1));
      assertEquals(Types.BIGINT, metadata.getColumnType(1));
      assertEquals(Types.VARCHAR, metadata.getColumnType(2));
      for (int index = 1; index <= 3; index++) {
        metadata.getPrecision(index);
        metadata.getScale(index);
        metadata.getTableName(index);
        metadata.isNullable(index);
        metadata.isSigned(index);
        metadata.getColumnDisplaySize(index);
        metadata.getColumnTypeName(index);
      }
    }
  }

  @Test
  void parametersOfEveryType() throws SQLException {
    assertEquals("GERMANY", one("SELECT n_name FROM nation WHERE n_nationkey = ?", s -> s.setLong(1, 7)));
    assertEquals("GERMANY", one("SELECT n_name FROM nation WHERE n_nationkey = ?", s -> s.setInt(1, 7)));
    assertEquals("7", one("SELECT n_nationkey FROM nation WHERE n_name = ?", s -> s.setString(1, "GERMANY")));
    String from = "SELECT c_string FROM plain_types WHERE ";
    assertEquals("a", one(from + "c_bool = ?", s -> s.setBoolean(1, true)));
    assertEquals("a", one(from + "c_int8 = ?", s -> s.setByte(1, (byte) 1)));
    assertEquals("a", one(from + "c_int16 = ?", s -> s.setShort(1, (short) 1)));
    assertEquals("a", one(from + "c_int32 = ?", s -> s.setInt(1, 1)));
    assertEquals("a", one(from + "c_float32 = ?", s -> s.setFloat(1, 1.5f)));
    assertEquals("a", one(from + "c_float64 = ?", s -> s.setDouble(1, 1.5)));
    assertEquals("a", one(from + "c_decimal = ?", s -> s.setBigDecimal(1, new BigDecimal("1.50"))));
    assertEquals("a", one(from + "c_binary = ?", s -> s.setBytes(1, new byte[] {'a'})));
    assertEquals("a", one(from + "c_date = ?", s -> s.setDate(1, Date.valueOf("2024-02-29"))));
    assertEquals("0", one("SELECT count(*) FROM nation WHERE n_nationkey = ?", s -> s.setNull(1, Types.BIGINT)));
  }

  @Test
  void timestampParametersMeanTheirMoment() throws SQLException {
    Timestamp moment = Timestamp.valueOf("2024-02-29 12:34:56.789");
    for (String unit : new String[] {"ms", "us", "ns"}) {
      String sql = "SELECT count(*) FROM plain_types WHERE c_timestamp_" + unit + " = ?";
      assertEquals("1", one(sql, s -> s.setTimestamp(1, moment)), unit);
    }
    Timestamp second = Timestamp.valueOf("2024-02-29 12:34:56");
    assertEquals("1", one("SELECT count(*) FROM plain_types WHERE c_timestamp_s = ?", s -> s.setTimestamp(1, second)));
    assertEquals("1", one("SELECT count(*) FROM plain_types WHERE c_timestamp_us > ?", s -> s.setTimestamp(1, second)));
  }

  @Test
  void aPreparedStatementRunsAgain() throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("SELECT n_name FROM nation WHERE n_nationkey = ?")) {
      assertEquals(1, statement.getParameterMetaData().getParameterCount());
      for (String[] pair : new String[][] {{"3", "CANADA"}, {"7", "GERMANY"}, {"3", "CANADA"}}) {
        statement.setLong(1, Long.parseLong(pair[0]));
        try (ResultSet rows = statement.executeQuery()) {
          assertTrue(rows.next());
          assertEquals(pair[1], rows.getString(1));
        }
      }
    }
  }

  @Test
  void executeTellsThatThereAreRows() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      assertTrue(statement.execute("SELECT 1"));
      try (ResultSet rows = statement.getResultSet()) {
        assertTrue(rows.next());
        assertEquals(1, rows.getInt(1));
      }
    }
  }

  @Test
  void updatesTellHowManyRowsTheyChanged() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("CREATE TABLE jdbc_writing (id BIGINT, name VARCHAR)");
      try {
        assertEquals(2, statement.executeUpdate("INSERT INTO jdbc_writing VALUES (1, 'one'), (2, 'two')"));
        try (PreparedStatement insert =
            connection.prepareStatement("INSERT INTO jdbc_writing VALUES (?, ?)")) {
          for (long id = 3; id < 6; id++) {
            insert.setLong(1, id);
            insert.setString(2, "row " + id);
            assertEquals(1, insert.executeUpdate());
          }
        }
        assertEquals(4, statement.executeUpdate("UPDATE jdbc_writing SET name = 'x' WHERE id > 1"));
        assertEquals(1, statement.executeUpdate("DELETE FROM jdbc_writing WHERE id = 1"));
        try (ResultSet rows =
            statement.executeQuery("SELECT count(*), min(id) FROM jdbc_writing WHERE name = 'x'")) {
          assertTrue(rows.next());
          assertEquals(4, rows.getInt(1));
          assertEquals(2, rows.getInt(2));
        }
      } finally {
        statement.executeUpdate("DROP TABLE jdbc_writing");
      }
    }
  }

  /**
   * What the server says of the query is what counts. Version 18.3.0 of the driver takes the stream apart under its
   * reader: as the threads happen to meet, the reader sees "Statement canceled", an unchecked exception, or no more
   * rows, and cancelling or closing complains of buffers that were given back twice or not at all.
   */
  @Test
  @Timeout(60)
  void cancelStopsAQuery() throws Exception {
    // Its first rows come at once and its last one not today.
    String sql = "SELECT a.l_orderkey FROM lineitem a CROSS JOIN orders";
    Connection other = Shop.connect();
    Statement statement = other.createStatement();
    CompletableFuture<Void> begun = new CompletableFuture<>();
    Thread reader =
        new Thread(
            () -> {
              try (ResultSet rows = statement.executeQuery(sql)) {
                while (rows.next()) {
                  begun.complete(null);
                }
              } catch (SQLException | RuntimeException ended) {
                begun.completeExceptionally(ended);
              }
            });
    reader.start();
    begun.get();
    assertEquals(List.of(), outcomes(sql), "the query ended before it was cancelled");
    try {
      statement.cancel();
    } catch (RuntimeException inTheDriver) {
      System.err.println("cancelling: " + inTheDriver);
    }
    reader.join();
    while (outcomes(sql).isEmpty()) {
      Thread.sleep(20);
    }
    assertEquals(List.of("cancelled"), outcomes(sql));
    try {
      other.close();
    } catch (SQLException inTheDriver) {
      System.err.println("closing: " + inTheDriver);
    }
  }

  /** How statements with this text ended; none is in it that still runs. */
  private List<String> outcomes(String sql) throws SQLException {
    try (PreparedStatement log =
        connection.prepareStatement(
            "SELECT outcome FROM bowshot.system.queries WHERE statement = ?"
                + " AND outcome NOT IN ('queued', 'planning', 'running', 'waiting')")) {
      log.setString(1, sql);
      return Shop.column(log.executeQuery(), "outcome");
    }
  }

  @Test
  void errorsNameTheThing() {
    SQLException unknown =
        assertThrows(SQLException.class, () -> connection.createStatement().executeQuery("SELECT * FROM lineitm"));
    assertTrue(unknown.getMessage().contains("lineitm"), unknown.getMessage());
    assertThrows(SQLException.class, () -> connection.createStatement().executeQuery("SELEC 1"));
    assertThrows(SQLException.class, () -> connection.createStatement().executeUpdate("DROP TABLE nation"));
    assertThrows(
        SQLException.class,
        () -> {
          try (ResultSet rows =
              connection.createStatement().executeQuery("SELECT 1 / (l_orderkey - l_orderkey) FROM lineitem")) {
            while (rows.next()) {
              rows.getLong(1);
            }
          }
        });
  }

  @Test
  void theCatalogPropertyAndUnknownPropertiesConnect() throws SQLException {
    Connection other = DriverManager.getConnection(Shop.url() + "&catalog=bowshot&application=suite");
    try (Statement statement = other.createStatement();
        ResultSet rows = statement.executeQuery("SELECT count(*) FROM nation")) {
      assertTrue(rows.next());
      assertEquals(25, rows.getInt(1));
    }
    // Version 18.3.0 of the driver closes its channel before it closes the session over it.
    SQLException closing = assertThrows(SQLException.class, other::close);
    assertTrue(closing.getMessage().contains("Channel shutdown invoked"), closing.getMessage());
    assertThrows(SQLException.class, () -> DriverManager.getConnection(Shop.url() + "&catalog=nowhere"));
  }

  @Test
  void isValid() throws SQLException {
    assertTrue(connection.isValid(5));
  }
}
