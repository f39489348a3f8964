"""Data sets: built in, downloaded and checked, or a table of the user's own.

`load` gives a `Dataset`, whose `public` says in words what preparing it took from the data. A `recipe` prepares
further records in the same way: `read_features` applies it to a file.
"""

from bayesdp.data.catalogue import CATALOGUE, load
from bayesdp.data.dataset import Dataset
from bayesdp.data.own import read_features
from bayesdp.data.recipe import ImageRecipe, Recipe, TableRecipe, recipe_from_dict

__all__ = [
    "CATALOGUE",
    "Dataset",
    "ImageRecipe",
    "Recipe",
    "TableRecipe",
    "load",
    "read_features",
    "recipe_from_dict",
]
