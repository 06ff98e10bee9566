"""The batches of a run as record files, for workers in other processes.

The input of a training on this machine calls back into this process for the rows of each batch,
which a remote worker (a `tf.distribute.Server`, the hosts of a TPU pod) cannot do. For these the
batches are written once, before the first step, in the order in which they will be read: what SeqIO
calls a deterministic pipeline (Roberts et al. 2022, "Scaling Up Models and Data with t5x and
seqio"). A worker then reads its own files from front to back, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import tensorflow as tf

from use_st5.data.arrays import ArrayData
from use_st5.io.files import remote_path

# Batches that a pipeline has ready.
_PREFETCHED = 4
_PARSED_AT_ONCE = 4
_SHARDS = 8
_STEPS_A_FILE = 1000
_FORMAT = 1


class BatchFiles:
    """The batches of one task as TFRecord files, one for each shard and each thousand steps.

    Shard s of S holds the s-th part of every micro-batch, one record for each step. R replicas,
    where R divides S, read S / R shards each. Together they read the batches of `ArrayData.batch`,
    for any R. The folder's name has a hash of everything that the batches depend on: files that
    exist there are those of this data and this seed, and are not written again. The folder can be
    any path of `tf.io.gfile` that all workers see. A step cuts each batch into `micro_batches`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        name: str,
        data: ArrayData,
        *,
        columns: Sequence[str],
        batch_size: int,
        seed: int,
        micro_batches: int = 1,
        replicas: int = 1,
    ) -> None:
        data.check_batch(batch_size, parts=replicas * micro_batches)
        self.data = data
        self.columns = sorted(columns)
        self.batch_size = batch_size
        self.seed = seed
        self.micro_batches = micro_batches
        part = batch_size // micro_batches
        shards = math.gcd(part, _SHARDS)
        self.shards = shards if shards % replicas == 0 else math.gcd(part, _SHARDS * replicas)
        content = data.fingerprint(self.columns)
        settings = [_FORMAT, content, batch_size, seed, micro_batches, self.shards]
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
        # A remote worker has another working directory.
        path = remote_path(folder) or Path(folder).absolute()
        self.folder = f"{path}/{name}-{digest[:16]}"

    def write(self, start: int, end: int) -> None:
        """Writes the batches from step `start` to before step `end` that do not exist yet.

        A file counts only if all of its steps were written; after a killed writer it is written
        anew.
        """
        tf.io.gfile.makedirs(self.folder)
        for block in self._blocks(start, end):
            if tf.io.gfile.exists(self._done(block)):
                continue
            with ExitStack() as stack:
                writers = [
                    stack.enter_context(tf.io.TFRecordWriter(self._file(block, shard)))
                    for shard in range(self.shards)
                ]
                for step in block:
                    columns = self.data.batch(step, self.batch_size, self.seed)
                    for shard, writer in enumerate(writers):
                        writer.write(self._record(columns, shard))
            with tf.io.gfile.GFile(self._done(block), "w") as file:
                file.write(json.dumps({"shards": self.shards, "steps": len(block)}))

    def dataset(
        self, start: int, end: int, *, replica_count: int = 1, replicas: range = range(1)
    ) -> tf.data.Dataset:
        """The batches from step `start` to before step `end`, as `array_dataset` returns them.

        The pipeline is made of TensorFlow's own operations and of file names, and runs anywhere.
        Reading past the end is an error.
        """
        shards_each = self.shards // replica_count
        blocks = self._blocks(start, end)
        offset = start % _STEPS_A_FILE
        shard_datasets = tuple(
            tf.data.TFRecordDataset([self._file(block, shard) for block in blocks]).skip(offset)
            for shard in range(replicas.start * shards_each, replicas.stop * shards_each)
        )
        records = tf.data.Dataset.zip(shard_datasets).map(
            lambda *parts: self._rows(tf.stack(parts), len(replicas)),
            num_parallel_calls=_PARSED_AT_ONCE,
            deterministic=True,
        )
        return endless(records.unbatch())

    def _rows(self, records: tf.Tensor, replicas: int) -> dict[str, tf.Tensor]:
        """Records of a step `[replicas · shards of each]` → columns `[replicas, rows, …]`."""
        features = tf.io.parse_example(
            records, {name: tf.io.FixedLenFeature([], tf.string) for name in self.columns}
        )
        shards, micro = records.shape[0] // replicas, self.micro_batches
        rows = self.batch_size // micro // self.shards
        columns = {}
        for name in self.columns:
            shape = [-1 if size is None else size for size in self.data.row_shape(name)]
            values = tf.io.decode_raw(features[name], tf.as_dtype(self.data.arrays[name].dtype))
            values = tf.reshape(values, [replicas, shards, micro, rows, *shape])
            # A shard holds its part of each micro-batch; a replica has the micro-batches in order.
            values = tf.transpose(values, [0, 2, 1, *range(3, 4 + len(shape))])
            columns[name] = tf.reshape(values, [replicas, micro * shards * rows, *shape])
        return columns

    def _record(self, columns: dict[str, np.ndarray], shard: int) -> bytes:
        """A shard's part of each micro-batch of a batch, as a serialized `tf.train.Example`."""
        values = {}
        for name in self.columns:
            array = columns[name].astype(columns[name].dtype.newbyteorder("<"), copy=False)
            parts = array.reshape(self.micro_batches, self.shards, -1, *array.shape[1:])
            value = tf.train.BytesList(value=[parts[:, shard].tobytes()])
            values[name] = tf.train.Feature(bytes_list=value)
        return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()

    @staticmethod
    def _blocks(start: int, end: int) -> list[range]:
        """The steps of each file that holds some of the steps from `start` to before `end`."""
        if start >= end:
            return []
        first = start // _STEPS_A_FILE * _STEPS_A_FILE
        return [
            range(step, min(step + _STEPS_A_FILE, end)) for step in range(first, end, _STEPS_A_FILE)
        ]

    def _file(self, block: range, shard: int) -> str:
        shards = f"{shard:05d}-of-{self.shards:05d}"
        return f"{self.folder}/{block.start:09d}-{block.stop:09d}.tfrecord-{shards}"

    def _done(self, block: range) -> str:
        return f"{self.folder}/{block.start:09d}-{block.stop:09d}.json"


def endless(batches: tf.data.Dataset) -> tf.data.Dataset:
    """The same batches, some of them ready, without end, in a pipeline that is not tuned.

    If batches may end, a strategy of several machines, or one whose batches have several widths,
    prepares for a smaller last batch: it makes the number of rows unknown.

    The thread that tunes a pipeline sleeps for up to a minute, and can miss that the pipeline ends.
    A training then waited up to a minute for each of its tasks.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    count = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.prefetch(_PREFETCHED).apply(count).with_options(options)
