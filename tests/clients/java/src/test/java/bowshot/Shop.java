package bowshot;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** The served sample data, as the tests reach it. */
final class Shop {
  static final long LINEITEM_ROWS = 60_000;

  private Shop() {}

  static String url() {
    return String.format(
        "jdbc:arrow-flight-sql://%s:%s/?useEncryption=false",
        System.getenv("BOWSHOT_HOST"), System.getenv("BOWSHOT_PORT"));
  }

  static Connection connect() throws SQLException {
    return DriverManager.getConnection(url());
  }

  /** All values of one column, as text; closes the rows. */
  static List<String> column(ResultSet rows, String name) throws SQLException {
    List<String> values = new ArrayList<>();
    try (rows) {
      while (rows.next()) {
        values.add(rows.getString(name));
      }
    }
    return values;
  }
}
