"""What a study found: for each record and direction the interval of a bound, in ε at δ and at any Rényi order.

`accountant.repeated_runs.interval` says what lower, estimate and upper mean. ε is the least over orders that were fixed
from the public plan; its DP value is an upper bound whatever the runs showed, so no end of an interval is above it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import convert, errors, storage
from bayesdp.accountant.repeated_runs.interval import ManyRuns, Way
from bayesdp.accountant.repeated_runs.truncation import Certified, Truncation, certified
from bayesdp.accountant.state import reading
from bayesdp.compose.orders import planned
from bayesdp.errors import Array, InputError
from bayesdp.estimate import METHODS
from bayesdp.guarantee import Guarantee, Orientation
from bayesdp.learn.loop.schedule import phases
from bayesdp.learn.record_count import count_in_words
from bayesdp.learn.study.facts import Facts, Subject
from bayesdp.learn.study.record_bound import ORDERS, RecordBound
from bayesdp.learn.study.units import DATA, Distances
from bayesdp.report.records.cells import escaped
from bayesdp.storage import manifest

FORMAT, VERSION = "bayesdp/study-result", 2
BOTH = ("remove", "add")
COLUMNS = (
    "record",
    "role",
    "direction",
    "lower",
    "estimate",
    "upper",
    "worst",
    "certified",
    "delta",
    "failure",
    "runs",
)
TRUNCATED = ("truncation_epsilon", "truncation_delta", "runs_cut")
"""Further columns of a study with a truncation."""

BETWEEN = "the clip norm charged in between"
"""What `every` > 1 means."""

_ORIENTATION: dict[str, Orientation] = {"both": "both", "remove": "present", "add": "absent"}
_ONCE_MORE = (
    "It speaks for a further run of the plan, with noise of its own from the same start; the study's own runs are not "
    "for publication."
)


class StudyResult:
    """The intervals of all records of a study. Sensitive: everything here is computed from private data.

    Examples:
        >>> import jax.numpy as jnp, numpy as np, optax
        >>> plan = bd.SGD(sampling_rate=0.5, steps=4, optimizer=optax.sgd(0.1), noise_multiplier=4.0, engine="rdp")
        >>> study = bd.Study(plan, runs=4, direction="remove", seed=0)
        >>> found = study.run(lambda w, record: (record - w) ** 2, jnp.zeros(()), np.ones(20, np.float32), members=[3])
        >>> found.guarantee("row 3").notion
        'per-instance'
    """

    sensitive = True

    def __init__(self, facts: Facts, chains: Mapping[int, Distances]) -> None:
        """`chains`: (runs, steps, records) on the data as they are under `DATA`, (runs, steps, 1) for a neighbour."""
        self.facts, self.chains = facts, dict(chains)

    @property
    def directions(self) -> tuple[str, ...]:
        """The one or two that were asked for."""
        return BOTH if self.facts.direction == "both" else (self.facts.direction,)

    @cached_property
    def orders(self) -> Array:
        """The orders that ε is read off, from the public plan alone (H12)."""
        levels, rates, counts = zip(*phases(np.array(self.facts.noise), np.array(self.facts.rates)), strict=True)
        return planned(levels, rates, counts, self.facts.delta)[0]

    def epsilons(self, direction: str, way: Way = "upper") -> Array:
        """ε at δ of every record in one direction, never above `worst`."""
        errors.one_of("direction", direction, self.directions)
        return self._epsilons[direction, way]

    @cached_property
    def worst(self) -> dict[str, float]:
        """What the plan costs anybody in each direction, at δ: DP ε or, where it is less, Rényi's one-sided value."""
        costs = {way: side.worst(self.orders) * (self.orders - 1) for way, side in self._sides.items()}
        epsilons = {way: float(convert.epsilon(cost, self.orders, self.facts.delta)) for way, cost in costs.items()}
        return {way: min(epsilon, self.facts.dp) for way, epsilon in epsilons.items()}

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A line for each record and direction (`COLUMNS`, with a truncation `TRUNCATED` too), by falling estimate.

        Each line is about a record named beforehand; of those that stand first nothing more is promised (H19).

        `certified`: whether the runs certify less than `worst`.
        """
        facts = self.facts
        lines = [
            {
                "record": one.name,
                "role": "member" if one.member else "outsider",
                "direction": direction,
                **{way: float(self._epsilons[direction, way][i]) for way in ("lower", "estimate", "upper")},
                "worst": self.worst[direction],
                "certified": bool(self._epsilons[direction, "upper"][i] < self.worst[direction]),
                "delta": facts.delta,
                "failure": facts.failure,
                "runs": facts.runs,
                **self._truncation_of(direction, i),
            }
            for i, one in enumerate(facts.subjects)
            for direction in self.directions
        ]
        return sorted(lines, key=lambda line: (-line["estimate"], -line["lower"]))

    def guarantee(self, record: int | str) -> Guarantee:
        """The promise to one record, by its number in the study or its name: the larger upper end."""
        place, facts = self._place(record), self.facts
        epsilon = max(float(self._epsilons[direction, "upper"][place]) for direction in self.directions)
        worst = max(self.worst.values())
        certified = epsilon < worst
        return Guarantee(
            notion="per-instance",
            epsilon=epsilon,
            delta=facts.delta,
            failure=facts.failure if certified else 0.0,
            orientation=_ORIENTATION[facts.direction],
            sampling="poisson" if min(facts.rates) < 1 else "none",
            assumptions=(*self._assumptions, _ONCE_MORE) if certified else (self.nothing, *self._assumptions[1:3]),
            sensitive=True,
            delta_split={"study": facts.delta},
        )

    def truncated(self, record: int | str) -> Guarantee:
        """The promise to one record by truncation (H21): the ε that was fixed beforehand, at the δ that the runs allow.

        Bad input: as for `guarantee`, or a study without a truncation.
        """
        place, facts, aim = self._place(record), self.facts, self.facts.truncation
        if aim is None:
            raise errors.refuse("truncation", None, "to be given to the study before its runs", got="")
        deltas = [float(found.delta[place]) for found in self._truncated.values()]
        words = (
            f"A run that costs the record at most a Rényi budget fixed beforehand is (ε, {aim.kept:g}) by the filter; "
            f"how often one costs more was bounded from {facts.runs} independent runs of each first data set (H21).",
            *self._assumptions[1:3],
            _ONCE_MORE,
        )
        return Guarantee(
            notion="per-instance",
            epsilon=aim.epsilon,
            delta=max(deltas),
            failure=facts.failure,
            orientation=_ORIENTATION[facts.direction],
            sampling="poisson" if min(facts.rates) < 1 else "none",
            assumptions=words,
            sensitive=True,
            delta_split={"filter": aim.kept, "runs that cost more": max(max(deltas) - aim.kept, 0.0)},
        )

    def bound(self, record: int | str, direction: str = "both", orders: npt.ArrayLike = ORDERS) -> RecordBound:
        """The Rényi bound of one record, for whatever is computed from divergences. Bad input: see `guarantee`.

        `orders` are fixed without looking at the runs: all of them hold together. Bounds on other orders, `guarantee`
        and `truncated` are further statements, each with its own failure.
        """
        grid = errors.orders("orders", orders)
        place = self._place(record)
        errors.one_of("direction", direction, (*self.directions, *(["both"] if len(self.directions) == 2 else [])))
        chosen = BOTH if direction == "both" else (direction,)
        facts = self.facts
        return RecordBound(
            facts.subjects[place].name,
            direction,
            facts.failure * len(chosen) / len(self.directions),
            " ".join((*self._assumptions, _ONCE_MORE)),
            tuple(grid.tolist()),
            tuple(self._runs(way, [place]) for way in chosen),
        )

    def divergence(self, record: int | str, order: float, direction: str = "both") -> float:
        """The upper end of one record's D_α, read off `bound`. Bad input: an order where the worst case is infinite."""
        value = float(self.bound(record, direction).divergence([order])[0])
        if not math.isfinite(value):
            raise errors.refuse("order", order, "to be one at which the bound is finite", "Take a smaller one.")
        return value

    @property
    def nothing(self) -> str:
        """What is said of a record for which the runs certify nothing."""
        return (
            f"{self.facts.runs} runs certify no more than the worst case here: this is what the plan costs a record "
            "that is clipped at every step."
        )

    @cached_property
    def runs_needed(self) -> tuple[float, float]:
        """(α, ln of the runs) to certify half of the worst case, at the order of the worst case's ε (Hoeffding, E9)."""
        side = self._sides[self.directions[0]]
        costs = side.worst(self.orders) * (self.orders - 1)
        order = float(convert.best_order(costs, self.orders, delta=self.facts.delta))
        return order, side.runs_needed(order)

    def write(self, path: str | Path) -> Path:
        """The table as CSV, or as Parquet for a name that ends in .parquet (needs pyarrow)."""
        target = Path(path)
        names = COLUMNS if self.facts.truncation is None else (*COLUMNS, *TRUNCATED)
        columns = {name: [line[name] for line in self.table] for name in names}
        if target.suffix.lower() == ".parquet":
            try:
                import pyarrow
                from pyarrow import parquet
            except ImportError:
                raise InputError("Expected pyarrow to write Parquet, got none. Install bayesdp[parquet].") from None
            buffer = io.BytesIO()
            parquet.write_table(pyarrow.table(columns), buffer)
            storage.replace(target, buffer.getvalue(), private=True)
            return target
        if target.suffix.lower() != ".csv":
            raise errors.refuse("path", str(path), "to end in .csv or .parquet")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        rows = (
            [escaped(cell) if isinstance(cell, str) else cell for cell in row]
            for row in zip(*columns.values(), strict=True)
        )
        writer.writerows([names, *rows])
        storage.replace(target, text.getvalue().encode())
        return target

    def save(self, folder: str | Path) -> Path:
        """Write result.json and result.npz, readable by their owner only."""
        target = Path(folder)
        note = {"format": FORMAT, "version": VERSION, **asdict(self.facts)}
        note["dp"] = self.facts.dp if math.isfinite(self.facts.dp) else "inf"
        note["subjects"] = [list(one) for one in self.facts.subjects]
        storage.write_arrays(target / "result.npz", {str(k): v for k, v in self.chains.items()}, private=True)
        storage.write_json(target / "result.json", note, private=True)
        manifest.seal(target, ["result.json", "result.npz"])
        return target

    @classmethod
    def load(cls, folder: str | Path) -> StudyResult:
        """What `save` wrote. Bad input: a folder without a finished study, or a damaged file: `InputError`."""
        path = Path(folder) / "result.json"
        if not path.is_file():
            raise errors.refuse("folder", str(folder), "to hold a finished study, which has a result.json")
        note = storage.read_tagged(manifest.check(path), FORMAT, VERSION)
        arrays = storage.read_arrays(manifest.check(path.with_suffix(".npz")))
        with reading():
            note["dp"] = float(note["dp"])
            note["subjects"] = tuple(Subject(str(name), bool(member)) for name, member in note["subjects"])
            for name in ("noise", "rates"):
                note[name] = tuple(note[name])
            note["truncation"] = None if note["truncation"] is None else Truncation(**note["truncation"])
            result = cls(Facts(**note), {int(name): value for name, value in arrays.items()})
            for direction in result.directions:
                result._runs(direction, range(len(result.facts.subjects)))  # checks what was read
        return result

    @cached_property
    def _epsilons(self) -> dict[tuple[str, str], Array]:
        found = {}
        ways: tuple[Way, ...] = ("lower", "estimate", "upper")
        for direction, side in self._sides.items():
            for way in ways:
                costs = side.divergences(self.orders, way) * (self.orders - 1)
                epsilon = convert.epsilon(costs, self.orders, self.facts.delta)
                found[direction, str(way)] = np.minimum(epsilon, self.worst[direction])
        return found

    @cached_property
    def _truncated(self) -> dict[str, Certified]:
        aim = self.facts.truncation
        return {} if aim is None else {direction: certified(side, aim) for direction, side in self._sides.items()}

    def _truncation_of(self, direction: str, place: int) -> dict[str, float | int]:
        aim = self.facts.truncation
        if aim is None:
            return {}
        found = self._truncated[direction]
        return dict(zip(TRUNCATED, (aim.epsilon, float(found.delta[place]), int(found.cut[place])), strict=True))

    @cached_property
    def _sides(self) -> dict[str, ManyRuns]:
        everyone = range(len(self.facts.subjects))
        return {direction: self._runs(direction, everyone) for direction in self.directions}

    def _runs(self, direction: str, places: Sequence[int]) -> ManyRuns:
        """The runs of the first argument's chain, for each of these records."""
        facts = self.facts
        columns = [
            self.chains[DATA][..., i] if facts.subjects[i].at_home(direction) else self.chains[i][..., 0]
            for i in places
        ]
        return ManyRuns(
            np.stack(columns, axis=-1),
            facts.noise,
            facts.rates,
            direction=direction,
            failure=facts.failure / len(self.directions),
            estimator=facts.estimator,
            by_step=facts.by_step,
        )

    def _place(self, record: int | str) -> int:
        names = [one.name for one in self.facts.subjects]
        if isinstance(record, str):
            if record not in names:
                raise errors.refuse("record", record, f"to be one of the study's: {', '.join(names[:8])}")
            return names.index(record)
        return errors.whole("record", record, least=0, most=len(names) - 1, hint="Records are counted as in `facts`.")

    @property
    def _assumptions(self) -> tuple[str, ...]:
        facts = self.facts
        how = "E7 (S3 Theorem 3.3) and H2" if facts.by_step else "H2, with batches counted as released"
        seen = "" if facts.every == 1 else f" Distances were measured every {facts.every} steps, {BETWEEN} (ERR 22d)."
        return (
            f"Averages over {facts.runs} independent runs of the first data set, bounded from above, in {how}; the "
            f"least counts. How many runs was fixed beforehand.{seen}",
            "Noise, rates, clip norms, optimiser, stopping and the initial parameters are public and the same with and "
            "without the record; sums are divided by q N.",
            count_in_words(facts.size if facts.declared else None, facts.size),
            "Orders and methods were fixed without looking at the data (H12).",
            METHODS[facts.estimator].assumption,
        )
