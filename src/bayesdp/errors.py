"""What bad input gets: one clear error that names the argument, its value and what was expected.

    Expected noise_std to be a finite number > 0, got noise_std=-1. Without noise a step has no finite cost.

Every public function validates with these checks before it changes anything, so that a refused call
leaves no trace. The command line prints an `InputError` with its options for the arguments and exits with code 2.
"""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""A float64 array: what accounting is done in."""

T = TypeVar("T")


_OPEN, _IS, _CLOSE = "\ue000", "\ue001", "\ue002"
"""Around the arguments inside of a message. No text holds these by accident: `repr` spells them out."""


class Argument(NamedTuple):
    """An argument inside of a message, f"to be left out beside {Argument('steps', 5)}", shown as `steps=5`."""

    name: str
    value: object

    def __str__(self) -> str:
        return named(self.name, repr(self.value))


def named(argument: str, value: str | None = None) -> str:
    """The name of an argument inside of a message, alone or with a value as it is to be shown."""
    return f"{_OPEN}{argument}{_CLOSE}" if value is None else f"{_OPEN}{argument}{_IS}{value}{_CLOSE}"


class InputError(ValueError):
    """An argument that cannot be used, in words and in fields.

    Args:
        message: the sentence.
        argument: its name in Python, "" where the fault is not in an argument.
        value: what was given.
        expected: what would do, as in "Expected ARGUMENT EXPECTED, got …". "" where not known.
        hint: the next step. "" where not known.

    `spelled` has the same sentence for whoever knows the arguments under other names.

    Examples:
        >>> try:
        ...     bd.WorstCaseAccountant().step(noise_multiplier=-1.0)
        ... except bd.InputError as refusal:
        ...     print(refusal.argument, refusal.value)
        noise_multiplier -1.0
    """

    def __init__(
        self, message: str, *, argument: str = "", value: object = None, expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(_spell(message, _as_in_python))
        self.argument, self.value = argument, value
        self.expected, self.hint = (_spell(text, _as_in_python) for text in (expected, hint))
        self._message = message

    def spelled(self, spell: Callable[[str, str | None], str]) -> str:
        """The message with `spell(name, value)` for each argument in it; value is None where only the name stands."""
        return _spell(self._message, spell)

    def adding(self, hint: str) -> InputError:
        """The same refusal with one more sentence, such as where in a file it was found."""
        return InputError(
            f"{self._message} {hint}",
            argument=self.argument,
            value=self.value,
            expected=self.expected,
            hint=f"{self.hint} {hint}".lstrip(),
        )

    def reworded(self, say: Callable[[str], str]) -> InputError:
        """The same refusal in other words."""
        expected, hint = say(self.expected), say(self.hint)
        return InputError(say(self._message), argument=self.argument, value=self.value, expected=expected, hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = dict(self.__dict__)
        try:
            pickle.dumps(self.value)
        except Exception:  # a model or a function of the user's: whatever its own pickling says, its text can go
            fields["value"] = _show(self.value)
        return type(self), self.args, fields


def refuse(name: str, value: object, expected: str, hint: str = "", *, got: str | None = None) -> InputError:
    """The error "Expected NAME EXPECTED, got NAME=VALUE. HINT": `hint` is the next step for the reader.

    `got` says in other words what was given; empty where that is clear.
    """
    got = named(name, _show(value)) if got is None else got
    return _told(f"{named(name)} {expected}", got, Argument(name, value), expected, hint)


def unmet(name: str, value: object, expected: str, got: str = "", hint: str = "") -> InputError:
    """The error "Expected EXPECTED, got GOT. HINT" about argument `name`: a sentence that begins in another way."""
    return _told(expected, got, Argument(name, value), expected, hint)


def unfit(source: Argument | str, expected: str, got: str, hint: str = "") -> InputError:
    """The error "Expected SOURCE EXPECTED, got GOT. HINT": for what an argument leads to, such as a file."""
    argument = source if isinstance(source, Argument) else Argument("", None)
    return _told(f"{source} {expected}", got, argument, expected, hint)


def _told(wanted: str, got: str, argument: Argument, expected: str, hint: str) -> InputError:
    words = f"Expected {wanted}{f', got {got}' if got else ''}.{f' {hint}' if hint else ''}"
    return InputError(words, argument=argument.name, value=argument.value, expected=expected, hint=hint)


class Bounds(TypedDict, total=False):
    """Where numbers must lie: `above` and `below` exclusive, `least` and `most` inclusive; None for no bound."""

    above: float | None
    least: float | None
    below: float | None
    most: float | None


def number(name: str, value: Any, *, hint: str = "", **bounds: Unpack[Bounds]) -> float:
    """`value` as a finite float inside the bounds."""
    expected = "to be a finite number" + _in_words(bounds)
    if isinstance(value, bool | str | bytes):
        raise refuse(name, value, expected, hint)
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise refuse(name, value, expected, hint) from None
    if not math.isfinite(result) or not _inside(np.float64(result), bounds):
        raise refuse(name, value, expected, hint)
    return result


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None, hint: str = "") -> int:
    """`value` as an int inside the inclusive bounds; a float that is a whole number is accepted."""
    expected = "to be a whole number" + _in_words({"least": least, "most": most})
    try:
        result = number(name, value, least=least, most=most)
    except InputError:
        raise refuse(name, value, expected, hint) from None
    if result != int(result):
        raise refuse(name, value, expected, hint)
    return int(result)


def array(
    name: str,
    value: Any,
    *,
    ndim: int | tuple[int, ...] | None = None,
    infinite: bool = False,
    hint: str = "",
    **bounds: Unpack[Bounds],
) -> Array:
    """`value` as a non-empty float64 array without NaN, inside the bounds.

    `infinite=True` lets +inf pass (a divergence may be infinite); NaN is refused always. The first
    offending entry is the one that the message shows.
    """
    expected = f"to hold {'numbers' if infinite else 'finite numbers'}" + _in_words(bounds)
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(name, value, expected, hint) from None
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if dims is not None and result.ndim not in dims:
        expected = f"with {' or '.join(map(str, dims))} dimension(s)"
        raise refuse(name, result.shape, expected, hint, got=f"shape {result.shape}")
    if result.size == 0:
        raise refuse(name, result.shape, "with at least one entry", got=f"shape {result.shape}")
    good = ~np.isnan(result) if infinite else np.isfinite(result)
    good &= _inside(result, bounds)
    if not good.all():
        where = np.unravel_index(int(np.argmin(good)), result.shape)
        bad = float(result[where])
        at = f"{named(name)}[{', '.join(map(str, where))}]={_show(bad)}" if result.ndim else None
        raise refuse(name, bad, expected, hint, got=at)
    return result


def one_of(name: str, value: T, options: Iterable[T]) -> T:
    """`value` if it is one of `options`."""
    options = list(options)
    if not any(type(value) is type(option) and value == option for option in options):
        raise refuse(name, value, "to be one of " + ", ".join(map(repr, options)))
    return value


def unprintable(text: str) -> bool:
    """Whether a text holds characters that no page can show and no strict format carries: controls, half characters."""
    return any((ord(one) < 32 and one not in "\n\t") or 0xD800 <= ord(one) < 0xE000 for one in text)


def rate(name: str, value: Any) -> float:
    """A Poisson sampling rate in [0, 1]."""
    return number(name, value, least=0, most=1, hint="A sampling rate is the chance that a record enters a step.")


def noise(name: str, value: Any) -> float:
    """A positive noise standard deviation or multiplier."""
    return number(name, value, above=0, hint="Without noise a step has no finite cost.")


def probability(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1, such as δ."""
    return number(name, value, above=0, below=1)


def more_steps(total_steps: int | None, done: int, count: int, where: str = "") -> None:
    """Refuse `count` more steps after `done` where they pass `total_steps`; `where` says of what: " in a run"."""
    if total_steps is not None and done + count > total_steps:
        expected = f"at most {Argument('total_steps', total_steps)} steps{where}"
        raise unmet("steps", count, expected, f"{count} more after {done}")


def orders(name: str, value: Any) -> Array:
    """Rényi orders α > 1 as a sorted one-dimensional array without repeats."""
    result = array(name, np.atleast_1d(np.asarray(value)) if not isinstance(value, str) else value, above=1, ndim=1)
    return np.unique(result)


_SIGNS: dict[str, tuple[str, Callable[[Any, float], Any]]] = {
    "above": (">", operator.gt),
    "least": (">=", operator.ge),
    "below": ("<", operator.lt),
    "most": ("<=", operator.le),
}


def _given(bounds: Bounds) -> dict[str, float]:
    """The bounds that there are, in the order that a sentence names them in."""
    return {name: bounds[name] for name in _SIGNS if bounds.get(name) is not None}  # type: ignore[literal-required]


def _inside(value: Any, bounds: Bounds) -> npt.NDArray[np.bool_]:
    good = np.ones_like(value, dtype=bool)
    for name, bound in _given(bounds).items():
        good &= _SIGNS[name][1](value, bound)
    return good


def _in_words(bounds: Bounds) -> str:
    # A whole bound is written out: a limit of 10000000 steps is not 1e+07.
    shown = {name: str(bound) if isinstance(bound, int) else f"{bound:g}" for name, bound in _given(bounds).items()}
    words = [f"{_SIGNS[name][0]} {bound}" for name, bound in shown.items()]
    return " " + " and ".join(words) if words else ""


def _spell(message: str, spell: Callable[[str, str | None], str]) -> str:
    first, *others = message.split(_OPEN)
    for part in others:
        argument, _, rest = part.partition(_CLOSE)
        name, given, value = argument.partition(_IS)
        first += spell(name, value if given else None) + rest
    return first


def _as_in_python(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


def _show(value: object) -> str:
    text = repr(value)
    # Both ends: of a path the last words tell most.
    return text if len(text) <= 80 else f"{text[:30]}...{text[-47:]}"
