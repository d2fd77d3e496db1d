"""Simulated crossed data for tests of mixed models, and their dense design matrices."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from acceptability.stats.mixed.random_effects import RandomEffects, RandomTerm, build_random_effects, build_random_term

N = 120


def draw_columns(seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    columns = {
        "item": generator.integers(0, 15, N),
        "kind": generator.integers(0, 6, N),
        "place": generator.integers(0, 4, N),
        "x": generator.normal(size=N),
        "z": generator.normal(size=N),
    }
    slopes = generator.normal(0, 0.7, 15)[columns["item"]] * columns["x"]
    line = 0.3 + 0.8 * columns["x"] + generator.normal(0, 1, 15)[columns["item"]] + slopes
    columns["y"] = line + generator.normal(0, 0.7, N)
    columns["right"] = (generator.random(N) < expit(line)).astype(float)
    return columns


def list_structures(columns: dict[str, np.ndarray]) -> dict[str, list[RandomTerm]]:
    """Random structures of every form: intercepts, slopes, uncorrelated ones, slopes alone, several kinds of groups."""
    x, z = columns["x"], columns["z"]
    item, kind, place = (columns[name].tolist() for name in ("item", "kind", "place"))
    return {
        "intercepts": [build_random_term("item", item)],
        "slopes": [build_random_term("item", item, {"x": x})],
        "crossed": [
            build_random_term("item", item, {"x": x}),
            build_random_term("kind", kind, {"x": x, "z": z}),
            build_random_term("place", place),
        ],
        "uncorrelated": [
            build_random_term("item", item, {"x": x}, is_correlated=False),
            build_random_term("kind", kind),
            build_random_term("kind", kind, {"z": z, "x": x}, intercept=False),
        ],
    }


def build_dense_root(random: RandomEffects, theta: np.ndarray) -> np.ndarray:
    """Return Z Λ as a dense matrix, from the user's columns and their covariance."""
    parts = []
    for factor, template in zip(random.factors, random.build_templates(theta), strict=True):
        table = np.zeros((random.n, len(factor.levels), factor.effects))
        table[np.arange(random.n), factor.codes] = factor.values
        parts.append((table @ template).reshape(random.n, -1))
    return np.concatenate(parts, axis=1)


STRUCTURES = list(list_structures(draw_columns()))


def build_structure(name: str, columns: dict[str, np.ndarray]) -> RandomEffects:
    return build_random_effects(list_structures(columns)[name])
