"""What others do with an exported folder, each in a fresh process, from a moved folder.

The processes see no use_st5 (except where the layer under test is ours), and a USE model's see no
tensorflow-text either.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

TEXTS = ["the cat sat", "how old are you", "", "what is a dog"]

HUB = """
import json, sys
import numpy as np, tensorflow as tf, tensorflow_hub as hub, tf_keras
folder, texts = sys.argv[1], tf.constant(json.loads(sys.argv[2]))

loaded = hub.load(folder)
plain = loaded(texts).numpy()
tf.saved_model.save(loaded, "second", signatures=loaded.signatures)
second = hub.load("second")(texts).numpy()

encoder = hub.KerasLayer(folder, trainable=True, input_shape=[], dtype=tf.string)
model = tf_keras.Sequential([encoder, tf_keras.layers.Dense(1)])
model.compile(tf_keras.optimizers.Adam(0.01), "mse")
variables = encoder.resolved_object.trainable_variables
before = [v.numpy() for v in variables]
model.fit(texts, np.array([0.0, 1.0, 1.0, 0.0]), epochs=1, verbose=0)
changed = [bool((v.numpy() != old).any()) for v, old in zip(variables, before)]
tuned = model.predict(texts, verbose=0)
model.save("tuned")  # the second round trip of the encoder's own SavedModel
again = tf_keras.models.load_model("tuned").predict(texts, verbose=0)
frozen = hub.KerasLayer(folder)
print(json.dumps({
    "plain": plain.tolist(), "second": second.tolist(), "changed": changed,
    "kept": float(np.abs(again - tuned).max()), "weights": len(encoder.trainable_weights),
    "frozen": float(np.abs(frozen(texts) - plain).max()) + len(frozen.trainable_weights),
    "ours": "use_st5" in sys.modules,
}))
"""

KERAS = """
import json, sys
import keras, numpy as np, tensorflow as tf
from use_st5.layers.saved_model_layer import SavedModelLayer
folder, texts = sys.argv[1], tf.constant(json.loads(sys.argv[2]))

results = {}
for name, make in {
    "ours": lambda: SavedModelLayer(folder, trainable=True),
    "TFSMLayer": lambda: keras.layers.TFSMLayer(folder, call_endpoint="__call__"),
}.items():
    # TFSMLayer's variables have names that Keras's optimizers with a state refuse ("…:0").
    optimizer = keras.optimizers.Adam(0.01) if name == "ours" else keras.optimizers.SGD(1.0)
    sequential = keras.Sequential([keras.Input(shape=(), dtype="string"), make()])
    text = keras.Input(shape=(), dtype="string")
    encoder = make()
    functional = keras.Model(text, keras.layers.Dense(1)(encoder(text)))
    functional.compile(optimizer, "mse", jit_compile=False)
    before = [w.numpy() for w in encoder.trainable_weights]
    functional.fit(texts, np.array([0.0, 1.0, 1.0, 0.0]), verbose=0)
    changed = [bool((w.numpy() != b).any())
               for w, b in zip(encoder.trainable_weights, before, strict=True)]
    results[name] = {
        "vectors": sequential(texts).numpy().tolist(), "changed": changed,
        "trained": float(np.abs(encoder(texts) - sequential(texts)).max()),
    }
served = keras.layers.TFSMLayer(folder, call_endpoint="serving_default")
results["served"] = served(texts)["embeddings"].numpy().tolist()
print(json.dumps(results))
"""


# What a process of each family begins with.
PREAMBLES = {
    "use_dan": "import sys; sys.modules['tensorflow_text'] = None",
    "use_transformer": "import sys; sys.modules['tensorflow_text'] = None",
    "ensemble": "import sys; sys.modules['tensorflow_text'] = None",
    "bert": "import tensorflow_text",
    "sentence_t5": "import tensorflow_text",
}


class Consumed(NamedTuple):
    """A model at a place where it was not written, the only copy there."""

    folder: Path
    preamble: str
    expected: np.ndarray
    trainable: list[str]


@pytest.fixture(params=[*PREAMBLES])
def consumed(request: pytest.FixtureRequest, tmp_path: Path) -> Consumed:
    """Both USEs, an ensemble and a BERT in int8, and a Sentence-T5."""
    if request.param == "sentence_t5":
        source = request.getfixturevalue("toy_t5").folder
    else:
        source = request.getfixturevalue(f"toy_{request.param}").folders["int8"]
    copy = tmp_path / "first"
    shutil.copytree(source, copy)
    (tmp_path / "elsewhere").mkdir()
    folder = Path(shutil.move(copy, tmp_path / "elsewhere" / "a folder"))
    loaded = tf.saved_model.load(str(source))
    trainable = [variable.name for variable in loaded.trainable_variables]
    return Consumed(folder, PREAMBLES[request.param], loaded(TEXTS).numpy(), trainable)


@pytest.mark.process
def test_hub_load_and_hub_keras_layer(fresh_python: Callable[..., str], consumed: Consumed) -> None:
    code = f"{consumed.preamble}\n{HUB}"
    output = fresh_python("-c", code, consumed.folder, json.dumps(TEXTS))
    results = json.loads(output.splitlines()[-1])
    np.testing.assert_allclose(results["plain"], consumed.expected, atol=1e-6)
    np.testing.assert_allclose(results["second"], consumed.expected, atol=1e-6)
    assert results["weights"] == len(consumed.trainable) >= 4
    assert all(results["changed"])
    assert results["kept"] < 1e-6
    assert results["frozen"] < 1e-6
    assert not results["ours"]


@pytest.mark.process
def test_layers_of_keras_3(fresh_python: Callable[..., str], consumed: Consumed) -> None:
    code = f"{consumed.preamble}\n{KERAS}"
    output = fresh_python("-c", code, consumed.folder, json.dumps(TEXTS))
    results = json.loads(output.splitlines()[-1])
    for name in ("ours", "TFSMLayer"):
        np.testing.assert_allclose(results[name]["vectors"], consumed.expected, atol=1e-6)
        assert results[name]["changed"] == [True] * len(consumed.trainable)
        assert results[name]["trained"] > 1e-4
    np.testing.assert_allclose(results["served"], consumed.expected, atol=1e-6)


def test_the_int8_table_trains_its_scales(toy: Any) -> None:
    loaded = tf.saved_model.load(str(toy.folders["int8"]))
    assert "embedding_scales:0" in [variable.name for variable in loaded.trainable_variables]


@pytest.fixture
def moved(toy: Any, tmp_path: Path) -> Path:
    """A model in int8 at another place."""
    return shutil.copytree(toy.folders["int8"], tmp_path / "moved")


@pytest.fixture
def expected(toy: Any) -> np.ndarray:
    return tf.saved_model.load(str(toy.folders["int8"]))(TEXTS).numpy()


@pytest.mark.process
def test_saved_model_cli_run(toy: Any, moved: Path, expected: np.ndarray, tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("saved_model_cli")]
    if toy.vectorizer.kind == "wordpiece":
        # The command alone lacks the ops of tensorflow-text.
        tool = "from tensorflow.python.tools.saved_model_cli import main"
        command = [sys.executable, "-c", f"import tensorflow_text; {tool}; main()"]
    arguments = ["--dir", moved, "--tag_set", "serve", "--signature_def", "serving_default"]
    inputs = ["--input_exprs", f"text={TEXTS}", "--outdir", tmp_path]
    done = subprocess.run(
        [*command, "run", *map(os.fspath, [*arguments, *inputs])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "embeddings.npy"), expected, atol=1e-6)
