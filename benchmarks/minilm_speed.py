"""How fast all-MiniLM-L6-v2 runs here, beside sentence-transformers, from strings to vectors.

    pip install "use_st5[peers,text]"
    python -m benchmarks.minilm_speed DATA

One thread each, in one process, one after the other on the same sentences (STS Benchmark, test), so
that a neighbour's load meets both alike: batches of 32 sentences, and one sentence at a time. The
medians, in milliseconds a call, and the median of the ratios of neighbouring calls.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

_CALLS = {32: 10, 1: 60}
_REPEATS = 2


def milliseconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    """Reads the argument, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the unpacked data")
    data = parser.parse_args().data

    import torch._dynamo  # before TensorFlow: their LLVMs refuse each other otherwise

    torch.set_num_threads(1)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from sentence_transformers import SentenceTransformer

    import use_st5
    from experiments.minilm import minilm_folder
    from use_st5.evaluation.sts import read_stsb

    with tempfile.TemporaryDirectory() as folder:
        use_st5.TrainableEncoder.load(minilm_folder()).export(Path(folder, "minilm"))
        ours = use_st5.load(Path(folder, "minilm"))
    theirs = SentenceTransformer(str(minilm_folder()), device="cpu")
    pairs = read_stsb(next(data.glob("**/sts-test.csv"))).pairs
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    apart = np.abs(ours.encode(texts[:320]) - theirs.encode(texts[:320])).max()
    print(f"vectors apart: {apart:.1e}")
    for size, calls in _CALLS.items():
        times = []
        for start in range(0, size * calls, size):
            batch = texts[start : start + size]
            for _ in range(_REPEATS):
                mine = milliseconds(lambda batch=batch: ours.encode(batch, batch_size=32))
                other = milliseconds(
                    lambda batch=batch: theirs.encode(batch, batch_size=32, show_progress_bar=False)
                )
                times.append((mine, other))
        mine, other = np.array(times).T
        print(
            f"{size} a call: use_st5 {np.median(mine):.1f} ms, sentence-transformers "
            f"{np.median(other):.1f} ms, ratio {np.median(other / mine):.2f}"
        )


if __name__ == "__main__":
    main()
