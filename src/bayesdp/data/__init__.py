"""Data sets: built in, downloaded and checked, or a table of the user's own.

`load` gives a `Dataset`, whose `public` says in words what preparing it took from the data; `check` tells everything
that is wrong with a table. A `recipe` prepares
further records in the same way: `read_features` applies it to a file.
"""

from bayesdp.data.catalogue import CATALOGUE, check, load
from bayesdp.data.dataset import Dataset
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.further import read_features
from bayesdp.data.payment import Paid, Payment
from bayesdp.data.recipe import Recipe, TableRecipe, recipe_from_dict

__all__ = [
    "CATALOGUE",
    "Dataset",
    "ImageRecipe",
    "Paid",
    "Payment",
    "Recipe",
    "TableRecipe",
    "check",
    "load",
    "read_features",
    "recipe_from_dict",
]
