"""All engines by turns in one run: speed, cold start, peak memory and cosine, as a table.

    pip install "use_st5[text,onnx]" "sentence-transformers[onnx,openvino]" ctranslate2 model2vec
    python -m benchmarks.engines [MODELS] [--out engines.json] [--threads 1] [--rounds 3]

MODELS are `use_dan_en`, `use_transformer_en`, `minilm` (all-MiniLM-L6-v2), `t5_base` (random
weights) or folders of models of use_st5; the default is use_dan_en, minilm and use_transformer_en.
Each engine has a process of its own. For each kind of work all engines run in turn, round after
round, so that other load on the machine affects them alike. Numbers are medians; ratios are to the
first engine of the table. Engines:

    st-torch              sentence-transformers, for minilm and t5_base
    st-onnx, st-onnx-int8, st-openvino
                          its backends, for minilm; with a T5 they would run the decoder, too
    ort, ort-int8         ONNX Runtime on the graph that torch exports, for t5_base
    ct2, ct2-int8         CTranslate2, for minilm and t5_base
    static, model2vec     StaticEmbedding, random vectors of 512 dimensions, and model2vec, for
                          use_dan_en
    hub                   `hub.load` of the SavedModel, called with a tensor of strings
    hub FOLDER            the same of another export of the model, which --beside names
    tensorflow, onnx, onnx-int8
                          `use_st5.load(MODEL, backend=…).encode`, strings in, vectors out

An engine that is not installed, or that refuses a model, is left out.

The results of a model are kept in the file of --out: after an interruption, the same command
continues. Cold start is the time from the start of the process to its first vector, with the peak
of its memory until then. The other memory is the peak over all work. The cosine is the lowest one
to the vectors of `tensorflow` on 200 sentences. If an engine takes more processor time than
--threads allows, a warning says so. The texts are made of this repository's LICENSE.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import engine_peers
from benchmarks.convert_memory import memory
from benchmarks.engine_peers import Encode

LICENSE = Path(__file__).resolve().parents[1] / "LICENSE"
WORDS = {"short": 12, "long": 100}
# Kind of text and sentences in a call; long texts in large batches take a Transformer minutes.
WORKS = [("short", 1), ("short", 32), ("short", 128), ("long", 1), ("long", 32), ("long", 128)]
ONLY_DAN = ("long", 128)
OURS = ("hub", "tensorflow", "onnx", "onnx-int8")
PEERS = {
    "minilm": ("st-torch", "st-onnx", "st-onnx-int8", "st-openvino", "ct2", "ct2-int8"),
    "t5_base": ("st-torch", "ort", "ort-int8", "ct2", "ct2-int8"),
    "use_dan_en": ("static", "model2vec"),
}
DEFAULT = ("use_dan_en", "minilm", "use_transformer_en")
# Seconds that one engine works on one kind of work in one round.
SECONDS = 0.4
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def main() -> None:
    """Measures and prints a table in Markdown; serves one engine with --serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=[*DEFAULT])
    parser.add_argument("--out", type=Path, default=Path("engines.json"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", help="another export of the model, as one more engine")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.models[0])
        return
    record = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
    machine = {"processor": processor(), "threads": arguments.threads}
    if record.get("machine", machine) != machine:
        raise SystemExit(f"{arguments.out} is of {record['machine']}: give another --out")
    record["machine"] = machine
    for model in arguments.models:
        if model not in record:
            record[model] = measured(model, arguments.threads, arguments.rounds, arguments.beside)
            arguments.out.write_text(json.dumps(record, indent=1))
    print(f"{machine['processor']}; {arguments.threads} thread(s); {time.strftime('%d %B %Y')}\n")
    for model in arguments.models:
        print("\n".join(table(model, record[model])), end="\n\n")


def measured(
    model: str, threads: int, rounds: int, beside: str | None = None
) -> dict[str, dict[str, Any]]:
    """The results of all engines that run a model, by the engine's name."""
    servers = {}
    for engine in (*PEERS.get(model, ()), *OURS, *([f"hub {beside}"] if beside else [])):
        Server(engine, model, threads).end()  # Makes the files that are made only once.
        server = Server(engine, model, threads)
        if server.ready.get("error"):
            print(f"{model}, {engine}: left out: {server.ready['error']}", file=sys.stderr)
        else:
            servers[engine] = server
    results: dict[str, dict[str, Any]] = {
        name: {"cold start": server.ready["seconds"], "cold MB": server.ready["peak"]}
        for name, server in servers.items()
    }
    for kind, batch in works(model):
        times: dict[str, list[float]] = {name: [] for name in servers}
        texts = [*itertools.islice(sentences(WORDS[kind]), 4 * batch)]
        for number in range(rounds):
            question = {"texts": texts, "batch": batch, "warm": number > 0}
            for name, server in servers.items():
                reply = server.ask(question)
                times[name] += reply["seconds"]
                if reply["cores"] > 1.1 * threads:
                    print(f"{model}, {name}: {reply['cores']:.2f} cores", file=sys.stderr)
        for name, seconds in times.items():
            results[name][f"{kind}, {batch}"] = batch / statistics.median(seconds)
    cosine_question = {"vectors": [*itertools.islice(sentences(WORDS["short"], seed=1), 200)]}
    vectors = {name: np.array(servers[name].ask(cosine_question)["vectors"]) for name in servers}
    for name, server in servers.items():
        if name in ("static", "model2vec") or "tensorflow" not in vectors:
            results[name]["cosine"] = None
        else:
            rows = [
                each / np.linalg.norm(each, axis=1, keepdims=True)
                for each in (vectors[name], vectors["tensorflow"])
            ]
            results[name]["cosine"] = float((rows[0] * rows[1]).sum(axis=1).min())
        results[name]["peak MB"] = server.ask({"peak": True})["peak"]
        server.end()
    return results


def works(model: str) -> list[tuple[str, int]]:
    """The kinds of work that a model is measured on."""
    return [each for each in WORKS if model == "use_dan_en" or each != ONLY_DAN]


def table(model: str, results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The lines of a table in Markdown: sentences per second and the ratio to the first engine."""
    columns = [f"{kind}, {batch}" for kind, batch in works(model)]
    yield f"| {model} | {' | '.join(columns)} | cold start | peak MB | lowest cosine |"
    yield "|---" * (len(columns) + 4) + "|"
    first = next(iter(results.values()), {})  # All engines may be left out.
    for name, result in results.items():
        cells = [f"{result[work]:,.0f}/s ({result[work] / first[work]:.2f})" for work in columns]
        cosine = "" if result["cosine"] is None else f"{result['cosine']:.7f}"
        cells.append(f"{result['cold start']:.2f} s, {result['cold MB']:,.0f} MB")
        yield f"| {name} | {' | '.join(cells)} | {result['peak MB']:,.0f} | {cosine} |"


def sentences(words: int, *, seed: int = 0) -> Iterator[str]:
    """Endless texts of about `words` words each, cut from the licence."""
    source, draw = LICENSE.read_text("utf-8").split(), random.Random(seed)
    while True:
        length = max(1, round(draw.gauss(words, words / 4)))
        begin = draw.randrange(len(source) - length)
        yield " ".join(source[begin : begin + length])


def processor() -> str:
    """The processor's name and the instruction sets that matter."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    flags = [flag for flag in FLAGS if flag in fields.get("flags", "").split()]
    return f"{fields.get('model name', platform.machine())} ({', '.join(flags)})"


class Server:
    """A process with one engine.

    Args:
        engine: Its name.
        model: The model that it runs.
        threads: Threads of its computations.

    Attributes:
        ready: The first answer: the seconds to the first vector, and the peak memory or an error.
    """

    def __init__(self, engine: str, model: str, threads: int) -> None:
        names = ("OMP", "OPENBLAS", "MKL", "TF_INTRAOP", "RAYON", "TF_NUM_INTEROP")
        limits = {f"{name}_NUM_THREADS": str(threads) for name in names[:3]}
        limits |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": "1"}
        limits |= {"RAYON_NUM_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "benchmarks.engines", model, "--serve", engine]
        self._start = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | limits,
        )
        self.ready = self._answer()
        self.ready["seconds"] = time.perf_counter() - self._start

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Sends a question to the engine and returns its answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended ({self._process.wait()})"}


def serve(engine: str, model: str) -> None:
    """Answers questions, a line each, until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output of libraries must not be taken for an answer.
    try:
        encode = loaded(engine, model)
        encode(["How old are you?"])
    except Exception as error:  # After any error, the engine is left out.
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}), file=out, flush=True)
        return
    print(json.dumps({"peak": memory("VmHWM") / 1e6}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(encode, json.loads(line))), file=out, flush=True)


def answer(encode: Encode, question: dict[str, Any]) -> dict[str, Any]:
    """The times of some calls, the vectors of texts, or the peak of this process in MB."""
    if "peak" in question:
        return {"peak": memory("VmHWM") / 1e6}
    if "vectors" in question:
        return {"vectors": np.asarray(encode(question["vectors"])).tolist()}
    texts, size = question["texts"], question["batch"]
    batches = itertools.cycle([texts[at : at + size] for at in range(0, len(texts), size)])
    if not question["warm"]:
        encode(next(batches))
    seconds: list[float] = []
    begin, processor_begin = time.perf_counter(), time.process_time()
    while sum(seconds) < SECONDS:
        batch = next(batches)
        start = time.perf_counter()
        encode(batch)
        seconds.append(time.perf_counter() - start)
    cores = (time.process_time() - processor_begin) / (time.perf_counter() - begin)
    return {"seconds": seconds, "cores": cores}


def loaded(engine: str, model: str) -> Encode:
    """The function of an engine that encodes."""
    if engine.startswith("hub "):
        return _hub(engine.removeprefix("hub "))
    if engine not in OURS:
        return engine_peers.loaded(engine, model)
    name = engine_peers.exported(model) if model in engine_peers.FOLDERS else model
    if engine == "hub":
        return _hub(name)
    import use_st5

    encoder = use_st5.load(name, backend=engine)
    return lambda texts: encoder.encode(texts, on_truncation="ignore")


def _hub(model: str | Path) -> Encode:
    """The encoder as the TensorFlow Hub library loads it, without use_st5."""
    import tensorflow as tf
    import tensorflow_hub as hub
    import tensorflow_text  # noqa: F401  Tokenizers of some models are its ops.

    from use_st5.hub.model_names import model_folder

    encoder = hub.load(os.fspath(model_folder(model)))
    return lambda texts: encoder(tf.constant(texts)).numpy()


if __name__ == "__main__":
    main()
