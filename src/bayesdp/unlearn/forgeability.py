"""A statement that a model could have come from data without a record ("forgeability", paper S3 §5.4).

It names, by digest, a data set without the record, the checkpoints and the plan, and says how far apart the laws of the
checkpoints are with and without it. Whoever has these and nothing else cannot tell which data were used, but as far as
the bound says. It does not say that the record was not used: that is what the bound makes impossible to see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayesdp import errors
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.fingerprint import digest
from bayesdp.rounding import up
from bayesdp.unlearn.memorisation import membership_advantage

FORMAT = "bayesdp/forgeability"
VERSION = 1

_SENSITIVE = "Sensitive: by the digest whoever knows the data but for one record can test a guess at that one."
_ALL_STEPS = (
    "The bound must be one for all checkpoints together, as that of noisy steps is; one for the last alone is not."
)
_NOT_SAID = "It does not say that the records were not used."


def statement(
    *,
    records: Sequence[int],
    bound: Guarantee,
    data: Any,
    checkpoints: Sequence[Any],
    plan: Mapping[str, Any],
    seeded: bool = False,
) -> dict[str, Any]:
    """The statement for `records` as plain JSON values.

    Args:
        records: their numbers.
        bound: the guarantee of all checkpoints together for these records: DP (of the group, for several), a study's,
            or an ex-post one, of which the words then say that it speaks for this run.
        data: what the model is claimed to come from: a tree of arrays, records along the first axis, these left out.
        checkpoints: the parameters that are shown, trees of arrays; the last are the model's.
        plan: as `Plan.describe` gives it.
        seeded: whether the noise came from a seed.

    Bad input: a seeded run (who knows the seed can train again and compare), a guarantee for a share of people, or one
    that says nothing: `InputError`.
    """
    who = [errors.whole("records", one, least=0) for one in records]
    if not who or not checkpoints:
        raise errors.unmet("records", None, "at least one record and one checkpoint", "none")
    if seeded:
        raise errors.unmet(
            "seed",
            None,
            "noise of the run's own",
            "a seeded run: who knows the seed can train again and compare",
        )
    if bound.notion == "bdp" or bound.epsilon == float("inf"):
        raise errors.refuse("bound", str(bound), "to be a finite guarantee for everybody or for the record")
    return {
        "format": FORMAT,
        "version": VERSION,
        "records": who,
        "claim": _claim(bound),
        "bound": bound.to_dict(),
        "digests": {
            "data without the records": digest(data),
            "checkpoints": [digest(one) for one in checkpoints],
        },
        "plan": dict(plan),
        "assumptions": [*bound.assumptions, _ALL_STEPS, _NOT_SAID],
        "sensitive": _SENSITIVE,
    }


def differences(found: Mapping[str, Any], *, data: Any, checkpoints: Sequence[Any]) -> list[str]:
    """What of `data` and `checkpoints` is not what a statement was made for: empty if all of it is.

    Bad input: something that is no statement.
    """
    if not isinstance(found, Mapping) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise errors.unmet("statement", None, f"a statement of format {FORMAT!r}, version {VERSION}", "something else")
    named = found["digests"]
    wrong = [] if named["data without the records"] == digest(data) else ["data without the records"]
    return wrong + ([] if named["checkpoints"] == [digest(one) for one in checkpoints] else ["checkpoints"])


def _claim(bound: Guarantee) -> str:
    """What follows for one who sees the data without the records, the checkpoints and the plan."""
    if bound.ex_post:
        return (
            "But for a chance of δ, the run that happened is at most e^ε times as likely with the records as without "
            f"them, where {bound.label} = {up(bound.epsilon)} and δ = {up(bound.delta)}: ex-post, for this run alone."
        )
    right = (1 + membership_advantage(bound)) / 2
    return (
        "These checkpoints could have come from the data without the records: who sees both, the plan and nothing "
        f"else, and starts undecided, is right about whether the records were used at most {up(100 * right, 3)} % of "
        f"the time ({bound.label} = {up(bound.epsilon)}, δ = {up(bound.delta)})."
    )
