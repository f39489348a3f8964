"""Learning under the eyes of the user: what `train`, `fit`, `resume` and `demo` share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from bayesdp import errors
from bayesdp.cli import options, progress, terminal
from bayesdp.cli.plan_description import plan_in_words
from bayesdp.cli.shared_options import CommonOptions, RecordOptions
from bayesdp.unit import spoken

if TYPE_CHECKING:
    from bayesdp.jobs.people import Whom
    from bayesdp.jobs.prepared import Finished, PreparedJob, UnderWay
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.mechanism.key import NoiseKind

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""

LISTS = ("categories", "drop", "keep", "missing", "read")
"""Options of records that may be repeated."""

NOISE: NoiseKind = "lattice"
"""How noise is drawn that clipped sums get, unless --noise says otherwise."""

NEIGHBOURS = "Training, with a coupled neighbouring run for every witness"


def carry_out(
    prepared: PreparedJob[Any, Any],
    out: Path,
    *,
    json: bool = False,
    resumed: bool = False,
    ledger: Path | None = None,
    budget: float | None = None,
) -> None:
    """Learn under the eyes of the user, and say what came out; Ctrl-C leaves with words on how to go on.

    `ledger`, `budget`: where the run is charged before its first step, see `jobs.charged`.
    """
    from bayesdp.jobs import charged
    from bayesdp.learn.loop.run_folder import RunFolder

    folder = RunFolder(out)
    with terminal.speaking_of(prepared.data.unit):
        finished = _learned(
            prepared,
            folder,
            lambda: charged.resume(prepared, out) if resumed else charged.begin(prepared, out, ledger, budget),
            json=json,
        )
        charged.measured(prepared, out, finished.report.guarantees)
        if json:
            terminal.guarantees(finished.report.guarantees, json=True)
        else:
            _tell(prepared, finished, folder)


def _learned(
    prepared: PreparedJob[Any, Any], folder: RunFolder, begun: Callable[[], UnderWay[Any]], *, json: bool
) -> Finished[Any]:
    try:
        run = begun()
        if not json:
            for sentence in plan_in_words(prepared):
                terminal.line(sentence)
        if prepared.shows_progress:
            with progress.watching(prepared.job.steps, silent=json) as so_far:
                return run(so_far)
        with terminal.waiting(NEIGHBOURS):
            return run(None)
    except KeyboardInterrupt:
        on = f"\nInterrupted. Nothing is lost: go on with\n  bayesdp resume {folder.path}"
        terminal.remark(on if folder.begun else "\nInterrupted.")
        raise typer.Exit(INTERRUPTED) from None


def _tell(prepared: PreparedJob[Any, Any], finished: Finished[Any], folder: RunFolder) -> None:
    report, seeded = finished.report, prepared.job.seed is not None
    if report.posterior is not None:
        terminal.posterior(report.posterior, seeded=seeded)
    for name, value in finished.metrics.items():
        terminal.line(terminal.metric(name, value))
    if report.confusion is not None:
        terminal.confusion(report.confusion)
    if report.paid is not None:
        terminal.paid(report.paid, seeded=seeded)
    for sentence in finished.remarks:
        terminal.line(sentence)
    terminal.guarantees(report.guarantees, record=_whose(prepared, finished), fine_print=False)
    largest = _largest(prepared, finished)
    if largest:
        terminal.line(f"\n{largest}")
    curve = finished.account.curve()
    if curve is not None:
        terminal.curve(curve)
    if report.groups is not None:
        terminal.groups(report.groups, report.delta)
    if report.shift is not None and report.shift.warns:
        terminal.shifted()
    whom = ""
    if prepared.job.watch and not (folder.posterior.exists() or folder.samples.exists()):
        whom = spoken("watched records", prepared.data.unit)
    _afterwards(folder, private=not seeded and math.isfinite(report.guarantees[0].epsilon), watched=whom)


def _whose(prepared: PreparedJob[Any, Any], finished: Finished[Any]) -> str:
    """Whom the per-instance promise is for: each record that was named beforehand."""
    if not prepared.job.watch or finished.account.instance is None:
        return "each witness"
    watched = prepared.whom
    named = "number " if prepared.data.people is None else ""
    return f"{named}{watched[0]}" if len(watched) == 1 else f"each of {len(watched):,} watched"


def _largest(prepared: PreparedJob[Any, Any], finished: Finished[Any]) -> str:
    """Which of several watched records the number shown is that of, and that it is no promise to that one as such."""
    account, watched = finished.account.instance, prepared.whom
    if account is None or not prepared.job.watch or len(watched) == 1:
        return ""
    most = int(account.exposure(finished.report.delta).argmax())
    named = "number " if prepared.data.people is None else ""
    return f"Of the watched records the largest is shown, that of {named}{watched[most]}. {terminal.NAMED}"


def _afterwards(folder: RunFolder, *, private: bool, watched: str) -> None:
    """`private`: there is noise of this run's own, and it bounds what everybody can lose. `watched`: who, if any."""
    verdict = "may be published with its DP guarantee" if private else "NOT PRIVATE: not for publication"
    terminal.line("")
    terminal.uncut(f"Report: {folder.page}  (opens in a browser; sensitive, like the whole folder)")
    out = folder.path
    if folder.samples.exists():
        terminal.uncut(
            f"Samples: {folder.samples}  (what was accounted for; nothing else of the posterior was written)"
        )
    elif folder.posterior.exists():
        terminal.uncut(f"Posterior: {folder.posterior}  ({verdict})")
    else:
        terminal.uncut(f"Model: {folder.params}  ({verdict})")
    terminal.uncut("Next:")
    terminal.uncut(f"  bayesdp predict {out} FILE  (the model on further records)")
    if watched:
        terminal.uncut(f"  bayesdp instance {out}  (what it cost each of the {watched})")
    terminal.uncut(f"  bayesdp report {out}  (the promises in full sentences, with their fine print)")
    if private and not folder.samples.exists():
        terminal.uncut(f"  bayesdp publish {out} --out BUNDLE  (the model, a page and a card that may be published)")


def assigned(chosen: RecordOptions, common: CommonOptions, *, clipped: bool, **more: Any) -> dict[str, Any]:
    """The fields of a job that both groups of options fill; `more` of the records' own.

    `clipped`: what is released are sums of clipped gradients. Those alone can be on a lattice.
    """
    from bayesdp.data.preparation.declared import typed
    from bayesdp.jobs.data_source import DataSource

    given = {**vars(chosen), **more}
    lists: dict[str, Any] = {name: tuple(given.pop(name) or ()) for name in LISTS}
    known = typed(given.pop("bounds") or (), given.pop("levels") or (), given.pop("bounds_file"))
    if known:
        lists |= {"bounds": known.bounds, "levels": known.levels}
    source = DataSource.given(given.pop("data"), **lists, download=not given.pop("no_download"), **given)
    return {
        **vars(common),
        "noise_kind": common.noise_kind or (NOISE if clipped and common.noise_multiplier != 0 else "float"),
        "data": source,
        "watch": whom(common.watch, named=source.person is not None),
        "seed": seed_of(common.seed),
    }


def whom(text: str | None, name: str = "watch", *, named: bool) -> tuple[Whom, ...] | Literal["everyone"]:
    """Numbers of records, or names of people where these are `named`."""
    if not named or text is None or text == "everyone":
        return records(text, name)
    return names(text, name)


def names(text: str, name: str) -> tuple[str, ...]:
    """Names of people, typed or one in each line of a text file."""
    file = Path(text)
    if file.is_file():
        parts = file.read_text(encoding="utf-8", errors="replace").splitlines()
    else:
        parts = text.split(",")
    found = tuple(part.strip() for part in parts if part.strip())
    if not found or len(set(found)) < len(found):
        raise errors.refuse(name, text, "to name at least one person, each once")
    return found


def records(text: str | None, name: str = "watch") -> tuple[int, ...] | Literal["everyone"]:
    """Numbers of records: typed, or one in each line of a text file; or the word everyone."""
    if text is None or text == "everyone":
        return "everyone" if text else ()
    file = Path(text)
    if file.is_file():
        lines = file.read_text(encoding="utf-8", errors="replace").split()
        try:
            typed = [float(line) for line in lines]
        except ValueError:
            raise errors.refuse(name, text, "to be a file with the number of a record in each line") from None
    else:
        typed = options.numbers(name, text)
    if not typed:
        raise errors.refuse(name, text, "to name at least one record")
    return tuple(errors.whole(name, one) for one in typed)


def seed_of(value: float | None) -> int | None:
    """The whole number of --seed."""
    return None if value is None else errors.whole("seed", value, least=0)


def check_noise(common: CommonOptions, *, needed: bool) -> None:
    """Refuse two ways to say how much noise there is, and none where one is `needed`."""
    epsilon, noise_multiplier = common.epsilon, common.noise_multiplier
    if epsilon is not None and noise_multiplier is not None:
        raise errors.unmet(
            "noise_multiplier",
            noise_multiplier,
            f"{errors.named('epsilon')} or {errors.named('noise_multiplier')}",
            "both",
        )
    if needed and epsilon is None and noise_multiplier is None:
        raise errors.unmet(
            "epsilon",
            None,
            f"{errors.named('epsilon')}, the DP ε to keep, or {errors.named('noise_multiplier')}",
            "neither",
        )


def start_jax() -> None:
    """Make every core a device, which must be asked for before JAX's first computation."""
    from bayesdp.mechanism.devices import use_host_cores

    use_host_cores()
