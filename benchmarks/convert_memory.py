"""Measures the memory that converting a large T5 takes, relative to the model's size. Linux.

    python benchmarks/convert_memory.py [--layers 6] [--stored float32] [--dtype bfloat16]

A folder in Hugging Face's layout is written with random numbers, as wide as a published preset
(t5_11b) and with --layers layers, in shards; then a fresh process loads its encoder and writes a
SavedModel. The table gives the largest resident memory of each step, less what the imports took,
and its ratio to the size of the model. Both folders are deleted; --folder says where they are made.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARD = 2**30  # bytes


def main() -> None:
    """Reads the arguments, prints a table in Markdown; `--measure` is the child's part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="t5_11b", help="whose widths")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--stored", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--folder", type=Path, help="for scratch; default: the system's")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.dtype)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = Path(scratch, "t5")
        write_folder(folder, arguments.preset, arguments.layers, arguments.stored)
        command = [sys.executable, __file__, "--measure", folder, "--dtype", arguments.dtype]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(command, check=True, env=environment)


def write_folder(folder: Path, preset: str, layers: int, stored: str) -> None:
    """Writes the encoder of a preset, `layers` deep, in shards of a gigabyte."""
    import ml_dtypes  # noqa: F401  It adds bfloat16 to numpy.
    from safetensors.numpy import save_file

    folder.mkdir()
    config = {"num_layers": layers, **config_of(preset)}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    rng = np.random.default_rng(0)
    homes, shard, size = {}, {}, 0
    shapes = [*encoder_shapes(config).items()]
    for number, (name, shape) in enumerate(shapes):
        values = rng.standard_normal(shape, np.float32) * shape[-1] ** -0.5
        shard[name] = values.astype(stored)
        size += shard[name].nbytes
        homes[name] = f"model-{len(set(homes.values())) + (len(shard) == 1):05d}.safetensors"
        if size >= SHARD or number == len(shapes) - 1:
            save_file(shard, folder / homes[name])
            shard, size = {}, 0
    index = {"weight_map": homes}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def config_of(preset: str) -> dict[str, object]:
    """Hugging Face's configuration of a preset, without the number of layers."""
    from use_st5.models.t5.model import T5_PRESETS

    shape = T5_PRESETS[preset]
    if shape.activation != "relu":
        raise SystemExit(f"{preset}: give a preset of T5 1.0")
    return {
        "model_type": "t5",
        "vocab_size": shape.vocabulary_size,
        "d_model": shape.hidden_dim,
        "d_ff": shape.intermediate_dim,
        "num_heads": shape.num_heads,
        "d_kv": shape.key_value_dim,
    }


def encoder_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Name → shape of each tensor of the encoder, as torch stores it."""
    dim, inner, wide = config["d_model"], config["num_heads"] * config["d_kv"], config["d_ff"]
    shapes = {"shared.weight": (config["vocab_size"], dim)}
    for number in range(config["num_layers"]):
        block = f"encoder.block.{number}.layer"
        for name in "qkv":
            shapes[f"{block}.0.SelfAttention.{name}.weight"] = (inner, dim)
        shapes[f"{block}.0.SelfAttention.o.weight"] = (dim, inner)
        shapes[f"{block}.0.layer_norm.weight"] = shapes[f"{block}.1.layer_norm.weight"] = (dim,)
        shapes[f"{block}.1.DenseReluDense.wi.weight"] = (wide, dim)
        shapes[f"{block}.1.DenseReluDense.wo.weight"] = (dim, wide)
    bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return {**shapes, bias: (32, config["num_heads"]), "encoder.final_layer_norm.weight": (dim,)}


def measure(folder: Path, dtype: str) -> None:
    """Loads and exports in this process, and prints what each step took."""
    from use_st5.convert.checkpoint import open_checkpoint
    from use_st5.models.t5.checkpoint import read_sentence_t5
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
    from use_st5.trainable_encoder import TrainableEncoder

    tokenizer = SentencePieceTokenizer()
    baseline = memory("VmRSS")
    start = peak_from_here()
    model = read_sentence_t5(open_checkpoint(folder), dtype=dtype)
    size = sum(int(np.prod(v.shape)) * np.dtype(v.dtype).itemsize for v in model.weights)
    print(f"| the model, {dtype} | {size / 1e6:,.0f} MB | | |\n|---|---|---|---|")
    print_row("load", size, baseline, start)
    start = peak_from_here()
    to = folder.with_name("saved_model")
    TrainableEncoder(model, tokenizer, name="memory", max_length=256).export(to)
    print_row("export", size, baseline, start)


def print_row(step: str, size: int, baseline: int, start: float) -> None:
    """Prints the peak of a step, its ratio to the model's size, and its seconds."""
    peak = memory("VmHWM") - baseline
    seconds = time.perf_counter() - start
    print(f"| {step} | {peak / 1e6:,.0f} MB | {peak / size:.3f} × | {seconds:.0f} s |", flush=True)


def peak_from_here() -> float:
    """Forgets the largest memory so far; returns the time."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return time.perf_counter()


def memory(field: str) -> int:
    """A field of /proc/self/status in bytes: VmRSS, resident now, or VmHWM, the most it was."""
    # Not ru_maxrss, which a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
