"""One experiment of Trans-Encoder: its models, its pairs and its settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.corpus_tasks import STEPS_PER_CALL
from experiments.run import Run, Scores, read_json, write_json
from experiments.stsb_dev import stsb_dev
from experiments.trans_encoder.starts import Kind, Opened, Start, student_of, write_start
from use_st5.io import atomic_path
from use_st5.training import DistilledModel, TransEncoder, train_trans_encoder

_PAIRS, _SCORES, _FACTS, _MODELS = "pairs.jsonl", "scores.npy", "facts.json", "models.json"
_FOLDERS: Mapping[Kind, str] = {"bi": "model", "cross": "cross_encoder"}
Folders = Mapping[str, Path | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairDistillation:
    """Encoders that teach each other by their scores of pairs without labels.

    Attributes:
        name: The name of the exported encoders.
        starts: The students: one for self-distillation, several for mutual distillation.
        pool: The pairs, unless the run is given others.
        settings: The settings of the cycles.
        steps_per_execution: Steps in one call from the host.
    """

    name: str
    starts: tuple[Start, ...]
    pool: Any
    settings: TransEncoder
    steps_per_execution: int = STEPS_PER_CALL

    def run(
        self,
        data: Path,
        output: Path,
        *,
        pretrained: Path | None = None,
        second: Path | None = None,
        language_model: Path | None = None,
        second_language_model: Path | None = None,
        pairs: Path | None = None,
        text: Path | None = None,
        **options: Any,
    ) -> Scores:
        """Prepares the pairs, trains, exports the best encoders and scores them.

        The run writes into the output folder: `prepared/` (the pairs, their ids, the initial
        models), `checkpoints/` (the cycles), `model/` and `cross_encoder/` (the best SavedModels of
        each kind by STS-B dev), `report.md` and `scores.json`.

        Args:
            data: Folder of the STS sets, and of the corpora if pairs are mined from them.
            output: The folder to write.
            pretrained: The BERT or RoBERTa to start from; None: MiniLM.
            second: Another BERT or RoBERTa, for students that start from it; None: `pretrained`.
            language_model: The plain BERT or RoBERTa behind `pretrained`, from which its
                cross-encoders start (the paper, section 2.2); None: they start from `pretrained`.
            second_language_model: The same for `second`; None: `second`, or `language_model` if no
                `second` is given.
            pairs: A file of pairs to learn from instead of the experiment's own.
            text: A file or folder of running text to mine pairs from instead.
            **options: As in `Run`, on one machine.

        Returns:
            Scores by "model/set".
        """
        if options.get("strategy") == "multi_worker":  # They do not wait for each other's files.
            raise ValueError("expected a strategy of one machine, such as mirrored")
        run = Run(data, output, **options)
        folders = _folders(pretrained, second, language_model, second_language_model)
        with run.begun():
            if "prepare" in run.parts:
                self._prepare(run, folders, {"pairs": pairs, "text": text})
            if "train" in run.parts:
                self._train(run)
            return self._export(run, folders) if "export" in run.parts else {}

    def _prepare(self, run: Run, folders: Folders, pool_given: Folders) -> None:
        """Writes pairs, ids and starts in one atomic step; keeps those of an equal run."""
        from experiments.trans_encoder.pairs import given_pool

        paths = {**folders, **pool_given}
        facts = {
            "recipe": self.name,
            "seed": run.seed,
            **{name: None if path is None else str(path.resolve()) for name, path in paths.items()},
        }
        prepared = run.prepared
        if prepared.exists():
            if (kept := read_json(prepared / _FACTS)) != facts:
                raise ValueError(f"{prepared} was begun with {kept}, this run has {facts}.")
            return
        validation = stsb_dev(run.data)
        opened = [Opened.of(start, folders) for start in self.starts]
        pool = given_pool(self.pool, **pool_given)
        pairs = pool.pairs(run.data, opened[0].bi.encode, run.seed)
        with atomic_path(prepared) as temporary:
            temporary.mkdir()
            lines = (json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
            (temporary / _PAIRS).write_text("".join(lines), encoding="utf-8")
            np.save(temporary / _SCORES, np.array([pair.score for pair in validation]))
            texts = [(pair.first, pair.second) for pair in validation]
            for start, each in zip(self.starts, opened, strict=True):
                write_start(temporary / start.name, each, pairs, texts)
            write_json(temporary / _FACTS, facts)

    def _train(self, run: Run) -> None:
        if not run.prepared.is_dir():
            raise FileNotFoundError(
                f"Expected prepared pairs, {run.prepared}. Where TensorFlow is, run the same "
                "command with --part prepare, and bring the output folder here."
            )
        students = [
            student_of(run, start, run.seed + number, self.steps_per_execution)
            for number, start in enumerate(self.starts)
        ]
        models = train_trans_encoder(
            students,
            np.load(run.prepared / _SCORES),
            run.checkpoints,
            settings=_in_steps(self.settings, run.steps),
            seed=run.seed,
            strategy=run.strategy,
            steps_per_execution=self.steps_per_execution,
            jit_compile=False,  # XLA takes minutes on a CPU for the program of each model.
        )
        rows = [dataclasses.asdict(each) for each in models]
        for row in rows:
            row["weights"] = row["weights"] and str(row["weights"].relative_to(run.output))
        run.write(_MODELS, {"seed": run.seed, "models": rows})

    def _export(self, run: Run, folders: Folders) -> Scores:
        from experiments.trans_encoder import report as scoring

        models, output = _distilled_models(run.output), run.output
        sets, missing = scoring.test_sets(run.data)
        similarities: dict[str, Mapping[str, np.ndarray]] = {}
        best_of: dict[Kind, tuple[float, Any]] = {}
        for start in self.starts:
            prefix = f"{start.name}_" if len(self.starts) > 1 else ""
            opened = Opened.of(start, folders)
            opened.begin(run.checkpoints)
            similarities[f"{prefix}start"] = scoring.similarities_of(sets, opened.bi, kind="bi")
            for kind in self._kinds(start):
                best_model = _best(models, start.name, kind)
                encoder = opened.trained(kind, best_model.weights)
                similarities[f"{prefix}{kind}"] = (
                    scoring.similarities_of(sets, encoder, kind=kind)
                    if best_model.weights
                    else similarities[f"{prefix}start"]
                )
                encoder.name = self.name
                encoder.metadata |= {
                    "recipe": self.name,
                    "seed": run.seed,
                    "cycle": best_model.cycle,
                }
                if kind not in best_of or best_model.spearman > best_of[kind][0]:
                    best_of[kind] = best_model.spearman, encoder
        for suffix in ("start", "bi", "cross"):
            members = [each for name, each in similarities.items() if name.endswith(f"_{suffix}")]
            if len(members) > 1:
                similarities[f"ensemble_{suffix}"] = scoring.ensemble_similarities(members)
        scores = {name: scoring.scores_of(sets, each) for name, each in similarities.items()}
        for kind, (_, encoder) in best_of.items():
            encoder.export(output / _FOLDERS[kind])
        pool = _pairs(run.prepared / _PAIRS)
        with atomic_path(output / "report.md") as temporary:
            text = scoring.report(self.name, sets, missing, pool, scores, models)
            temporary.write_text(text, encoding="utf-8")
        flat = {
            f"{model}/{name}": v for model, by_set in scores.items() for name, v in by_set.items()
        }
        return run.write("scores.json", flat)

    def _kinds(self, start: Start) -> Sequence[Kind]:
        """The kinds of models that a student has."""
        return ("bi", "cross") if start.cross and not self.settings.standard else ("bi",)


def _folders(
    pretrained: Path | None,
    second: Path | None,
    language_model: Path | None,
    second_language_model: Path | None,
) -> dict[str, Path | None]:
    """The folders of the starts and the cross-encoders, by the names that `Opened.of` reads."""
    return {
        "pretrained": pretrained,
        "second": second or pretrained,
        "language_model": language_model,
        "second_language_model": second_language_model or (None if second else language_model),
    }


def _in_steps(settings: TransEncoder, steps: int | None) -> TransEncoder:
    if steps is None:
        return settings
    return dataclasses.replace(
        settings,
        to_cross=dataclasses.replace(settings.to_cross, steps=steps),
        to_bi=dataclasses.replace(settings.to_bi, steps=steps),
    )


def _distilled_models(output: Path) -> list[DistilledModel]:
    path = output / _MODELS
    if not path.exists():
        raise FileNotFoundError(
            f"Expected {path}, which the training writes when it is done. Run the same command "
            f"with --part train --out {output}"
        )
    return [
        DistilledModel(**{**row, "weights": row["weights"] and output / row["weights"]})
        for row in read_json(path)["models"]
    ]


def _best(models: Sequence[DistilledModel], student: str, kind: Kind) -> DistilledModel:
    """The best model of one kind and student by STS-B dev; if equal, the earlier one."""
    candidates = [each for each in models if (each.student, each.kind) == (student, kind)]
    return max(candidates, key=lambda each: (each.spearman, -each.cycle))


def _pairs(path: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(first, second) for first, second in rows]
