package bowshot;

import java.sql.SQLException;
import java.util.List;

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
}
