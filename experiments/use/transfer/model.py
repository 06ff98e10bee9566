"""Classes of texts from their sentence vectors, their words, or both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_dan import WordDAN
from use_st5.layers import SavedModelLayer


@keras.saving.register_keras_serializable(package="use_st5")
class TransferModel(keras.Model):
    """A task network on a sentence encoder, on a word-level model, or on both side by side.

    USE paper (arXiv 1803.11175): the encoder's output is "provided to a task specific DNN"; the
    baselines are a CNN and a DAN on words; the combined models "concatenat[e] their
    representations prior to feeding the combined representation to the transfer task
    classification layers".

    It is trained like any Keras model, with strings. If the sentence encoder is frozen, its vectors
    need not be computed in each epoch, nor for each of several models: `features` computes the
    inputs of `head`, and training the head trains the model.

    Args:
        num_classes: Width of the output.
        sentence: The sentence encoder; `SavedModelLayer("use_dan_en")` is frozen,
            `SavedModelLayer("use_dan_en", trainable=True)` is trained with the model.
        words: A word-level model.
        hidden_units: Width of each dense layer between the representation and the output.
        dropout: Share of the representation, and of each dense layer's output, left out in
            training.

    Call arguments:
        text: string `[batch]`.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, num_classes]`: probabilities.

    Attributes:
        head: A `keras.Model` from features to probabilities. Its weights are the model's own.

    Raises:
        ValueError: Neither `sentence` nor `words` is given, or there are fewer than two classes.

    Example:
        >>> model = TransferModel(2, sentence=SavedModelLayer("use_dan_en"), hidden_units=(128,))
        >>> features = model.features(texts)
        >>> model.head.compile("adam", "sparse_categorical_crossentropy")
        >>> model.head.fit(features, labels, epochs=10)
        >>> model.save("sentiment.keras")
        >>> keras.models.load_model("sentiment.keras").predict(tf.constant(["How nice!"]))
    """

    def __init__(
        self,
        num_classes: int,
        *,
        sentence: SavedModelLayer | None = None,
        words: WordCNN | WordDAN | None = None,
        hidden_units: Sequence[int] = (),
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if sentence is None and words is None:
            raise ValueError("Expected a sentence encoder, a word-level model or both: none given.")
        if num_classes < 2:
            raise ValueError(f"num_classes: expected at least 2, received {num_classes}.")
        self.num_classes = num_classes
        self.sentence = sentence
        self.words = words
        self.hidden_units = tuple(hidden_units)
        self.dropout = dropout
        self.head = self._make_head()
        self.built = True

    def call(self, text: Any, training: bool = False) -> Any:
        text = tf.convert_to_tensor(text)
        inputs = {}
        if self.sentence is not None:
            inputs["sentence"] = self.sentence(text, training=training)
        if self.words is not None:
            inputs["words"] = self.words.embedding.ids(text)
        return self.head(inputs, training=training)

    def features(self, texts: Iterable[str], *, batch_size: int = 512) -> dict[str, np.ndarray]:
        """Computes the inputs of `head`.

        Args:
            texts: Any number of strings.
            batch_size: The most texts that the sentence encoder gets at a time.

        Returns:
            "sentence", float32 `[texts, dimension]`, if there is a sentence encoder; "words", int32
            `[texts, length]`, 0 = padding, if there is a word-level model.
        """
        if self.sentence is not None and self.sentence.trainable:
            raise ValueError(
                "The sentence encoder is trained along, so that its vectors do not stay. Fit the "
                "model itself with strings, or use SavedModelLayer(..., trainable=False)."
            )
        texts = [*texts]
        features = {}
        if self.sentence is not None:
            starts = range(0, len(texts), batch_size)
            batches = (tf.constant(texts[start : start + batch_size]) for start in starts)
            features["sentence"] = np.concatenate([self.sentence(each) for each in batches])
        if self.words is not None:
            features["words"] = self.words.embedding.ids(tf.constant(texts, tf.string)).numpy()
        return features

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "sentence": keras.saving.serialize_keras_object(self.sentence),
            "words": keras.saving.serialize_keras_object(self.words),
            "hidden_units": [*self.hidden_units],
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> TransferModel:
        for part in ("sentence", "words"):
            config[part] = keras.saving.deserialize_keras_object(config[part])
        return cls(**config)

    def _make_head(self) -> keras.Model:
        inputs, parts = {}, []
        if self.sentence is not None:
            inputs["sentence"] = keras.Input((self.sentence.dimension,), name="sentence")
            parts.append(inputs["sentence"])
        if self.words is not None:
            inputs["words"] = keras.Input((None,), dtype="int32", name="words")
            parts.append(self.words(inputs["words"]))
        x = keras.layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
        x = keras.layers.Dropout(self.dropout)(x)
        for units in self.hidden_units:
            x = keras.layers.Dense(units, activation="relu")(x)
            x = keras.layers.Dropout(self.dropout)(x)
        x = keras.layers.Dense(self.num_classes, activation="softmax", name="classes")(x)
        return keras.Model(inputs, x, name="head")
