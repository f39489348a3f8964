"""From columns to a recipe: by what was declared, by noisy counts that are paid for, or by statistics of the records.

    "private"             what was not declared is found by one Gaussian mechanism (H22): `ranges`, `levels`
    "public-statistics"   means, scales, vocabularies and classes of the training records, declared public
    "none"                numbers as they are; vocabularies and classes as above

The number of histograms, and with it the noise, follows from the kinds of the columns alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bayesdp.data import coins
from bayesdp.data.payment import Paid, Payment
from bayesdp.data.preparation import levels, ranges
from bayesdp.data.preparation.declared import Declared, middle_and_scale
from bayesdp.data.preparation.secret_normals import secret_normals
from bayesdp.data.recipe import Bounded, Numeric, OneHot, Scale, TableRecipe, find_recipe, moments
from bayesdp.data.table import MOST_CATEGORIES, Table, listed
from bayesdp.data.target import Target
from bayesdp.errors import Argument, Array, InputError, named, unmet

Rows = npt.NDArray[np.int64]

CLASSES = 4
"""Histograms that the classes of a target count for: half of the noise, for without them nothing can be learned."""

LEAST = 4
"""Standard deviations of the noise that the number of records must have: else no column's range stands out of it."""

QUANTITY = 4
"""What those of a target of numbers count for, for the same reason."""

EXACT = (
    "These statistics are exact and not paid for: their last digits can give away exact counts, such as how many "
    "records there are."
)
_BASIS = "the training records"


@dataclass(frozen=True, eq=False)
class How:
    """What was said of preparing a table; `draw` is the secret number that coins and noise come from, `owner` whose
    each row is where a person has several.
    """

    declared: Declared = field(default_factory=Declared)
    scale: Scale = "public-statistics"
    target_scale: Scale | None = None
    categories: Sequence[str] = ()
    payment: Payment | None = None
    draw: int = 0
    owner: Rows | None = None

    @property
    def private(self) -> bool:
        """Whether what was not declared is paid for."""
        return self.scale == "private"


@dataclass(frozen=True)
class Prepared:
    """What came of it: `recipe` is None where there are no columns, target values are scaled, −1 for other classes."""

    recipe: TableRecipe | None
    target: Target
    mean: float
    scale: float
    public: tuple[str, ...]
    paid: Paid | None


def prepare(table: Table | None, names: Sequence[str], target: Target, name: str, train: Rows, how: How) -> Prepared:
    """The recipe for the columns `names`, and the target `name` ready to be learned, from the rows `train`.

    Bad input: nothing that pays for "private"; classes or a range of the target that noise hides: `InputError`.
    """
    open_columns = [one for one in names if one not in how.declared.ranges and one not in how.declared.vocabularies]
    if not how.private:
        return _taken(table, names, open_columns, target, name, train, how)
    return _Private(table, names, open_columns, target, name, train, how).prepared()


def _taken(
    table: Table | None,
    names: Sequence[str],
    open_columns: Sequence[str],
    target: Target,
    name: str,
    train: Rows,
    how: How,
) -> Prepared:
    recipe, public = None, list(_declared_sentences(names, name, how.declared))
    exact = False
    if table is not None:
        scale: Scale = "none" if how.scale == "none" else "public-statistics"
        found = find_recipe(table, tuple(open_columns), train, scale=scale, categories=tuple(how.categories))
        recipe = _with_declared(found, names, how.declared)
        said = found.public(_BASIS)
        exact = any(isinstance(one, Numeric) and one.scale != 1.0 for one in found.columns)
        public += said
    y, mean, size = target.values, 0.0, 1.0
    if target.classes and name not in how.declared.vocabularies:
        public.append(f"The {len(target.classes)} classes of {name!r}, taken from all records, are declared public.")
    elif name in how.declared.ranges:
        y, mean, size = _within(y, train, *how.declared.ranges[name], *middle_and_scale(*how.declared.ranges[name]))
    elif target.task == "regression" and "none" not in (how.scale, how.target_scale):
        mean, size = moments(y[train], "public-statistics")
        size = size or 1.0
        y, exact = (y - mean) / size, True
        public.append(f"Mean and scale of the target {name!r}, taken from {_BASIS}, are declared public.")
    if exact:
        public.append(EXACT)
    return Prepared(recipe, dataclasses.replace(target, values=y), mean, size, tuple(public), None)


class _Private:
    """One Gaussian mechanism for all columns that were not declared."""

    def __init__(
        self,
        table: Table | None,
        names: Sequence[str],
        open_columns: Sequence[str],
        target: Target,
        name: str,
        train: Rows,
        how: How,
    ) -> None:
        self.table, self.names, self.target, self.name, self.train, self.how = table, names, target, name, train, how
        numeric = [one for one in open_columns if table is not None and self._is_number(table, one)]
        self.numeric, self.texts = numeric, [one for one in open_columns if one not in numeric]
        told = name in how.declared.vocabularies or name in how.declared.ranges
        self.classes = bool(target.classes) and not told
        self.quantity = target.task == "regression" and not told and how.target_scale != "none"
        self.lost: list[str] = []
        self.paid: Paid | None = None
        self.rows = train
        if numeric or self.texts or self.quantity or self.classes:
            self._pay()

    def _is_number(self, table: Table, column: str) -> bool:
        return column not in self.how.categories and table.is_numeric(column)

    def _pay(self) -> None:
        payment = self.how.payment
        if payment is None:
            raise unmet(
                "scale",
                "private",
                f"something to pay with for {Argument('scale', 'private')}: a job with an ε, or {named('payment')}",
                "none",
                f"Declare {named('bounds')} and {named('levels')}, or use {Argument('scale', 'public-statistics')}.",
            )
        others = len(self.texts) + CLASSES * self.classes + QUANTITY * self.quantity
        payment, histograms = payment.for_columns(len(self.numeric), others)
        if self.numeric and 0 < payment.records < LEAST * payment.noise_std(histograms):
            raise _hopeless(len(self.numeric), payment.records)
        self.paid = Paid.by(payment, histograms, levels=bool(self.texts) or self.classes)
        # Witnesses that are held out have no part in what is trained on, and so none in this (H5).
        places = self.train if self.how.owner is None else self.how.owner[self.train]
        self.rows = self.train[~coins.tossed(self.how.draw, "holdout", places, payment.held_out)]

    def prepared(self) -> Prepared:
        """All of it."""
        recipe = None
        if self.table is not None:
            found = [self._column(self.table, one) for one in (*self.numeric, *self.texts)]
            recipe = _with_declared(TableRecipe(tuple(found)), self.names, self.how.declared)
        target, mean, size = self._prepared_target()
        public = (*_declared_sentences(self.names, self.name, self.how.declared), *self._sentences())
        return Prepared(recipe, target, mean, size, public, self.paid)

    def _column(self, table: Table, name: str) -> Numeric | OneHot | Bounded:
        if name in self.texts:
            texts = table.texts(name)
            return OneHot(
                name, self._selected(name, [texts[row] for row in table.present(name, self.rows)], self._std())
            )
        found = self._range(name, table.numbers(name)[table.present(name, self.rows)])
        if found is None:
            self.lost.append(name)
            return Numeric(name, 0.0, 0.0)
        return Bounded(name, *found)

    def _std(self) -> float:
        assert self.paid is not None
        return self.paid.noise_std

    def _range(self, name: str, values: Array, counts_for: int | None = None) -> ranges.Found | None:
        assert self.paid is not None
        each = (counts_for or self.paid.of_numbers) / self.paid.of_numbers
        std, draw = self.paid.noise_std / np.sqrt(each), self.how.draw
        if self.paid.of_numbers == 1:
            signed = ranges.signed_counts(values)
            return ranges.range_of_octaves(signed + std * secret_normals(draw, f"signed {name!r}", len(signed)), std)
        octaves = ranges.octave_counts(values)
        known = ranges.reach(octaves + std * secret_normals(draw, f"octaves {name!r}", len(octaves)), std)
        if known is None:
            return None
        bins = ranges.bin_counts(values, known.most, ranges.bins_for(known, std))
        return ranges.range_of(bins + std * secret_normals(draw, f"bins {name!r}", len(bins)), known, std)

    def _selected(self, name: str, texts: Sequence[str], std: float) -> tuple[str, ...]:
        assert self.paid is not None
        above = levels.threshold(std, self.paid.delta, len(self.texts) + self.classes, self.paid.rows_per_person)
        draw = self.how.draw
        found = levels.select(texts, std=std, above=above, draw=draw, column=name, most=MOST_CATEGORIES)
        if not found:
            self.lost.append(name)
        return found

    def _prepared_target(self) -> tuple[Target, float, float]:
        target, values = self.target, self.target.values
        if self.classes:
            return self._chosen_classes(), 0.0, 1.0
        if self.quantity:
            found = self._range(self.name, values[self.rows], QUANTITY)
            if found is None:
                raise _hidden(self.name, "a range", Argument("bounds", f"{self.name}=LOW,HIGH"))
        elif self.name in self.how.declared.ranges:
            ends = self.how.declared.ranges[self.name]
            found = ranges.Found(*ends, *middle_and_scale(*ends))
        else:
            return target, 0.0, 1.0
        y, mean, size = _within(values, self.train, *found)
        return dataclasses.replace(target, values=y), mean, size

    def _chosen_classes(self) -> Target:
        target = self.target
        codes = target.values.astype(np.int64)
        own = [target.classes[code] for code in codes[self.rows]]
        kept = self._selected(self.name, own, self._std() / np.sqrt(CLASSES))
        if len(kept) < 2:
            words = ",".join(target.classes[:5]) + (",…" if len(target.classes) > 5 else "")
            raise _hidden(self.name, "two classes", Argument("levels", f"{self.name}={words}"))
        order = tuple(one for one in target.classes if one in kept)
        place = np.array([order.index(one) if one in kept else -1 for one in target.classes])
        return dataclasses.replace(target, classes=order, values=place[codes].astype(np.float64))

    def _sentences(self) -> list[str]:
        if self.paid is None:
            return []
        parts = []
        if self.numeric:
            parts.append(f"ranges of {listed(tuple(self.numeric), 8)}")
        if self.texts:
            parts.append(f"levels of {listed(tuple(self.texts), 8)}")
        if self.classes:
            parts.append(f"classes of {self.name!r}")
        if self.quantity:
            parts.append(f"range of the target {self.name!r}")
        joined = ", ".join(parts)
        said = [
            f"{joined[0].upper()}{joined[1:]} were found in {_BASIS} by noisy counts (Gaussian noise of standard "
            f"deviation {self.paid.noise_std:.4g} on {self.paid.histograms} histograms), which the guarantees pay for."
        ]
        if self.target.task != "density":
            said.append(f"That {self.name!r} is {'of classes' if self.target.classes else 'a quantity'} is public.")
        if self.classes:
            said.append(f"Records whose {self.name!r} is none of the classes that were found are left out.")
        if self.lost:
            said.append(
                f"Noise hides what {listed(tuple(self.lost), 8)} hold: they have no say. Declare bounds or levels."
            )
        return said


def _with_declared(found: TableRecipe, names: Sequence[str], declared: Declared) -> TableRecipe:
    """The recipe with the declared columns in their places."""
    known: dict[str, Numeric | OneHot | Bounded] = {one.name: one for one in found.columns}  # type: ignore[misc]
    for name, (low, high) in declared.ranges.items():
        known[name] = Bounded(name, low, high, *middle_and_scale(low, high))
    for name, words in declared.vocabularies.items():
        known[name] = OneHot(name, words)
    return dataclasses.replace(found, columns=tuple(known[name] for name in names))


def _declared_sentences(names: Sequence[str], target: str, declared: Declared) -> list[str]:
    said = []
    if declared.bounds:
        said.append(f"The ranges of {listed(tuple(declared.ranges), 8)} were declared independently of the data.")
    if declared.levels:
        said.append(f"The levels of {listed(tuple(declared.vocabularies), 8)} were declared independently of the data.")
    if target in declared.vocabularies and target not in names:
        said.append(f"Records whose {target!r} is none of the declared classes are left out.")
    return said


def _within(
    values: Array, train: Rows, low: float, high: float, mean: float, scale: float
) -> tuple[Array, float, float]:
    """Values to learn are clipped to their range; those to test on stay as they are."""
    y = values.copy()
    y[train] = np.clip(y[train], low, high)
    return (y - mean) / scale, mean, scale


def _hopeless(columns: int, records: int) -> InputError:
    """By public numbers alone: nothing was looked at."""
    return unmet(
        "scale",
        "private",
        f"enough records to pay for the ranges of {columns:,} columns by noisy counts",
        f"{records:,}, too few at this ε",
        f"Declare {named('bounds')} for all columns or for most, or use {Argument('scale', 'public-statistics')}.",
    )


def _hidden(name: str, what: str, declare: Argument) -> InputError:
    return unmet(
        "scale",
        "private",
        f"enough records to find {what} of the target {name!r} by noisy counts",
        "too few for the share of ε that it may cost",
        f"Declare them ({declare}), give more of ε ({named('scale_share')}), or use "
        f"{Argument('scale', 'public-statistics')}.",
    )
