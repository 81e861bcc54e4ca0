package bowshot;

import java.sql.SQLException;
import java.util.List;

/** MariaDB Connector/J. */
class MariadbTest extends Wire {
  @Override
  String url(String parameters) {
    return "jdbc:mariadb://127.0.0.1:" + System.getenv("BOWSHOT_MYSQL_PORT") + "/main?sslMode=disable" + parameters;
  }

  @Override
  List<String> modes() {
    return List.of("", "&useServerPrepStmts=true", "&useBulkStmts=false");
  }

  @Override
  String bytes() {
    return "BLOB";
  }

  @Override
  String moment() {
    return "DATETIME(6)";
  }

  @Override
  String told(SQLException error) {
    return error.getSQLState() + " " + error.getErrorCode();
  }

  @Override
  List<String[]> errors() {
    return List.of(
        new String[] {"SELECT * FROM missing", "42S02 1146"},
        new String[] {"SELECT missing FROM nation", "42S22 1054"},
        new String[] {"SELECT missing(1)", "42000 1305"},
        new String[] {"SELECT FROM WHERE", "42000 1064"});
  }
}
