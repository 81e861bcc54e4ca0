package bowshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flight.AsyncPutListener;
import org.apache.arrow.flight.FlightClient;
import org.apache.arrow.flight.FlightDescriptor;
import org.apache.arrow.flight.FlightRuntimeException;
import org.apache.arrow.flight.Location;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A model from Java: its file sent by DoPut, rows scored over an open stream of DoExchange. */
class ScoringTest {
  /** One split of XGBoost: `a` below one half gives 1, else 2. */
  private static final String STUMP =
      "{\"learner\": {\"attributes\": {}, \"feature_names\": [\"a\", \"b\"], \"gradient_booster\": {\"name\": \"gbtree\","
          + " \"model\": {\"tree_info\": [0], \"trees\": [{\"left_children\": [1, -1, -1], \"right_children\": [2, -1, -1],"
          + " \"split_indices\": [0, 0, 0], \"split_conditions\": [0.5, 1.0, 2.0], \"default_left\": [0, 0, 0],"
          + " \"tree_param\": {\"num_nodes\": \"3\", \"size_leaf_vector\": \"1\"}}]}}, \"learner_model_param\":"
          + " {\"base_score\": \"0\", \"num_class\": \"0\", \"num_feature\": \"2\", \"num_target\": \"1\"},"
          + " \"objective\": {\"name\": \"reg:squarederror\"}}}";

  private BufferAllocator allocator;
  private FlightClient client;

  @BeforeEach
  void open() {
    allocator = new RootAllocator();
    int port = Integer.parseInt(System.getenv("BOWSHOT_PORT"));
    client = FlightClient.builder(allocator, Location.forGrpcInsecure(System.getenv("BOWSHOT_HOST"), port)).build();
  }

  @AfterEach
  void close() throws InterruptedException {
    client.close();
    allocator.close();
  }

  /** Makes a model of a file, or its next version. */
  private void upload(String name, byte[] file) {
    Field column = new Field("file", FieldType.notNullable(new ArrowType.Binary()), null);
    Schema schema = new Schema(List.of(column), Map.of("if_exists", "replace", "format", "xgboost"));
    try (VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
      AsyncPutListener answer = new AsyncPutListener();
      FlightClient.ClientStreamListener stream =
          client.startPut(FlightDescriptor.path("models", name), root, answer);
      ((VarBinaryVector) root.getVector("file")).setSafe(0, file);
      root.setRowCount(1);
      stream.putNext();
      stream.completed();
      stream.getResult();
    }
  }

  private static Field number(String name) {
    return new Field(name, FieldType.nullable(new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE)), null);
  }

  @Test
  void scoresRowsOneByOneAndManyAtOnce() throws Exception {
    upload("java_model", STUMP.getBytes(StandardCharsets.UTF_8));
    try (FlightClient.ExchangeReaderWriter exchange = client.doExchange(FlightDescriptor.path("score", "java_model"));
        VectorSchemaRoot rows = VectorSchemaRoot.create(new Schema(List.of(number("b"), number("a"))), allocator)) {
      exchange.getWriter().start(rows);
      for (double[] batch : new double[][] {{0.25}, {0.75}, {0.1, 0.9, 0.2}}) {
        Float8Vector a = (Float8Vector) rows.getVector("a");
        Float8Vector b = (Float8Vector) rows.getVector("b");
        rows.allocateNew();
        List<Float> expected = new ArrayList<>();
        for (int at = 0; at < batch.length; at++) {
          a.set(at, batch[at]);
          b.setNull(at);
          expected.add(batch[at] < 0.5 ? 1f : 2f);
        }
        rows.setRowCount(batch.length);
        exchange.getWriter().putNext();
        assertTrue(exchange.getReader().next());
        Float4Vector said = (Float4Vector) exchange.getReader().getRoot().getVector("prediction");
        List<Float> given = new ArrayList<>();
        for (int at = 0; at < said.getValueCount(); at++) {
          given.add(said.get(at));
        }
        assertEquals(expected, given);
      }
      exchange.getWriter().completed();
      assertFalse(exchange.getReader().next());
    }
  }

  @Test
  void saysWhatIsWrongWithAFile() {
    FlightRuntimeException error =
        assertThrows(FlightRuntimeException.class, () -> upload("java_broken", new byte[] {1, 2, 3}));
    assertTrue(error.getMessage().contains("damaged"), error.getMessage());
  }
}
