"""The names that packages offer: they exist, are imported lazily, and have docstrings."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

import use_st5
from tools.site import public_packages

PACKAGES = [importlib.import_module(name) for name in public_packages()]
OFFERED = [(package, name) for package in PACKAGES for name in package.__all__]


@pytest.mark.parametrize(
    ("package", "name"), OFFERED, ids=[f"{package.__name__}.{name}" for package, name in OFFERED]
)
def test_name_is_there_and_says_what_it_is(package: ModuleType, name: str) -> None:
    if package.__name__ == "use_st5.serve":
        pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    value = getattr(package, name)
    assert getattr(package, name) is value
    assert name in dir(package)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert value.__doc__
    # If a module had the same name, importing it would replace the value.
    assert importlib.util.find_spec(f"{package.__name__}.{name}") is None


def test_root_offers_the_faces() -> None:
    assert {"SentenceEncoder", "TrainableEncoder", "load"} <= set(use_st5.__all__)


def test_rooms_offer_what_one_builds_with() -> None:
    from use_st5.losses import ContrastiveLoss
    from use_st5.models import USEDAN, SentenceT5, USETransformer
    from use_st5.training import Trainer

    made = (ContrastiveLoss, USEDAN, SentenceT5, USETransformer, Trainer)
    assert all(inspect.isclass(each) for each in made)


@pytest.mark.process
def test_a_package_imports_nothing_before_a_name_is_used(
    fresh_python: Callable[..., str],
) -> None:
    # `use_st5.layers` imports its layers at once: Keras finds those of a `.keras` file only then.
    names = [package.__name__ for package in PACKAGES if package.__name__ != "use_st5.layers"]
    code = f"""
import importlib, sys
for name in {names}:
    importlib.import_module(name)
print({{name.partition(".")[0] for name in sys.modules}})
"""
    loaded = ast.literal_eval(fresh_python("-c", code))
    assert not loaded & {"tensorflow", "keras", "numpy", "scipy"}
