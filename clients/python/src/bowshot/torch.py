"""A dataset of PyTorch over the rows of a query, cut between ranks and workers, shuffled, and resumable.

dataset = bowshot.torch.BowshotDataset("images", "grpc://127.0.0.1:50051", column="id", batch_size=256)
loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="spawn")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import data

from bowshot._errors import InterfaceError
from bowshot._training import Arrays, Epochs


class BowshotDataset(data.IterableDataset):  # type: ignore[misc]
    """Yields batches: dictionaries of tensors, and lists of what no tensor can hold. So the `DataLoader` gets
    `batch_size=None`, and workers are started by `spawn` or `forkserver`.

    `source` is a query or a table's name. `column` has unique numbers, dates or timestamps: it cuts the rows into `partitions`
    ranges, which are dealt out to all workers of all ranks, and gives them the order that makes an epoch repeatable. Without
    it there can be one worker only, and nothing is shuffled. With `shuffle_buffer` ranges come in another order in each epoch
    (`set_epoch`), and rows are shuffled within blocks of so many. Other arguments are those of `bowshot.connect`.
    """

    def __init__(
        self,
        source: str,
        uri: str,
        *,
        column: str | None = None,
        partitions: int = 64,
        batch_size: int = 1024,
        shuffle_buffer: int = 0,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        **connection: Any,
    ) -> None:
        super().__init__()
        self._epochs = Epochs(
            source,
            uri,
            column=column,
            partitions=partitions,
            batch_size=batch_size,
            shuffle_buffer=shuffle_buffer,
            seed=seed,
            drop_last=drop_last,
            **connection,
        )
        self._rank, self._world_size = _ranks(rank, world_size)
        self._epoch = 0
        self._done = self._skip = 0

    def plan(self) -> BowshotDataset:
        """Decides now which rows belong to which range, so that workers agree even on a table that is written to."""
        self._epochs.plan()
        return self

    def set_epoch(self, epoch: int) -> None:
        """Another number, another order."""
        self._epoch, self._done, self._skip = epoch, 0, 0

    def state_dict(self) -> dict[str, int]:
        """Where this worker is: for `load_state_dict` of the same worker of as many, over the same rows."""
        return {"epoch": self._epoch, "batches": self._done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._epoch = state["epoch"]
        self._done = self._skip = state["batches"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        shard, shards = self._rank * workers + number, self._world_size * workers
        skip, self._skip = self._skip, 0
        self._done = skip
        for batch in self._epochs.batches(self._epoch, shard, shards, skip):
            self._done += 1
            yield tensors(batch)
        self._done = 0


def _ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """As they are given, else those of `torch.distributed`."""
    if (rank is None) != (world_size is None):
        raise InterfaceError("there is a rank without a world size, or the other way round")
    if rank is not None and world_size is not None:
        return rank, world_size
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def tensors(batch: Arrays) -> dict[str, Any]:
    """Moments become whole numbers; texts and what is ragged stay lists."""
    found: dict[str, Any] = {}
    for name, array in batch.items():
        if array.dtype.kind in "Mm":
            array = array.view("int64")
        # PyTorch has few unsigned types.
        if array.dtype.kind == "u" and array.dtype.itemsize > 1:
            array = array.astype("int64")
        found[name] = torch.from_numpy(array) if array.dtype.kind in "biuf" else array.tolist()
    return found
