"""What a job of private SGD leaves open, settled for its goal from public quantities (`learn.goals`, `defaults`).

A linear model gets the plan of `goals`, unless Adam was asked for or nothing is clipped. Others keep Adam with the
settings of `defaults`; the goal "typical" spends noise early there too.
"""

from __future__ import annotations

import math

from bayesdp.data import Dataset
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.recipe import TableRecipe
from bayesdp.jobs import defaults
from bayesdp.learn import goals
from bayesdp.learn.goals import Shape, Sizes, Steps
from bayesdp.learn.sgd import SGD

LINEAR = "logistic"
"""The model that is linear, for classes and for numbers."""

_COLOURS = 3


def of_goal(model: str | None, optimizer: str | None, clip_norm: object) -> bool:
    """Whether `goals` has a plan for it."""
    return model == LINEAR and optimizer != "adam" and clip_norm != "none"


def shape_of(data: Dataset, records: int) -> Shape:
    """What is public of data of which `records` are trained on.

    A standardised column and the one-hot features of a category have 1 each in square; pixels from 0 to 1 a quarter.
    """
    recipe, size = data.recipe, data.x[0].size
    if isinstance(recipe, ImageRecipe):
        return Shape(records, size, len(data.classes), recipe.norm, math.sqrt(size) / 2)
    columns = len(recipe.columns) if isinstance(recipe, TableRecipe) else size
    return Shape(records, size, len(data.classes), None, math.sqrt(columns))


def goal_for(goal: str, data: Dataset) -> str:
    """The goal whose plan is taken: photographs stay hard for most people, so nothing is gained for typical ones by a
    balance, and accuracy is lost.
    """
    colour = isinstance(data.recipe, ImageRecipe) and data.recipe.shape[-1] == _COLOURS
    return "accuracy" if goal == "balanced" and colour else goal


def steps_of(model: str, optimizer: str | None, clip_norm: object, goal: str, shape: Shape) -> tuple[str, Steps]:
    """The optimiser and what is chosen before the noise is known."""
    if of_goal(model, optimizer, clip_norm):
        return "sgd", goals.steps_of(shape)
    name, schedule = optimizer or "adam", "typical" if goal == "typical" else "constant"
    rate, steps = defaults.sampling_rate(shape.records), defaults.steps(shape.records, model)
    return name, Steps(rate, steps, defaults.MOMENTUM, schedule, 0.0)


def sizes(
    model: str,
    optimizer: str,
    goal: str,
    shape: Shape,
    plan: SGD,
    *,
    images: str | None,
    momentum: float | None,
    falling: float,
    clip_norm: float | None,
) -> Sizes:
    """Clip norm and learning rate of a plan whose noise is known; `clip_norm` and `images` as the job has them."""
    if not of_goal(model, optimizer, plan.clip_norm or "none"):
        clip = defaults.clip_norm(shape.records, images) if clip_norm is None else clip_norm
        return Sizes(clip, defaults.learning_rate(model, optimizer, shape.features), math.nan)
    return goals.sizes(
        goal,
        shape,
        noise=plan.noise,
        pace=goals.paces(plan.noise_schedule, falling, plan.steps),
        sampling_rate=plan.sampling_rate,
        momentum=momentum or 0.0,
        clip_norm=clip_norm,
    )
