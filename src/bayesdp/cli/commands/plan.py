"""`bayesdp plan`: what private training of a linear model would do and could reach, before any record is touched."""

from __future__ import annotations

from typing import Annotated

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.cli.options import output  # fmt: skip
from bayesdp.cli.options import plan as of_plan

NumRecords = Annotated[float, of_plan("--num-records", "N", "How many records there are to train on, e.g. 5000.")]
Columns = Annotated[float, of_plan("--features", "D", "How many features a record has, e.g. 30.")]
Classes = Annotated[float, of_plan("--classes", "K", "How many classes there are, e.g. 2; 0 for a number to predict.")]
Norm = Annotated[
    float | None,
    of_plan("--feature-norm", "B", "The length of a record's features where it is public, e.g. 3 for scattering ones."),
]
DeltaOrNone = Annotated[
    float | None,
    of_plan("--delta", "D", "The δ, below one over the number of records, e.g. 1e-5, taken if left out where it is."),
]
Goal = Annotated[
    str | None, output("--goal", "NAME", "accuracy, typical or balanced; all three are shown if it is left out.")
]


def plan(
    num_records: NumRecords,
    features: Columns,
    classes: Classes,
    epsilon: options.Epsilon,
    delta: DeltaOrNone = None,
    feature_norm: Norm = None,
    goal: Goal = None,
    json: options.Json = False,
) -> None:
    r"""
    What private training of a linear model would do for data of a shape, and what can be expected.

    Everything is computed from the numbers given here: no record is touched. Shown are the settings that "train" would
    take, the noise, the DP ε, how far noise alone moves the model's outputs, and what was measured on public sets of a
    similar shape: by analogy, not a promise.

    For example:
      bayesdp plan --num-records 60000 --features 5184 --classes 10 \
              --feature-norm 3 --epsilon 1.2
      bayesdp plan --num-records 400 --features 30 --classes 2 --epsilon 1
    """
    records, size, labels = (
        errors.whole("num_records", num_records, least=2),
        errors.whole("features", features, least=1),
        errors.whole("classes", classes, least=0),
    )

    from bayesdp.jobs import defaults
    from bayesdp.learn.goals import GOALS
    from bayesdp.learn.shown_plan import similar, suggested

    if goal is not None:
        errors.one_of("goal", goal, GOALS)
    level = defaults.delta(records) if delta is None else errors.probability("delta", delta)
    wanted = GOALS if goal is None else (goal,)
    with terminal.waiting("Calibrating the noise"):
        found = [suggested(one, records, size, labels, epsilon, level, feature_norm) for one in wanted]
    measured = similar(records, size, labels, epsilon)
    if json:
        terminal.json_list([one._asdict() for one in found])
        return
    for one in found:
        for sentence in one.sentences:
            terminal.line(sentence)
        terminal.line("")
    if not measured:
        terminal.line("Nothing of a similar shape was measured.")
    for known in measured:
        terminal.line(known.sentence)
    if records < defaults.FEW:
        terminal.line(f"{defaults.MEMBERS_ALONE} {defaults.UNTESTED}")
