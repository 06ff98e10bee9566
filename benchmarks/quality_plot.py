"""Draws the quality of the models against their speed and against their size.

    python -m benchmarks.engines --out engines.json
    python -m benchmarks.quality_plot engines.json --out docs/images

Quality is the mean Spearman of five STS sets in `results/MODEL.json`, as `use-st5 evaluate` wrote
it. Speed is that of calls with 32 sentences of 12 words, for the engines that one run of
`benchmarks.engines` measured by turns. Size is that of the files on disk.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tools.card_tables import mean_spearman
from use_st5._imports import require
from use_st5.hub.model_names import bundled_folder

REPOSITORY = Path(__file__).resolve().parents[1]
WORK = "short, 32"
# Names in the record of `benchmarks.engines` → in `results/`.
MODELS = {
    "use_dan_en": "use_dan_en",
    "use_transformer_en": "use_transformer_en",
    "st5_mini_en": "st5_mini_en",
    "minilm": "all-MiniLM-L6-v2",
}
ENGINES = {
    "st-torch": "sentence-transformers",
    "tensorflow": "use_st5",
    "onnx": "use_st5, ONNX",
    "onnx-int8": "use_st5, ONNX int8",
}
MARKERS = dict(zip(ENGINES, "soD^", strict=True))
MINILM_MB = 91  # model.safetensors of all-MiniLM-L6-v2


def main() -> None:
    """Reads the arguments and draws."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engines", type=Path, help="the record of benchmarks.engines")
    parser.add_argument("--out", type=Path, required=True, help="folder of the plots")
    arguments = parser.parse_args()
    record = json.loads(arguments.engines.read_text("utf-8"))
    quality = {
        model: mean_spearman(json.loads((REPOSITORY / f"results/{name}.json").read_text())["tasks"])
        for model, name in MODELS.items()
    }
    speeds = {
        (model, engine): record[model][engine][WORK]
        for model in MODELS
        for engine in ENGINES
        if engine in record[model]
    }
    sizes = {model: MINILM_MB if model == "minilm" else _size(model) for model in MODELS}
    draw(quality, speeds, sizes, record["machine"], arguments.out / "quality.svg")


def draw(
    quality: dict[str, float],
    speeds: dict[tuple[str, str], float],
    sizes: dict[str, float],
    machine: dict[str, Any],
    path: Path,
) -> None:
    """Draws two panels.

    Args:
        quality: Mean Spearman x 100 of each model.
        speeds: Sentences per second of each model and engine.
        sizes: MB of each model.
        machine: The processor and the threads with which `speeds` were measured.
        path: The SVG file to write.
    """
    require("matplotlib", "plots").use("svg")
    pyplot = require("matplotlib.pyplot", "plots")
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4), sharey=True, width_ratios=(2, 1), layout="constrained"
    )
    for color, (model, name) in enumerate(MODELS.items()):
        points = {engine: speed for (each, engine), speed in speeds.items() if each == model}
        left.plot([*points.values()], [quality[model]] * len(points), color=f"C{color}", alpha=0.3)
        for engine, speed in points.items():
            left.scatter(speed, quality[model], color=f"C{color}", marker=MARKERS[engine], s=50)
        right.scatter(sizes[model], quality[model], color=f"C{color}", s=50)
        for axes, x in ((left, max(points.values())), (right, sizes[model])):
            where = (x, quality[model])
            axes.annotate(name, where, (8, 0), textcoords="offset points", va="center")
    for engine, label in ENGINES.items():
        left.scatter([], [], color="gray", marker=MARKERS[engine], label=label)
    left.legend(loc="lower left", fontsize="small")
    threads = "one thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    left.set(
        xscale="log",
        xlabel=f"sentences per second, batch 32, 12 words, {threads}",
        ylabel="Spearman x 100, mean of five STS sets",
    )
    right.set(xlabel="MB on disk", xlim=(0, 190))
    left.margins(0.3, 0.15)
    figure.savefig(path, metadata={"Date": None})


def _size(model: str) -> float:
    files = bundled_folder(model).rglob("*")
    return sum(each.stat().st_size for each in files if each.is_file()) / 1e6


if __name__ == "__main__":
    main()
