"""PyTorch, TensorFlow and Ray, whose packages are too large for each run: what is not installed is left out aloud."""

import os
import pathlib

import documents
import pyarrow as pa
import pytest

import bowshot

os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(pathlib.Path(__file__).parents[1] / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))

ROWS = 10_000


@pytest.fixture(scope="session")
def server():
    with bowshot.server() as server, server.connect(autocommit=True) as connection:
        rows = {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([[float(n), n / 2] for n in range(ROWS)], pa.list_(pa.float32())),
            "label": pa.array([n % 10 for n in range(ROWS)], pa.uint16()),
            "name": [f"n{n}" for n in range(ROWS)],
            "day": pa.array(range(ROWS), pa.date32()),
        }
        connection.ingest("samples", pa.table(rows))
        yield server


# --- PyTorch


def ids(batches):
    return [int(value) for batch in batches for value in batch["id"]]


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_loads_each_row_once(server, workers):
    torch = pytest.importorskip("torch")
    from bowshot.torch import BowshotDataset

    dataset = BowshotDataset("samples", server.uri, column="id", batch_size=500, shuffle_buffer=2000, partitions=8).plan()
    context = "spawn" if workers else None
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)
    batches = list(loader)
    assert sorted(ids(batches)) == list(range(ROWS))
    assert ids(batches) != list(range(ROWS))
    first = batches[0]
    assert first["x"].shape == (500, 2)
    assert first["x"].dtype == torch.float32
    assert first["label"].dtype == torch.int64
    assert isinstance(first["name"], list)
    assert first["day"].dtype == torch.int64


def test_torch_is_taken_up_again(server):
    pytest.importorskip("torch")
    from bowshot.torch import BowshotDataset

    def make():
        return BowshotDataset("samples", server.uri, column="id", batch_size=300, shuffle_buffer=1000, seed=3)

    whole = make()
    whole.set_epoch(4)
    expected = ids(whole)
    begun = make()
    begun.set_epoch(4)
    batches = iter(begun)
    seen = ids(next(batches) for _ in range(7))
    state = begun.state_dict()
    assert state == {"epoch": 4, "batches": 7}
    again = make()
    again.load_state_dict(state)
    assert seen + ids(again) == expected
    # The next epoch begins at its beginning.
    assert len(ids(again)) == ROWS


def test_torch_cuts_between_ranks(server):
    pytest.importorskip("torch")
    from bowshot.torch import BowshotDataset

    parts = [
        ids(BowshotDataset("samples", server.uri, column="id", partitions=9, rank=rank, world_size=2)) for rank in range(2)
    ]
    assert all(parts)
    assert sorted(parts[0] + parts[1]) == list(range(ROWS))


def test_torch_workers_that_were_forked_are_told(server):
    torch = pytest.importorskip("torch")
    from bowshot.torch import BowshotDataset

    dataset = BowshotDataset("samples", server.uri, column="id").plan()
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(Exception, match="spawn"):
        next(iter(loader))


# --- TensorFlow


def test_tensorflow_trains_on_each_row_once(server):
    tf = pytest.importorskip("tensorflow")
    import bowshot.tensorflow

    source = "SELECT id, x, label, name, day FROM samples"
    dataset = bowshot.tensorflow.dataset(source, server.uri, column="id", batch_size=500, shuffle_buffer=2000)
    batches = list(dataset.prefetch(tf.data.AUTOTUNE))
    assert sorted(int(value) for batch in batches for value in batch["id"].numpy()) == list(range(ROWS))
    first = batches[0]
    assert first["x"].shape == (500, 2)
    assert first["name"].dtype == tf.string
    assert first["day"].dtype == tf.int64
    halves = [
        bowshot.tensorflow.dataset(source, server.uri, column="id", shard=shard, shards=2, drop_last=True) for shard in range(2)
    ]
    assert sum(len(list(half)) for half in halves) >= 8
    with pytest.raises(bowshot.InterfaceError, match="no tensor has"):
        bowshot.tensorflow.dataset("SELECT INTERVAL '1' DAY AS i", server.uri)


@pytest.mark.parametrize(("section", "package"), [("PyTorch", "torch"), ("TensorFlow", "tensorflow")])
def test_examples_of_the_page(server, section, package):
    pytest.importorskip(package)
    with server.connect(autocommit=True) as connection:
        documents.orders(connection)
    names = documents.run(section, server.uri)
    assert len(names["batch"]["total"]) > 0


# --- Ray


def test_ray_reads_and_writes(server):
    pytest.importorskip("ray")
    import ray.data

    from bowshot.ray import BowshotDatasink, BowshotDatasource

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    try:
        for arguments in ({"column": "id", "partitions": 3}, {"partitions": 2}):
            dataset = ray.data.read_datasource(BowshotDatasource("samples", server.uri, **arguments))
            assert dataset.count() == ROWS
            assert dataset.sum("id") == ROWS * (ROWS - 1) // 2
        dataset.filter(lambda row: row["id"] < 1000).write_datasink(BowshotDatasink("copies", server.uri))
        with server.connect() as connection:
            assert connection.table("copies").count() == 1000
            documents.orders(connection)
            connection.commit()
            documents.run("Ray", server.uri)
            connection.rollback()
            assert connection.table("ray_orders").count() == 100
            assert connection.tables(like="bowshot_upload%") == []
    finally:
        ray.shutdown()
