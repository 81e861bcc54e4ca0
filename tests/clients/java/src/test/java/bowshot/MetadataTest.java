package bowshot;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** DatabaseMetaData, which tools read before anything else. */
class MetadataTest {
  private Connection connection;
  private DatabaseMetaData metadata;

  @BeforeEach
  void open() throws SQLException {
    connection = Shop.connect();
    metadata = connection.getMetaData();
  }

  @AfterEach
  void close() throws SQLException {
    connection.close();
  }

  @Test
  void everyGetterWithoutParametersAnswers() {
    List<String> broken = new ArrayList<>();
    int called = 0;
    for (Method method : DatabaseMetaData.class.getMethods()) {
      if (method.getParameterCount() > 0 || method.getDeclaringClass() != DatabaseMetaData.class) {
        continue;
      }
      called++;
      try {
        Object value = method.invoke(metadata);
        if (value instanceof ResultSet) {
          ((ResultSet) value).close();
        }
      } catch (InvocationTargetException error) {
        // What the driver itself does not offer says so and never asks the server.
        if (!(error.getCause() instanceof SQLFeatureNotSupportedException)) {
          broken.add(method.getName() + ": " + error.getCause());
        }
      } catch (IllegalAccessException | SQLException error) {
        broken.add(method.getName() + ": " + error);
      }
    }
    assertTrue(called > 100, "called " + called);
    assertEquals(List.of(), broken);
  }

  @Test
  void theServerIsDescribed() {
    assertAll(
        () -> assertEquals("Bowshot", metadata.getDatabaseProductName()),
        () -> assertFalse(metadata.getDatabaseProductVersion().isEmpty()),
        () -> assertFalse(metadata.isReadOnly()),
        () -> assertEquals("\"", metadata.getIdentifierQuoteString()),
        () -> assertFalse(metadata.getSQLKeywords().isEmpty()),
        () -> assertFalse(metadata.getNumericFunctions().isEmpty()),
        () -> assertFalse(metadata.getStringFunctions().isEmpty()),
        () -> assertFalse(metadata.getTimeDateFunctions().isEmpty()),
        () -> assertTrue(metadata.supportsTransactions()),
        () -> assertTrue(metadata.supportsSavepoints()),
        () -> assertTrue(metadata.supportsBatchUpdates()),
        () -> assertFalse(metadata.dataDefinitionCausesTransactionCommit()),
        () -> assertFalse(metadata.dataDefinitionIgnoredInTransactions()),
        () -> assertTrue(metadata.supportsTransactionIsolationLevel(Connection.TRANSACTION_READ_COMMITTED)),
        () -> assertTrue(metadata.supportsTransactionIsolationLevel(Connection.TRANSACTION_REPEATABLE_READ)),
        () -> assertTrue(metadata.supportsTransactionIsolationLevel(Connection.TRANSACTION_SERIALIZABLE)),
        () -> assertTrue(metadata.supportsANSI92EntryLevelSQL()),
        () -> assertTrue(metadata.supportsGroupBy()),
        () -> assertFalse(metadata.getCatalogTerm().isEmpty()),
        () -> assertFalse(metadata.getSchemaTerm().isEmpty()));
  }

  @Test
  void catalogsAndSchemas() throws SQLException {
    assertTrue(Shop.column(metadata.getCatalogs(), "TABLE_CAT").contains("bowshot"));
    assertTrue(
        Shop.column(metadata.getSchemas(), "TABLE_SCHEM").containsAll(List.of("main", "system")));
    assertEquals(
        List.of("main"), Shop.column(metadata.getSchemas("bowshot", "mai_"), "TABLE_SCHEM"));
    assertEquals(List.of(), Shop.column(metadata.getSchemas("nowhere", "%"), "TABLE_SCHEM"));
  }

  @Test
  void tablesWithEveryFilter() throws SQLException {
    List<String> all = Shop.column(metadata.getTables(null, "main", "%", null), "TABLE_NAME");
    assertTrue(all.containsAll(List.of("lineitem", "nation", "orders", "plain_types", "sales")));
    assertEquals(
        List.of("nation"),
        Shop.column(
            metadata.getTables("bowshot", "main", "nat%", new String[] {"TABLE"}), "TABLE_NAME"));
    assertEquals(
        List.of("nation"),
        Shop.column(
            metadata.getTables(null, "main", "natio_", new String[] {"BASE TABLE"}), "TABLE_NAME"));
    assertEquals(
        List.of(),
        Shop.column(metadata.getTables(null, "main", "%", new String[] {"VIEW"}), "TABLE_NAME"));
    assertEquals(
        List.of(), Shop.column(metadata.getTables("nowhere", null, "%", null), "TABLE_NAME"));
    try (ResultSet rows = metadata.getTables("bowshot", "main", "nation", null)) {
      assertTrue(rows.next());
      assertEquals("bowshot", rows.getString("TABLE_CAT"));
      assertEquals("main", rows.getString("TABLE_SCHEM"));
      assertEquals("TABLE", rows.getString("TABLE_TYPE"));
      assertFalse(rows.next());
    }
  }

  @Test
  void columns() throws SQLException {
    try (ResultSet rows = metadata.getColumns("bowshot", "main", "nation", "%")) {
      assertTrue(rows.next());
      assertEquals("n_nationkey", rows.getString("COLUMN_NAME"));
      assertEquals(Types.BIGINT, rows.getInt("DATA_TYPE"));
      assertNotNull(rows.getString("TYPE_NAME"));
      assertEquals(1, rows.getInt("ORDINAL_POSITION"));
      assertTrue(rows.next());
      assertEquals("n_name", rows.getString("COLUMN_NAME"));
      assertEquals(Types.VARCHAR, rows.getInt("DATA_TYPE"));
      assertEquals(2, rows.getInt("ORDINAL_POSITION"));
      assertFalse(rows.next());
    }
    assertEquals(
        List.of("n_name"),
        Shop.column(metadata.getColumns(null, "main", "nation", "%name"), "COLUMN_NAME"));
    try (ResultSet rows = metadata.getColumns(null, "main", "lineitem", "l_quantity")) {
      assertTrue(rows.next());
      assertEquals(Types.DECIMAL, rows.getInt("DATA_TYPE"));
      assertEquals(15, rows.getInt("COLUMN_SIZE"));
      assertEquals(2, rows.getInt("DECIMAL_DIGITS"));
    }
  }

  @Test
  void tableTypes() throws SQLException {
    List<String> types = Shop.column(metadata.getTableTypes(), "TABLE_TYPE");
    assertTrue(types.containsAll(List.of("TABLE", "VIEW")), types.toString());
  }

  /** The driver never asks the server for its types: CommandGetXdbcTypeInfo is tested by other clients. */
  @Test
  void typeInfoIsTheDriversOwn() throws SQLException {
    assertEquals(List.of(), Shop.column(metadata.getTypeInfo(), "TYPE_NAME"));
  }

  @Test
  void keysAreEmptyButThere() throws SQLException {
    assertEquals(
        List.of(),
        Shop.column(metadata.getPrimaryKeys("bowshot", "main", "nation"), "COLUMN_NAME"));
    assertEquals(
        List.of(),
        Shop.column(metadata.getImportedKeys("bowshot", "main", "nation"), "FKCOLUMN_NAME"));
    assertEquals(
        List.of(),
        Shop.column(metadata.getExportedKeys("bowshot", "main", "nation"), "FKCOLUMN_NAME"));
    assertEquals(
        List.of(),
        Shop.column(
            metadata.getCrossReference("bowshot", "main", "nation", "bowshot", "main", "orders"),
            "FKCOLUMN_NAME"));
  }
}
