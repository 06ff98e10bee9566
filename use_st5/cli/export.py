"""`use-st5 export`: checks and copies a model's folder, in a precision, or in another format."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from use_st5.cli.files import sole_file, sole_model
from use_st5.cli.models import Backend, OverwriteOption, find_model, start_keras, start_tensorflow
from use_st5.cli.output import manual, say, waiting
from use_st5.export.folders import write_archive
from use_st5.hub.model_manifest import SAVED_MODEL_FILE, ModelManifest, copy_model
from use_st5.io.files import as_written, atomic_path, exists, names_in, remote_path

HELP = manual(
    """Write a model to a folder or an archive, for hub.load, Keras and TensorFlow Serving.

    MODEL is a bundled model's name, an exported model's folder, a name of a hub (hf://ORG/NAME), or
    the output folder of a training run that contains one exported model. Its files are compared
    with their sha256 first.

    --precision int8 stores the embedding table in a quarter of the space. For a BERT, it also
    stores the kernels as int8, which makes a single sentence slower. The vectors change a little.
    With float32 all embeddings can be fine-tuned. The default is the precision of the model.

    --archive writes one file. hub.load takes its URL if a web server offers it.

    --web writes a page that compares and searches sentences in a browser, with a USE-DAN. It works
    from the disk and without network. To keep it small, the weights of rare words are rounded more,
    and the vectors change. --precision int8 keeps the vectors of the model, at twice the size.

    --onnx and --litert write a folder for ONNX Runtime or LiteRT: network, tokenizer, and a reader
    in Python, for a USE-DAN or USE Transformer also in JavaScript (with --litert only for a fixed
    length). It needs neither TensorFlow nor use_st5. --length gives the network a fixed shape, as
    some accelerators and LiteRT.js need it; longer texts are cut. --precision int8 also computes
    matrix products in int8.

    MODEL, --to and --archive may be on gs:// or any other file system of TensorFlow. A folder with
    other files than a model or page is never replaced.""",
    "use-st5 export use_dan_en --to my_model --precision float32",
    "use-st5 export runs/use_dan_en --to saved_models/use_dan_en --precision int8",
    "use-st5 export use_dan_en --archive use_dan_en.tar.gz",
    "use-st5 export use_dan_en --web my_page",
    "use-st5 export use_dan_en --litert my_model --length 64",
)


Precision = Literal["float32", "int8", "small"]


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name or a folder.")],
    to: Annotated[Path | None, typer.Option("--to", help="The folder to write.")] = None,
    archive: Annotated[Path | None, typer.Option(help="The .tar.gz to write.")] = None,
    web: Annotated[Path | None, typer.Option(help="The folder of a page for browsers.")] = None,
    onnx: Annotated[Path | None, typer.Option(help="The folder for ONNX Runtime.")] = None,
    litert: Annotated[Path | None, typer.Option(help="The folder for LiteRT.")] = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of --onnx and --litert. Default: any number.")
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Default: the model's; of a page, small (pages only)."),
    ] = None,
    backend: Annotated[
        Backend, typer.Option(help="onnx: also write what runs without TensorFlow.")
    ] = "tensorflow",
    overwrite: OverwriteOption = False,
) -> None:
    """Writes a model to a folder, an archive, a page or a folder for a runtime."""
    runtimes = {name: path for name, path in (("onnx", onnx), ("litert", litert)) if path}
    targets = [path for path in (to, archive, web, *runtimes.values()) if path is not None]
    _check_options(targets, archive, web, precision, with_length=length is None or bool(runtimes))
    source = _find(model)
    own = source.resolve()
    if any(not remote_path(path) and path.resolve().is_relative_to(own) for path in targets):
        raise typer.BadParameter("expected a folder outside of the model's own folder.")
    from use_st5.export.text_model import check_text_model, text_model_manifest
    from use_st5.export.web import check_page, dan_manifest, to_web

    if web is not None:
        dan_manifest(source)
    if runtimes:
        text_model_manifest(source, length)
    with ExitStack() as stack:
        claims: tuple[Any, ...] = (
            to and sole_model(to, overwrite=overwrite),
            archive and sole_file(archive, overwrite=overwrite, remote=True),
            web and sole_model(web, overwrite=overwrite, remote=False, check=check_page),
            *(
                sole_model(path, overwrite=overwrite, remote=False, check=check_text_model)
                for path in runtimes.values()
            ),
        )
        for claim in filter(None, claims):
            stack.enter_context(claim)
        manifest = ModelManifest.read(source)
        if manifest is not None:
            manifest.check_contents(source)
        label = precision or (manifest.precision if manifest else "unknown")
        with_graph = backend != "tensorflow"
        if to is not None:
            written = _write(source, to, precision, onnx=with_graph)
            say(f"{as_written(to)}: {written / 1e6:.1f} MB, precision {label}")
        if archive is not None:
            with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
                _write(source, Path(scratch, "model"), precision, onnx=with_graph)
                with waiting(f"packing {archive.name}"):
                    written = write_archive(Path(scratch, "model"), archive)
            say(f"{as_written(archive)}: {written / 1e6:.1f} MB; hub.load takes its URL")
        if web is not None:
            coding: Literal["int8", "small"] = "int8" if precision == "int8" else "small"
            with waiting("writing the page"):
                to_web(source, web, precision=coding)
            size = f"{_size(web) / 1e6:.1f} MB, precision {coding}"
            say(f"{web}: {size}; open {web / 'index.html'} in a browser")
        for runtime, folder in runtimes.items():
            _write_runtime(source, runtime, folder, precision, length)
            size = f"{_size(folder) / 1e6:.1f} MB, precision {label}"
            say(f"{folder}: {size}; {folder / 'reader.py'} runs it")


def _check_options(
    targets: list[Path],
    archive: Path | None,
    web: Path | None,
    precision: Precision | None,
    *,
    with_length: bool,
) -> None:
    """Refuses, before any work, options that cannot be combined."""
    if not targets:
        raise typer.BadParameter("expected --to, --archive, --web, --onnx or --litert.")
    if archive is not None and not archive.name.endswith((".tar.gz", ".tgz")):
        raise typer.BadParameter(f"--archive expects a name with .tar.gz or .tgz, not {archive}.")
    if (precision == "small" and targets != [web]) or (precision == "float32" and web):
        raise typer.BadParameter("--precision small is for --web, float32 for all others.")
    if not with_length:
        raise typer.BadParameter("--length needs --onnx or --litert.")


def _write(source: Path, to: Path, precision: Precision | None, *, onnx: bool) -> int:
    """Writes the folder of a model; returns its size in bytes."""
    manifest = ModelManifest.read(source)
    if precision is None or (manifest is not None and precision == manifest.precision):
        with atomic_path(to) as temporary:
            copy_model(source, temporary, manifest)
            if onnx:
                from use_st5.engines.onnx_model import add_onnx_model
                from use_st5.models.engines import family_engine

                with waiting("writing the ONNX graph"):
                    add_onnx_model(temporary, ModelManifest.read(temporary), family_engine)
            return _size(temporary)
    if onnx:
        with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
            _write(source, Path(scratch, "model"), precision, onnx=False)
            return _write(Path(scratch, "model"), to, None, onnx=True)
    start_keras("export --precision")
    from use_st5.trainable_encoder import TrainableEncoder

    with waiting(f"storing in {precision}"):
        return TrainableEncoder.load(source).export(to, precision=precision).size_bytes


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _write_runtime(
    source: Path, runtime: str, folder: Path, precision: Precision | None, length: int | None
) -> None:
    """Writes the folder of `--onnx` or `--litert`."""
    start_tensorflow()
    from use_st5.export.text_model import to_text_model

    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        if precision is not None:
            stored = Path(scratch, "model")
            _write(source, stored, precision, onnx=False)
            source = stored
        with waiting(f"writing {folder}"):
            to_text_model(
                source,
                folder,
                runtime="onnx" if runtime == "onnx" else "litert",
                length=length,
                int8=precision == "int8",
            )


def _find(model: str) -> Path:
    """The folder of an exported model, which may be inside a training run's folder."""
    folder = Path(model).expanduser()
    if remote_path(model):
        start_tensorflow()
    names = names_in(folder)
    if SAVED_MODEL_FILE in names or not (names or folder.is_dir()):
        return find_model(model)
    inside = [name for name in sorted(names) if exists(folder / name / SAVED_MODEL_FILE)]
    if len(inside) == 1:
        return find_model(folder / inside[0])
    raise FileNotFoundError(f"{as_written(folder)}: expected one exported model, found {inside}")
