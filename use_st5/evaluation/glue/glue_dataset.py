"""A data set of GLUE: which files hold its splits, in which layout."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.glue.table_layout import TableLayout

_ORIGIN = (
    "https://gluebenchmark.com/tasks, or `use-st5 data`, which writes this layout from TensorFlow "
    "Datasets (glue)"
)


@dataclass(frozen=True)
class GlueDataset:
    """The train and dev splits of a task; its test split has no labels.

    Attributes:
        name: GLUE's name of it, for example "SST-2".
        train: The file as GLUE publishes it, and a layout → further files that hold the same rows.
        dev: The same of the dev split. A place that is a folder stands for `parts` in it.
        layouts: Of each place.
        origin: Where to get it.
        parts: The files of a dev split that is a folder.
    """

    name: str
    train: tuple[str, ...]
    dev: tuple[str, ...]
    layouts: tuple[TableLayout, ...]
    origin: str = _ORIGIN
    parts: tuple[str, ...] = ()

    @property
    def train_source(self) -> DataSource:
        """The train split."""
        return DataSource(f"GLUE {self.name} train", self.train, self.origin)

    @property
    def dev_source(self) -> DataSource:
        """The dev split."""
        return DataSource(f"GLUE {self.name} dev", self.dev, self.origin)

    def read_train(self, data: DataFolder) -> LabelledTexts:
        """The train split of a data folder.

        Raises:
            MissingDataError: It is not there.
            ValueError: A file is not in its layout.
        """
        return self._read(data, self.train_source)

    def read_dev(self, data: DataFolder) -> LabelledTexts:
        """The dev split; see `read_train`."""
        return self._read(data, self.dev_source)

    def _read(self, data: DataFolder, source: DataSource) -> LabelledTexts:
        path = data.find(source)
        layouts = zip(source.places, self.layouts, strict=True)
        layout = next(layout for place, layout in layouts if path.match(place))
        if path.is_dir():
            return layout.read(*(path / part for part in self.parts))
        return layout.read(path)
