package bowshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The driver's default: an encrypted connection. */
@Timeout(60)
class TlsTest {
  private static final String COUNT = "SELECT count(*) AS n FROM lineitem";

  private static String url(String parameters) {
    return String.format(
        "jdbc:arrow-flight-sql://%s:%s/?%s",
        System.getenv("BOWSHOT_HOST"), System.getenv("BOWSHOT_TLS_PORT"), parameters);
  }

  private static List<String> count(String parameters) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url(parameters));
        Statement statement = connection.createStatement()) {
      return Shop.column(statement.executeQuery(COUNT), "n");
    }
  }

  @Test
  void readsOverAnEncryptedConnection() throws SQLException {
    String authority = URLEncoder.encode(System.getenv("BOWSHOT_TLS_AUTHORITY"), StandardCharsets.UTF_8);
    assertEquals(List.of(Long.toString(Shop.LINEITEM_ROWS)), count("tlsRootCerts=" + authority));
  }

  @Test
  void trustsNobodyUnasked() {
    assertThrows(SQLException.class, () -> count(""));
  }

  @Test
  void isToldToEncrypt() {
    SQLException refused = assertThrows(SQLException.class, () -> count("useEncryption=false"));
    assertTrue(refused.getMessage().contains("speaks TLS only"), refused.getMessage());
  }
}
