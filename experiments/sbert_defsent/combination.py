"""Average and Concat: one encoder that combines an SBERT and a DefSent."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.run import Scores, write_json
from experiments.sbert_defsent.ensemble import Ensemble, Mode
from experiments.stsb_dev import stsb_development
from use_st5 import TrainableEncoder
from use_st5.io import sole_writer

if TYPE_CHECKING:
    from experiments.sbert_defsent.train import Training


@dataclasses.dataclass(frozen=True, kw_only=True)
class Combination:
    """One encoder that combines two encoders, which are trained separately.

    Attributes:
        name: The name of the exported encoder.
        mode: How the two vectors are combined, as in `Ensemble`.
        sbert: One of the two trainings.
        defsent: The other.
    """

    name: str
    mode: Mode
    sbert: Training
    defsent: Training

    def run(
        self,
        data: Path,
        output: Path,
        *,
        pretrained: Path | None = None,
        prepared: Path | None = None,
        sbert: Path | None = None,
        defsent: Path | None = None,
        **options: Any,
    ) -> Scores:
        """Trains the encoders that do not exist yet, combines them, exports and scores.

        Args:
            data: As in `Run`.
            output: Folder of the encoder, and of trainings that are given no folder of their own.
            pretrained: The checkpoint that both start from.
            prepared: Folder of arrays; `prepared` in `output` by default.
            sbert: Output folder of a run of the first training; by default `sbert` in `output`.
            defsent: Output folder of a run of the second; by default `defsent` in `output`.
            **options: Those of both trainings, as in `Run`, on one machine.
        """
        with sole_writer(output, inside=True):
            encoders = []
            for training, folder in (
                (self.sbert, sbert or output / "sbert"),
                (self.defsent, defsent or output / "defsent"),
            ):
                if not (folder / "scores.json").exists():
                    training.run(
                        data,
                        folder,
                        pretrained=pretrained,
                        prepared=prepared or output / "prepared",
                        **options,
                    )
                encoders.append(TrainableEncoder.load(folder / "model"))
            combined = TrainableEncoder(
                Ensemble([each.model for each in encoders], mode=self.mode),
                encoders[0].tokenizer,
                name=self.name,
                max_length=encoders[0].max_length,
                metadata={**encoders[0].metadata, "combination": self.mode},
            )
            combined.model.build()
            combined.export(output / "model")
            scores = stsb_development(data)(combined.encode)
            write_json(output / "scores.json", scores)
        return scores
