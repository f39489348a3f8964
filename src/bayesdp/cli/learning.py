"""Learning under the eyes of the user: what `train`, `fit`, `resume` and `demo` share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from bayesdp import errors
from bayesdp.cli import options, progress, show
from bayesdp.cli import train_options as words
from bayesdp.cli.plan_words import plan_in_words

if TYPE_CHECKING:
    from bayesdp.learn.fitting import Fitting, Sampling
    from bayesdp.learn.prepared import Prepared

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""

SHADOWS = "Training, with a shadow for every witness"


def resume(run: words.RunFolder, json: options.Json = False) -> None:
    """
    Go on with a run of train or fit that was interrupted.

    The result is the one that the run would have had: parameters, optimiser, noise and tallies go on from the last
    checkpoint. DATA must be where it was, and as it was.

    For example:
      bayesdp resume run
    """
    start_jax()

    from bayesdp.learn.ready import check_unfinished
    from bayesdp.learn.unfinished import job_of, prepare_any

    job = job_of(run)
    check_unfinished(run)
    with show.waiting("Loading the records"):
        ready = prepare_any(job)
    carry_out(ready, run, json=json, resumed=True)


def carry_out(ready: Prepared | Fitting | Sampling, out: Path, *, json: bool = False, resumed: bool = False) -> Any:
    """Learn under the eyes of the user, and say what came out; Ctrl-C leaves with words on how to go on."""
    from bayesdp.learn.fitting import Sampling

    secret = isinstance(ready, Sampling)
    try:
        start: Any = ready.resumed(out) if resumed else ready.begun(out)
        if not json:
            for sentence in plan_in_words(ready):
                show.line(sentence)
        # Shadows are one program from the first step to the last: there is nothing to look at in between.
        watching = show.waiting(SHADOWS) if secret else progress.watching(ready.plan.steps, silent=json)
        with watching as look:
            run: Any = ready.run(start, out, None if secret else look)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        begun = (out / "job.json").exists()
        show.remark(
            f"\nInterrupted. Nothing is lost: go on with\n  bayesdp resume {out}" if begun else "\nInterrupted."
        )
        raise typer.Exit(INTERRUPTED) from None
    if json:
        show.guarantees(run.guarantees, json=True)
        return run
    _tell(ready, run, out)
    return run


def _tell(ready: Prepared | Fitting | Sampling, result: Any, out: Path) -> None:
    details: dict[str, Any] = ready.details(result)
    posterior = details.get("posterior")
    if posterior is not None:
        show.posterior(posterior, seeded=ready.job.seed is not None)
    for name, value in details["metrics"].items():
        show.line(show.metric(name, value))
    account = getattr(result, "run", result)
    show.guarantees(account.guarantees, record=_most_exposed(ready, account), fine_print=False)
    curve = account.curve()
    if curve is not None:
        show.curve(curve)
    dp = account.guarantees[0]
    watched = bool(ready.job.watch) and (out / "params.npz").exists()
    _afterwards(out, private=ready.job.seed is None and math.isfinite(dp.epsilon), watched=watched)


def _most_exposed(ready: Any, account: Any) -> str:
    """The number of the most exposed watched record."""
    if not ready.job.watch or account.instance is None:
        return "most exposed witness"
    return f"number {ready.watched[int(account.instance.epsilon(account.plan.delta).argmax())]}"


def _afterwards(out: Path, *, private: bool, watched: bool) -> None:
    """`private`: there is noise of this run's own, and it bounds what everybody can lose."""
    verdict = "may be published with its DP guarantee" if private else "NOT PRIVATE: not for publication"
    show.line("")
    show.uncut(f"Report: {out / 'report.html'}  (opens in a browser; sensitive, like the whole folder)")
    if (out / "samples.npz").exists():
        show.uncut(
            f"Samples: {out / 'samples.npz'}  (what was accounted for; nothing else of the posterior was written)"
        )
    elif (out / "posterior.npz").exists():
        show.uncut(f"Posterior: {out / 'posterior.npz'}  ({verdict})")
    else:
        show.uncut(f"Model: {out / 'params.npz'}  ({verdict})")
    show.uncut("Next:")
    show.uncut(f"  bayesdp predict {out} FILE  (the model on further records)")
    if watched:
        show.uncut(f"  bayesdp instance {out}  (what it cost each of the watched records)")
    show.uncut(f"  bayesdp report {out}  (the promises in full sentences, with their fine print)")


def source(data: str, **given: Any) -> Any:
    """The records that the options of DATA name."""
    from bayesdp.learn.source import Source

    lists: dict[str, Any] = {name: tuple(given.pop(name) or ()) for name in ("categories", "drop")}
    return Source.given(data, **lists, download=not given.pop("no_download"), **given)


def records(text: str | None, name: str = "--watch") -> tuple[int, ...] | Literal["everyone"]:
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
    return None if value is None else errors.whole("--seed", value, least=0)


def check_noise(epsilon: float | None, noise_multiplier: float | None, *, needed: bool) -> None:
    """Refuse two ways to say how much noise there is, and none where one is `needed`."""
    if epsilon is not None and noise_multiplier is not None:
        raise errors.InputError("Expected --epsilon or --noise-multiplier, got both.")
    if needed and epsilon is None and noise_multiplier is None:
        raise errors.InputError("Expected --epsilon, the DP ε to keep, or --noise-multiplier, got neither.")


def start_jax() -> None:
    """Make every core a device, which must be asked for before JAX's first computation."""
    from bayesdp.mechanism.devices import use_host_cores

    use_host_cores()
