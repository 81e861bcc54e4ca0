"""A dataset of PyTorch over local Parquet files: see `parquet_training.py`."""

import parquet_training
import torch
from torch.utils import data


class ParquetDataset(data.IterableDataset):
    def __init__(self, path, columns, batch, shuffle=0):
        super().__init__()
        self.path, self.columns, self.batch, self.shuffle, self.epoch = path, columns, batch, shuffle, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        worker = data.get_worker_info()
        shard, shards = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for piece in parquet_training.pieces(self.path, self.columns, self.batch, self.shuffle, self.epoch, shard, shards):
            yield {name: torch.from_numpy(array) for name, array in parquet_training.arrays(piece).items()}
