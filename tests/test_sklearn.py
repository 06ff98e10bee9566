"""`SentenceVectors` under scikit-learn's own checks, in a pipeline and in a grid search."""

from __future__ import annotations

import copy
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")

import joblib
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import use_st5
from use_st5.encode.similarity import unit_rows
from use_st5.hub.model_names import bundled_folder
from use_st5.sklearn import SentenceVectors

TEXTS = ["very good", "quite bad", "good indeed", "bad again", "so good", "too bad"] * 2
LABELS = [1, 0] * 6


# If the tags say that the input is text, `check_estimator` stops after the first of these checks.
# All its other checks pass arrays of numbers to the estimator.
WITHOUT_NUMBERS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator() -> None:
    estimator_checks.check_estimator(SentenceVectors())


@pytest.mark.parametrize("check", WITHOUT_NUMBERS)
def test_the_checks_without_numbers(check: str) -> None:
    getattr(estimator_checks, check)("SentenceVectors", SentenceVectors())


def test_vectors_are_the_encoders() -> None:
    expected = use_st5.load("use_dan_en").encode(TEXTS)
    np.testing.assert_array_equal(SentenceVectors().transform(TEXTS), expected)
    np.testing.assert_array_equal(SentenceVectors().fit_transform(np.array(TEXTS)), expected)
    prompted = SentenceVectors(prompt="so ", batch_size=2).transform(["good"])
    np.testing.assert_allclose(prompted[0], expected[4], atol=1e-6)
    unit = SentenceVectors(normalize=True).transform(TEXTS)
    np.testing.assert_allclose(unit, unit_rows(expected), atol=1e-6)
    with pytest.raises(TypeError, match=r"received one: write \['very good'\]"):
        SentenceVectors().transform("very good")
    with pytest.raises(ValueError, match="the first at index 0"):
        SentenceVectors(on_empty="raise").transform([" "])


def test_columns_have_names_and_rows_keep_theirs() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    texts = pandas.Series(TEXTS[:2], index=["x", "y"])
    frame = SentenceVectors().set_output(transform="pandas").fit_transform(texts)
    assert frame.shape == (2, 512)
    assert list(frame.index) == ["x", "y"]
    assert list(frame.columns[:2]) == ["sentencevectors0", "sentencevectors1"]
    assert list(frame.columns) == list(SentenceVectors().get_feature_names_out())


def test_pickles_hold_no_weights(tmp_path: Path) -> None:
    pipeline = make_pipeline(SentenceVectors(), LogisticRegression()).fit(TEXTS, LABELS)
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    assert (tmp_path / "pipeline.joblib").stat().st_size < 20_000
    again = joblib.load(tmp_path / "pipeline.joblib")
    assert again.predict(TEXTS).tolist() == LABELS
    assert sys.getsizeof(pickle.dumps(SentenceVectors(use_st5.load("use_dan_en")))) < 2_000


def test_another_model_than_fitted_on_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(bundled_folder("use_dan_en"), tmp_path / "model")
    fitted = SentenceVectors(folder).fit(TEXTS)
    fitted.transform(TEXTS[:1])
    shutil.rmtree(folder)
    shutil.copytree(bundled_folder("use_transformer_en"), folder)
    with pytest.raises(ValueError, match="fitted to the model"):
        copy.deepcopy(fitted).transform(TEXTS[:1])
