"""What a report says of ε, derived again from the plan and the accounts: a number is not believed unseen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bayesdp.errors import unfit
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.rounding import up

if TYPE_CHECKING:
    from bayesdp.report import Report

_EQUAL = 1e-9
"""Relative: the same arithmetic on the same machine gives the same number."""


def check_derived(folder: RunFolder, report: Report) -> None:
    """Refuse a report whose ε are not those of the run in its folder.

    Of samples of a secret posterior the account is not kept in a form that could answer again: there the manifest alone
    speaks for the report.
    """
    if folder.samples.exists():
        return
    from bayesdp.learn.loop.run import Run

    run = Run.load(folder.path, shapeless=True)
    derived = {one.notion: one for one in run.guarantees}
    for told in report.guarantees:
        again = derived.get(told.notion)
        same = again is not None and (told.delta, told.coverage) == (again.delta, again.coverage)
        if again is None or not same or not math.isclose(told.epsilon, again.epsilon, rel_tol=_EQUAL, abs_tol=1e-12):
            says = "none" if again is None else up(again.epsilon)
            raise unfit(
                repr(str(folder.report)),
                f"to say the {told.label} of the run in its folder, {says}",
                up(told.epsilon),
                "It was changed or damaged since it was written.",
            )
