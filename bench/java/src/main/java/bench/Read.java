package bench;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.StringJoiner;

/**
 * Reads a query over JDBC with typed access, value by value: {@code Read URL SQL FETCH_SIZE REPEATS BUDGET_S}. Prints
 * the JSON
 * that the other clients of the bench print. One run goes before the timed ones, so that the code is compiled; it takes the
 * digest, which is that of {@code bench/lib/digest.py}. The timed runs add up numbers and the lengths of texts.
 */
public final class Read {
    private final boolean checking;
    private long rows;
    private long[] sums;
    private long[] nulls;

    private Read(boolean checking) {
        this.checking = checking;
    }

    public static void main(String[] words) throws SQLException {
        int fetchSize = Integer.parseInt(words[2]);
        int repeats = Integer.parseInt(words[3]);
        double budget = Double.parseDouble(words[4]);
        double spent = 0;
        StringJoiner runs = new StringJoiner(", ");
        Read checked = new Read(true);
        try (Connection connection = DriverManager.getConnection(words[0])) {
            // PostgreSQL's driver asks for some rows at a time only within a transaction.
            connection.setAutoCommit(!words[0].startsWith("jdbc:postgresql:"));
            checked.all(connection, words[1], fetchSize);
            for (int run = 0; run < repeats && spent <= budget; run++) {
                Read timed = new Read(false);
                long started = System.nanoTime();
                timed.all(connection, words[1], fetchSize);
                double seconds = (System.nanoTime() - started) / 1e9;
                spent += seconds;
                runs.add("{\"seconds\": " + seconds + ", \"bytes\": 0, \"rows\": " + timed.rows + "}");
            }
        }
        System.out.println("{\"runs\": [" + runs + "], \"warmups\": 1, \"digest\": " + checked.digest() + "}");
    }

    private void all(Connection connection, String sql, int fetchSize) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(fetchSize);
            try (ResultSet result = statement.executeQuery(sql)) {
                ResultSetMetaData described = result.getMetaData();
                int columns = described.getColumnCount();
                boolean[] texts = new boolean[columns];
                for (int index = 0; index < columns; index++) {
                    int type = described.getColumnType(index + 1);
                    texts[index] = type == Types.VARCHAR || type == Types.LONGVARCHAR || type == Types.CHAR;
                }
                sums = new long[columns];
                nulls = new long[columns];
                while (result.next()) {
                    row(result, texts);
                }
            }
        }
    }

    private void row(ResultSet result, boolean[] texts) throws SQLException {
        rows++;
        for (int index = 0; index < texts.length; index++) {
            if (texts[index]) {
                String text = result.getString(index + 1);
                sums[index] += text == null ? 0 : checking ? placed(text) : text.length();
            } else {
                sums[index] += result.getLong(index + 1);
            }
            if (result.wasNull()) {
                nulls[index]++;
            }
        }
    }

    /** The sum of each byte times its place, from 1. */
    private static long placed(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        long sum = 0;
        for (int index = 0; index < bytes.length; index++) {
            sum += (index + 1L) * (bytes[index] & 0xff);
        }
        return sum;
    }

    private String digest() {
        StringJoiner columns = new StringJoiner(", ");
        for (int index = 0; index < sums.length; index++) {
            columns.add("{\"nulls\": " + nulls[index] + ", \"sum\": " + Long.toUnsignedString(sums[index]) + "}");
        }
        return "{\"rows\": " + rows + ", \"columns\": [" + columns + "]}";
    }
}
