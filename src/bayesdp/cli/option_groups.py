"""Options that several commands share, declared once as a dataclass.

@dataclass(frozen=True)                      @spread
class Common:                                def train(*, common: Common, model: Model = None): ...
    epsilon: Annotated[...] = None
                                             train --epsilon 1 --model mlp
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the fields of its dataclass parameters as parameters of its own, in their place.

    What is called gets the dataclasses filled; all parameters are taken by keyword, as Typer gives them.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        filled = {
            name: group(**{one.name: given.pop(one.name) for one in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(**given, **filled)

    parameters = list(_parameters(command, hints, groups))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameters(command: Callable[..., None], hints: dict[str, Any], groups: dict[str, Any]) -> Iterator[Parameter]:
    for name, one in inspect.signature(command).parameters.items():
        if name not in groups:
            yield one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            continue
        inside = get_type_hints(groups[name], include_extras=True)
        for field in dataclasses.fields(groups[name]):
            default = Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=inside[field.name])
