"""The encoder, as the real mteb, BERTopic, KeyBERT and LangChain call it."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import numpy as np
import pytest

import use_st5
from use_st5.encode.encoder import SentenceEncoder
from use_st5.integrations import bertopic_backend, keybert_backend, langchain_embeddings

REASON = "the extra `integrations` is not installed"
TEXTS = ["The cat sleeps.", "A train to Basel."]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return use_st5.load("use_dan_en")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_mteb_takes_the_encoder_in_its_own_wrapper(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    mteb = pytest.importorskip("mteb", reason=REASON)
    models = pytest.importorskip("mteb.models")
    wrapper = models.SentenceTransformerEncoderWrapper(encoder)
    results = mteb.evaluate(wrapper, [toy_sts()], cache=None, encode_kwargs={"batch_size": 2})
    scores = results[0].scores["test"][0]
    first, second = (encoder.encode(side) for side in (FIRST, SECOND))
    assert scores["cosine_spearman"] == pytest.approx(spearman((first * second).sum(1)), abs=1e-6)
    assert results.model_name == "use_st5/use_dan_en"
    assert results.model_revision == encoder.identity
    assert wrapper.mteb_model_meta.embed_dim == 512


FIRST = ["The cat sat down.", "It rains.", "Good food.", "Hello you!", "My phone is dead."]
SECOND = ["The cat sits.", "Rain is falling.", "A fast car.", "See Rome.", "The phone died."]
GOLD = [5.0, 3.0, 0.5, 1.0, 4.0]


def spearman(similarities: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return spearmanr(similarities, GOLD).statistic


def toy_sts() -> Any:
    """A task of five pairs that is built here, without a download."""
    from datasets import Dataset
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    unknown = (
        "reference date domains task_subtypes license annotations_creators dialect sample_creation"
    )

    class ToySTS(AbsTaskSTS):
        metadata = TaskMetadata(
            name="ToySTS",
            description="Five pairs.",
            dataset={"path": "none", "revision": "1"},
            type="STS",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
            bibtex_citation="",
            **dict.fromkeys(unknown.split()),
        )
        min_score, max_score = 0, 5

        def load_data(self, **_options: Any) -> None:
            pairs = {"sentence1": FIRST, "sentence2": SECOND, "score": GOLD}
            self.dataset, self.data_loaded = {"test": Dataset.from_dict(pairs)}, True

    return ToySTS()


def test_bertopic_finds_topics(encoder: SentenceEncoder) -> None:
    bertopic = pytest.importorskip("bertopic", reason=REASON)
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    animals = [f"The {animal} eats and sleeps." for animal in ("cat", "dog", "horse", "cow")]
    travel = [f"The {thing} leaves the station late." for thing in ("train", "bus", "tram", "taxi")]
    model = bertopic.BERTopic(
        embedding_model=bertopic_backend(encoder),
        umap_model=PCA(2),
        hdbscan_model=KMeans(2, random_state=0, n_init=1),
    )
    topics, _ = model.fit_transform(animals + travel)
    assert len(set(topics[:4])) == len(set(topics[4:])) == 1
    assert topics[0] != topics[4]
    assert model.transform(["The goat eats and sleeps."])[0] == [topics[0]]
    embedded = model.embedding_model.embed_documents(TEXTS)
    np.testing.assert_array_equal(embedded, encoder.encode(TEXTS))


def test_keybert_finds_words(encoder: SentenceEncoder) -> None:
    keybert = pytest.importorskip("keybert", reason=REASON)
    words = keybert.KeyBERT(keybert_backend(encoder)).extract_keywords(TEXTS[1], top_n=2)
    expected = encoder.similarity([TEXTS[1]], ["train", "basel"])[0]
    assert dict(words) == pytest.approx(
        dict(zip(["train", "basel"], expected, strict=True)), abs=1e-3
    )


def test_langchain_finds_documents(encoder: SentenceEncoder) -> None:
    embeddings = pytest.importorskip("langchain_core.embeddings", reason=REASON)
    from langchain_core.vectorstores import InMemoryVectorStore

    ours = langchain_embeddings(encoder)
    assert isinstance(ours, embeddings.Embeddings)
    assert ours.embed_documents(TEXTS) == encoder.encode(TEXTS).tolist()
    assert asyncio.run(ours.aembed_query(TEXTS[0])) == encoder.encode(TEXTS[0]).tolist()
    store = InMemoryVectorStore.from_texts(TEXTS, ours)
    assert store.similarity_search("A kitten naps.", k=1)[0].page_content == TEXTS[0]


def test_langchain_gets_the_prompts_of_queries_and_documents(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_core.embeddings", reason=REASON)
    prompts = {"query": "question ", "document": "text "}
    monkeypatch.setattr(SentenceEncoder, "prompts", prompts)
    ours = langchain_embeddings(encoder)
    documents = encoder.encode([f"text {text}" for text in TEXTS]).tolist()
    assert ours.embed_documents(TEXTS) == documents
    assert ours.embed_query(TEXTS[0]) == encoder.encode(f"question {TEXTS[0]}").tolist()


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("bertopic", bertopic_backend),
        ("keybert", keybert_backend),
        ("langchain_core", langchain_embeddings),
    ],
)
def test_pickles_hold_no_weights(encoder: SentenceEncoder, package: str, make: Any) -> None:
    pytest.importorskip(package, reason=REASON)
    pickled = pickle.dumps(make(encoder))
    assert len(pickled) < 500
    assert type(pickle.loads(pickled)).__mro__[1] is type(make(encoder)).__mro__[1]
