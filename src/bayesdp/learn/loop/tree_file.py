"""A tree of arrays as an NPZ file, its leaves named by their place: ['w'], [0].mean, …; `value` for a bare array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp import errors, storage

Tree = Any
"""Dicts, lists, tuples or other JAX trees with arrays as leaves."""

Form = str | dict[str, Any]
LEAF = "array"


def write_tree(path: Path, tree: Tree) -> None:
    """The leaves of a tree."""
    storage.write_arrays(path, {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()})


def read_tree(path: Path, like: Tree) -> Tree:
    """The tree that `write_tree` wrote, in the form of `like`; other names or shapes get `InputError`."""
    stored, names = storage.read_arrays(path), list(named_leaves(like))
    if set(names) != set(stored):
        raise errors.unfit(path.name, "to hold the parameters of this model", f"others: {sorted(stored)[:4]}")
    return fill(like, [stored[name] for name in names])


def fill(like: Tree, leaves: list[npt.NDArray[Any]]) -> Tree:
    """A tree of the form of `like` with other leaves of the same shapes."""
    own, structure = jax.tree.flatten(like)
    if [np.shape(leaf) for leaf in own] != [np.shape(leaf) for leaf in leaves]:
        raise errors.unfit("a checkpoint", "of the same model and optimiser", "arrays of other shapes")
    return jax.tree.unflatten(structure, [jnp.asarray(new, old.dtype) for old, new in zip(own, leaves, strict=True)])


def form_of(tree: Tree) -> Form | None:
    """Which dicts, lists and tuples a tree is made of, as plain JSON; None where it has nodes of another kind."""
    if tree is None:
        return "none"
    if type(tree) is dict:
        parts = {name: form_of(part) for name, part in tree.items()}
        return {"dict": parts} if all(isinstance(name, str) for name in tree) and all(parts.values()) else None
    if type(tree) in (list, tuple):
        several = [form_of(part) for part in tree]
        return {type(tree).__name__: several} if all(several) else None
    return LEAF if jax.tree_util.all_leaves([tree]) else None


def read_formed(path: Path, form: Form) -> Tree:
    """The tree that `write_tree` wrote, given its `form_of`. Bad input: another form than that of the file."""
    stored = storage.read_arrays(path)
    blank = _blank(form)
    names = list(named_leaves(blank))
    if set(names) != set(stored):
        raise errors.unfit(repr(str(path)), "to hold the arrays that its folder names", "others", "It is damaged.")
    return jax.tree.unflatten(jax.tree.structure(blank), [jnp.asarray(stored[name]) for name in names])


def _blank(form: object) -> Tree:
    """A tree of this form with a 0 for each array. Bad input: no form."""
    match form:
        case "none":
            return None
        case "array":
            return 0
        case {"dict": dict(parts)}:
            return {name: _blank(part) for name, part in parts.items()}
        case {"list": list(several)}:
            return [_blank(part) for part in several]
        case {"tuple": list(several)}:
            return tuple(_blank(part) for part in several)
    raise errors.refuse("form", form, "to be a tree of dict, list, tuple and array", "The file is damaged.")


def named_leaves(tree: Tree) -> dict[str, jax.Array]:
    """Leaves by their place, in the order of the tree."""
    return {jax.tree_util.keystr(place) or "value": leaf for place, leaf in jax.tree_util.tree_leaves_with_path(tree)}
