"""One experiment of Trans-Encoder as a value: who learns from whom, by which pairs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.trans_encoder.starts import Opened, Start, learner_of, write_start
from use_st5._files import atomic_path, sole_writer
from use_st5._model_manifest import check_replaceable
from use_st5._records import read_record
from use_st5.training import TransEncoder, teach
from use_st5.training.device import Device
from use_st5.training.pair_scores import Kind
from use_st5.training.recipe import Part, Scores, StrategyName
from use_st5.training.recipe_run import PARTS, checkpoints_folder, parts_to_run, write_json
from use_st5.training.run_checks import check_begun_with
from use_st5.training.trans_encoder import Taught, best

_PAIRS, _GOLD, _FACTS, _TAUGHT = "pairs.jsonl", "gold.npy", "facts.json", "taught.json"
_FOLDERS: Mapping[Kind, str] = {"bi": "model", "cross": "cross_encoder"}
Folders = Mapping[str, Path | None]
# XLA takes minutes on a CPU for the program of each model.
OPTIONS = {"jit_compile": False}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairDistillation:
    """Encoders that teach each other by the scores which they give to pairs without labels.

    Attributes:
        name: Of the exported encoders.
        starts: The learners: one for self-distillation, several for mutual distillation.
        pool: Which pairs, unless the run is given others.
        course: Cycles and lessons.
        options: Further ones of the trainer, such as "jit_compile".
        expected: The scores that the experiment had when it was run.
    """

    name: str
    starts: tuple[Start, ...]
    pool: Any
    course: TransEncoder
    options: Mapping[str, Any] = dataclasses.field(default_factory=lambda: dict(OPTIONS))
    expected: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        resume: bool = True,
        part: Part | None = None,
        strategy: StrategyName | None = None,
        pretrained: Path | None = None,
        second: Path | None = None,
        language_model: Path | None = None,
        second_language_model: Path | None = None,
        pairs: Path | None = None,
        text: Path | None = None,
    ) -> Scores:
        """Prepares the pairs, trains, exports the best encoders and scores them.

        Written into the output folder are `prepared/` (the pairs, their ids, what is started from),
        `checkpoints/` (the course), `model/` and `cross_encoder/` (the best SavedModels of each
        kind by STS-B dev), `report.md` and `scores.json`.

        Args:
            data: Folder of the STS sets, and of corpora where pairs are mined from them.
            output: The folder to write.
            seed: Of new weights, dropout, the order of the pairs, and the draw of sentences.
            steps: Optimizer steps of each training; the experiment's own by default.
            resume: Whether an interrupted run in `output` continues.
            part: "prepare" writes what the training needs; "train" trains, under JAX too; "export"
                does what is left. None: all.
            strategy: Where to train, as in `strategy_by_name`, on one machine.
            pretrained: The BERT or RoBERTa to start from; None: MiniLM.
            second: Another one, for learners that begin with it; None: the first.
            language_model: The plain BERT or RoBERTa behind `pretrained`, with which each of its
                cross-encoders begins (the paper, section 2.2); None: these begin with `pretrained`.
            second_language_model: The same for `second`; None: that of the first, where `second` is
                the first, too, or else `second`.
            pairs: A file of pairs to learn from in place of the experiment's own.
            text: A file or folder of running text to mine pairs from in place of these.

        Returns:
            Scores by "model/set".

        Raises:
            MissingDataError: STS-B dev, or a set of the pool, is not in the data folder.
            ValueError: Settings do not go together, or the folder has another run.
        """
        wanted = parts_to_run(part, PARTS)
        _check_one_machine(strategy)
        device = Device(strategy, part)
        folders = _folders(pretrained, second, language_model, second_language_model)
        with sole_writer(output, inside=True):
            checkpoints_folder(output, resume=resume)
            check_replaceable(output / _FOLDERS["cross"])
            if "prepare" in wanted:
                self._prepare(data, output, seed, folders, {"pairs": pairs, "text": text})
            if "train" in wanted:
                self._train(output, seed, steps, device)
            return self._export(data, output, seed, folders) if "export" in wanted else {}

    def _prepare(
        self, data: Path, output: Path, seed: int, folders: Folders, pool_given: Folders
    ) -> None:
        """Writes pairs, ids and starts, all or nothing."""
        from experiments.trans_encoder.pairs import given_pool

        given = {**folders, **pool_given}
        facts = {
            "recipe": self.name,
            "seed": seed,
            **{name: None if path is None else str(path.resolve()) for name, path in given.items()},
        }
        prepared = output / "prepared"
        if prepared.exists():
            check_begun_with(prepared / _FACTS, facts)
            return
        development = stsb_dev(data)
        opened = [Opened.of(start, folders) for start in self.starts]
        pool = given_pool(self.pool, **pool_given).pairs(data, opened[0].bi.encode, seed)
        with atomic_path(prepared) as temporary:
            temporary.mkdir()
            lines = (json.dumps(pair, ensure_ascii=False) + "\n" for pair in pool)
            (temporary / _PAIRS).write_text("".join(lines), encoding="utf-8")
            np.save(temporary / _GOLD, np.array([pair.score for pair in development]))
            texts = [(pair.first, pair.second) for pair in development]
            for start, each in zip(self.starts, opened, strict=True):
                write_start(temporary / start.name, each, pool, texts)
            write_json(temporary / _FACTS, facts)

    def _train(self, output: Path, seed: int, steps: int | None, device: Device) -> None:
        prepared, options = output / "prepared", {**self.options, **device.options}
        if not prepared.is_dir():
            raise FileNotFoundError(
                f"Expected prepared pairs, {prepared}. Where TensorFlow is, run the same command "
                "with --part prepare, and bring the output folder here."
            )
        checkpoints = output / "checkpoints"
        learners = [
            learner_of(start, prepared / start.name, checkpoints, seed + number, options)
            for number, start in enumerate(self.starts)
        ]
        taught = teach(
            learners,
            np.load(prepared / _GOLD),
            checkpoints,
            course=_in_steps(self.course, steps),
            seed=seed,
            **options,
        )
        rows = [dataclasses.asdict(each) for each in taught]
        for row in rows:
            row["weights"] = row["weights"] and str(row["weights"].relative_to(output))
        write_json(output / _TAUGHT, {"seed": seed, "taught": rows})

    def _export(self, data: Path, output: Path, seed: int, folders: Folders) -> Scores:
        from experiments.trans_encoder import report as scoring

        taught = _taught(output)
        sets, missing = scoring.test_sets(data)
        said: dict[str, Mapping[str, np.ndarray]] = {}
        best_of: dict[Kind, tuple[float, Any]] = {}
        for start in self.starts:
            prefix = f"{start.name}_" if len(self.starts) > 1 else ""
            opened = Opened.of(start, folders)
            opened.begin(output / "checkpoints")
            said[f"{prefix}start"] = scoring.said_of(sets, opened.bi, kind="bi")
            for kind in self._kinds(start):
                chosen = best(taught, start.name, kind)
                encoder = opened.taught(kind, chosen.weights)
                said[f"{prefix}{kind}"] = (
                    scoring.said_of(sets, encoder, kind=kind)
                    if chosen.weights
                    else said[f"{prefix}start"]
                )
                encoder.name = self.name
                encoder.metadata |= {"recipe": self.name, "seed": seed, "cycle": chosen.cycle}
                if kind not in best_of or chosen.spearman > best_of[kind][0]:
                    best_of[kind] = chosen.spearman, encoder
        for what in ("start", "bi", "cross"):
            members = [each for name, each in said.items() if name.endswith(f"_{what}")]
            if len(members) > 1:
                said[f"ensemble_{what}"] = scoring.ensemble_said(members)
        scores = {name: scoring.scores_of(sets, each) for name, each in said.items()}
        for kind, (_, encoder) in best_of.items():
            encoder.export(output / _FOLDERS[kind])
        pool = _pairs(output / "prepared" / _PAIRS)
        with atomic_path(output / "report.md") as temporary:
            text = scoring.report(self.name, sets, missing, pool, scores, taught)
            temporary.write_text(text, encoding="utf-8")
        flat = {
            f"{model}/{name}": v for model, found in scores.items() for name, v in found.items()
        }
        write_json(output / "scores.json", flat)
        return flat

    def _kinds(self, start: Start) -> Sequence[Kind]:
        """Of which kinds a learner has models."""
        return ("bi", "cross") if start.cross and not self.course.standard else ("bi",)


def _folders(
    pretrained: Path | None,
    second: Path | None,
    language_model: Path | None,
    second_language_model: Path | None,
) -> dict[str, Path | None]:
    """Where each start and each cross-encoder is read, by the names of `Opened.of`."""
    return {
        "pretrained": pretrained,
        "second": second or pretrained,
        "language_model": language_model,
        "second_language_model": second_language_model or (None if second else language_model),
    }


def _check_one_machine(strategy: StrategyName | None) -> None:
    if strategy == "multi_worker":
        raise ValueError(
            "Expected a strategy of one machine, received multi_worker: in a course each model is "
            "made of files that the one before wrote, for which several machines do not wait. "
            "mirrored trains on all GPUs of a machine."
        )


def stsb_dev(data: Path) -> Sequence[Any]:
    """The development pairs with their scores.

    Raises:
        MissingDataError: They are not in the folder.
    """
    from use_st5.data import DataFolder
    from use_st5.evaluation.sts import STSB_DEV, read_sts

    return read_sts(DataFolder(data), STSB_DEV).pairs


def _in_steps(course: TransEncoder, steps: int | None) -> TransEncoder:
    if steps is None:
        return course
    return dataclasses.replace(
        course,
        to_cross=dataclasses.replace(course.to_cross, steps=steps),
        to_bi=dataclasses.replace(course.to_bi, steps=steps),
    )


def _taught(output: Path) -> list[Taught]:
    path = output / _TAUGHT
    if not path.exists():
        raise FileNotFoundError(
            f"Expected {path}, which the training writes when it is done. Run the same command "
            f"with --part train --out {output}"
        )
    rows = read_record(path, dict[str, Any], remedy="Train again.")["taught"]
    return [
        Taught(**{**row, "weights": row["weights"] and output / row["weights"]}) for row in rows
    ]


def _pairs(path: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(first, second) for first, second in rows]
