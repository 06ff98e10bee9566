"""Other libraries use exported folders, in fresh processes and from moved folders.

The processes see no use_st5 (except if the layer under test is ours), and those of USE models no
tensorflow-text either. Models that need tensorflow-text share a process, the
others too.
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

# Both scripts begin with a preamble, and call `consumed` for each folder.
HUB = """
import json, sys
import numpy as np, tensorflow as tf, tensorflow_hub as hub, tf_keras
folders, texts = json.loads(sys.argv[1]), tf.constant(json.loads(sys.argv[2]))

def consumed(folder):
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
    frozen = hub.KerasLayer(folder)
    return model, {
        "plain": plain.tolist(), "second": second.tolist(), "changed": changed,
        "weights": len(encoder.trainable_weights),
        "frozen": float(np.abs(frozen(texts) - plain).max()) + len(frozen.trainable_weights),
    }

results = {}
for name, folder in folders.items():
    model, results[name] = consumed(folder)
    if len(results) == 1:  # one says it for all, at the price of both of the above
        tuned = model.predict(texts, verbose=0)
        model.save("tuned")  # the second round trip of the encoder's own SavedModel
        again = tf_keras.models.load_model("tuned").predict(texts, verbose=0)
        kept = float(np.abs(again - tuned).max())
print(json.dumps({"ours": "use_st5" in sys.modules, "kept": kept, **results}))
"""

KERAS = """
import json, sys
import keras, numpy as np, tensorflow as tf
from use_st5.layers.saved_model_layer import SavedModelLayer
folders, texts = json.loads(sys.argv[1]), tf.constant(json.loads(sys.argv[2]))

def consumed(folder):
    results = {}
    for name, make in {
        "ours": lambda: SavedModelLayer(folder, trainable=True),
        "TFSMLayer": lambda: keras.layers.TFSMLayer(folder, call_endpoint="__call__"),
    }.items():
        # TFSMLayer's variables have names that Keras's optimizers with a state refuse ("…:0").
        optimizer = keras.optimizers.Adam(0.01) if name == "ours" else keras.optimizers.SGD(1.0)
        encoder = make()
        sequential = keras.Sequential([keras.Input(shape=(), dtype="string"), encoder])
        vectors = sequential(texts).numpy()
        text = keras.Input(shape=(), dtype="string")
        functional = keras.Model(text, keras.layers.Dense(1)(encoder(text)))
        functional.compile(optimizer, "mse", jit_compile=False)
        before = [w.numpy() for w in encoder.trainable_weights]
        functional.fit(texts, np.array([0.0, 1.0, 1.0, 0.0]), verbose=0)
        changed = [bool((w.numpy() != b).any())
                   for w, b in zip(encoder.trainable_weights, before, strict=True)]
        results[name] = {
            "vectors": vectors.tolist(), "changed": changed,
            "trained": float(np.abs(encoder(texts) - vectors).max()),
        }
    served = keras.layers.TFSMLayer(folder, call_endpoint="serving_default")
    results["served"] = served(texts)["embeddings"].numpy().tolist()
    return results

print(json.dumps({name: consumed(folder) for name, folder in folders.items()}))
"""


# The first line of a process, and the models that it may read: both USEs and a BERT in
# int8, and a Sentence-T5.
GROUPS = {
    "without tensorflow-text": (
        "import sys; sys.modules['tensorflow_text'] = None",
        ("use_dan", "use_transformer"),
    ),
    "with tensorflow-text": ("import tensorflow_text", ("bert", "t5")),
}


class Consumed(NamedTuple):
    """Copies of models that were moved to another place, and what they must give there."""

    preamble: str
    folders: dict[str, str]
    expected: dict[str, np.ndarray]
    trainable: dict[str, int]


@pytest.fixture(params=[*GROUPS])
def consumed(request: pytest.FixtureRequest, tmp_path: Path) -> Consumed:
    preamble, names = GROUPS[request.param]
    found = Consumed(preamble, {}, {}, {})
    (tmp_path / "elsewhere").mkdir()
    for name in names:
        toy = request.getfixturevalue(f"toy_{name}")
        source = toy.folder if name == "t5" else toy.folders["int8"]
        copy = shutil.copytree(source, tmp_path / "first")
        folder = shutil.move(copy, tmp_path / "elsewhere" / f"a folder of {name}")
        loaded = tf.saved_model.load(str(source))
        found.folders[name] = str(folder)
        found.expected[name] = loaded(TEXTS).numpy()
        found.trainable[name] = len(loaded.trainable_variables)
    return found


def results_of(code: str, consumed: Consumed, fresh_python: Callable[..., str]) -> dict[str, Any]:
    arguments = (json.dumps(consumed.folders), json.dumps(TEXTS))
    output = fresh_python("-c", f"{consumed.preamble}\n{code}", *arguments, timeout=900)
    return json.loads(output.splitlines()[-1])


@pytest.mark.end_to_end
@pytest.mark.process
def test_hub_load_and_hub_keras_layer(fresh_python: Callable[..., str], consumed: Consumed) -> None:
    results = results_of(HUB, consumed, fresh_python)
    assert not results.pop("ours")
    assert results.pop("kept") < 1e-6
    assert [*results] == [*consumed.folders]
    for name, seen in results.items():
        expected = consumed.expected[name]
        np.testing.assert_allclose(seen["plain"], expected, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(seen["second"], expected, atol=1e-6, err_msg=name)
        assert seen["weights"] == consumed.trainable[name] >= 4, name
        assert all(seen["changed"]), name
        assert seen["frozen"] < 1e-6, name


@pytest.mark.end_to_end
@pytest.mark.process
def test_layers_of_keras_3(fresh_python: Callable[..., str], consumed: Consumed) -> None:
    results = results_of(KERAS, consumed, fresh_python)
    assert [*results] == [*consumed.folders]
    for name, seen in results.items():
        expected = consumed.expected[name]
        for layer in ("ours", "TFSMLayer"):
            vectors, changed = seen[layer]["vectors"], seen[layer]["changed"]
            np.testing.assert_allclose(vectors, expected, atol=1e-6, err_msg=f"{name}: {layer}")
            assert changed == [True] * consumed.trainable[name], (name, layer)
            assert seen[layer]["trained"] > 1e-4, (name, layer)
        np.testing.assert_allclose(seen["served"], expected, atol=1e-6, err_msg=name)


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("name", ["use_dan", "bert"])
def test_saved_model_cli_run(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source = request.getfixturevalue(f"toy_{name}").folders["int8"]
    moved = shutil.copytree(source, tmp_path / "moved")
    expected = tf.saved_model.load(str(source))(TEXTS).numpy()
    command = [Path(sys.executable).with_name("saved_model_cli")]
    if name == "bert":
        # The plain command lacks the ops of tensorflow-text.
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
