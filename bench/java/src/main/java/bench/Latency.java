package bench;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.StringJoiner;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Times of a query of one row over JDBC: {@code Latency URL SQL CLIENTS WARMUP REPEATS SECONDS [KEYS]}. Each client is a thread
 * with a connection of its own. It asks until it has asked REPEATS times, or, if that is 0, until SECONDS are over. Before that it
 * asks WARMUP times, so that the code is compiled. With KEYS the query is prepared once; its parameter is a random number below
 * KEYS, and it has none if that is 0. Prints, as JSON, the seconds that all of them took together, and the time of each query in
 * nanoseconds.
 */
public final class Latency implements AutoCloseable {
    private final Connection connection;
    private final String sql;
    /** Null if each query has a statement of its own. */
    private final PreparedStatement prepared;
    private final long keys;
    private long[] times = new long[1024];
    private int count;

    private Latency(String url, String sql, Long keys) throws SQLException {
        this.connection = DriverManager.getConnection(url);
        this.sql = sql;
        this.prepared = keys == null ? null : connection.prepareStatement(sql);
        this.keys = keys == null ? 0 : keys;
    }

    public static void main(String[] words) throws Exception {
        int warmup = Integer.parseInt(words[3]);
        int repeats = Integer.parseInt(words[4]);
        double seconds = Double.parseDouble(words[5]);
        int number = Integer.parseInt(words[2]);
        Long keys = words.length > 6 ? Long.valueOf(words[6]) : null;
        List<Latency> clients = new ArrayList<>();
        ExecutorService threads = Executors.newFixedThreadPool(number);
        try {
            for (int client = 0; client < number; client++) {
                clients.add(new Latency(words[0], words[1], keys));
            }
            together(threads, clients, client -> client.warmUp(warmup));
            long started = System.nanoTime();
            long end = started + (long) (seconds * 1e9);
            together(threads, clients, client -> client.time(repeats, end));
            print((System.nanoTime() - started) / 1e9, clients);
        } finally {
            threads.shutdownNow();
            for (Latency client : clients) {
                client.close();
            }
        }
    }

    /** What a client does. */
    private interface Work {
        void of(Latency client) throws SQLException;
    }

    /** All clients at once; the first failure of one is that of all. */
    private static void together(ExecutorService threads, List<Latency> clients, Work work) throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (Latency client : clients) {
            tasks.add(() -> {
                work.of(client);
                return null;
            });
        }
        for (Future<Void> done : threads.invokeAll(tasks)) {
            done.get();
        }
    }

    private void warmUp(int queries) throws SQLException {
        for (int query = 0; query < queries; query++) {
            ask();
        }
    }

    private void time(int repeats, long end) throws SQLException {
        while (repeats > 0 ? count < repeats : System.nanoTime() < end) {
            long started = System.nanoTime();
            ask();
            keep(System.nanoTime() - started);
        }
    }

    private void ask() throws SQLException {
        if (prepared == null) {
            try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
                readRow(result);
            }
            return;
        }
        if (keys > 0) {
            prepared.setLong(1, ThreadLocalRandom.current().nextLong(keys));
        }
        try (ResultSet result = prepared.executeQuery()) {
            readRow(result);
        }
    }

    private static void readRow(ResultSet result) throws SQLException {
        if (!result.next()) {
            throw new SQLException("the answer has no row");
        }
        result.getLong(1);
        if (result.next()) {
            throw new SQLException("the answer has more than one row");
        }
    }

    private void keep(long time) {
        if (count == times.length) {
            times = Arrays.copyOf(times, 2 * count);
        }
        times[count++] = time;
    }

    private static void print(double seconds, List<Latency> clients) {
        StringJoiner times = new StringJoiner(", ");
        for (Latency client : clients) {
            for (int query = 0; query < client.count; query++) {
                times.add(Long.toString(client.times[query]));
            }
        }
        System.out.println("{\"seconds\": " + seconds + ", \"times_ns\": [" + times + "]}");
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
