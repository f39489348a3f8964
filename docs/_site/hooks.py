"""What MkDocs cannot do by itself: pages made from the program and from files outside of `docs/`.

- `<!-- commands -->` becomes the reference of the command line, read from the Typer application.
- `<!-- include: CONTRIBUTING.md -->` becomes that file, its links put right.
- Pictures of `results/` are copied to the site, and links from pages to them lead there.
- A page of `docs/how-to` that `mkdocs.yml` does not name is put at the end of the others.
- `docs/results.md`, one long page, becomes a page for each paper.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FIGURES = "figures"
OUTSIDE = {"../README.md": "index.md", "../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md"}
"""Pages at the top of the repository, and where the site has them."""

RESULTS = "results.md"
PAPERS = {
    "bayesian-dp": ("## bdp-fig1:", "Bayesian DP (S0 and S1)"),
    "beyond": ("## mnist-scattering:", "Beyond the papers: features, the front door, preparation"),
    "variational": ("# Private variational inference", "Private variational inference (S2)"),
    "langevin": ("# Private Langevin dynamics", "Private Langevin dynamics (S4)"),
    "per-instance": ("# Per-instance privacy", "Per-instance privacy of DP-SGD (S3)"),
}
"""Name of a page → the line of `docs/results.md` that it begins with, and its title, in their order there."""


def on_config(config: Any) -> Any:
    """Add how-to pages that are new."""
    pages = next(part["How-to"] for part in config.nav if "How-to" in part)
    found = sorted(f"how-to/{path.name}" for path in (ROOT / "docs" / "how-to").glob("*.md"))
    pages.extend(page for page in found if page not in pages)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the figures and tables of `results/`."""
    for made in sorted((ROOT / "results").iterdir()):
        files.append(File.generated(config, f"{FIGURES}/{made.name}", abs_src_path=str(made)))
    for name, text in results()[1].items():
        files.append(File.generated(config, f"results/{name}.md", content=text))
    return files


def results() -> tuple[str, dict[str, str]]:
    """Split `docs/results.md`: what it begins with and a list of the rest, and the page of each paper by name."""
    text = (ROOT / "docs" / RESULTS).read_text(encoding="utf-8")
    starts = [re.search(rf"^{re.escape(line)}", text, re.M) for line, _ in PAPERS.values()]
    if None in starts:
        raise ValueError(f"docs/{RESULTS} has lost a heading of PAPERS in docs/_site/hooks.py")
    cuts = [start.start() for start in starts if start] + [len(text)]
    pages = {}
    for (name, (_, title)), start, end in zip(PAPERS.items(), cuts, cuts[1:], strict=False):
        own = re.sub(r"\A# .*\n", "", text[start:end])
        own = re.sub(r"^# ", "## ", own, flags=re.M)  # a title within a page
        own = re.sub(r"\]\((?!#|http)", "](../", own)
        pages[name] = f"# {title}\n\n{own}"
    contents = "\n".join(f"- [{title}](results/{name}.md)" for name, (_, title) in PAPERS.items())
    return f"{text[: cuts[0]]}\n## Pages\n\n{contents}\n", pages


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is made, and lead links out of `docs/` to where the site has their ends."""
    if page.file.src_uri == RESULTS:
        markdown = results()[0]
    markdown = re.sub(r"<!-- include: (\S+) -->", lambda found: included(found[1]), markdown)
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", commands())
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
    markdown = re.sub(rf"\]\({re.escape(up)}\.\./results/", f"]({up}{FIGURES}/", markdown)
    for outside, inside in OUTSIDE.items():
        markdown = markdown.replace(f"]({up}{outside}", f"]({up}{inside}")
    return markdown


def included(name: str) -> str:
    """A file at the top of the repository, as if it were in `docs/`."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def commands() -> str:
    """Every command: what it does, an example, and a table of its options, panel by panel."""
    import typer

    from bayesdp.cli.app import app

    program = typer.main.get_command(app)
    parts: list[str] = []
    for name, command in program.commands.items():  # type: ignore[attr-defined]
        arguments = " ".join(_argument(p) for p in command.params if p.param_type_name == "argument")
        parts += [f"## {name}", "", f"`bayesdp {name} {arguments}`".replace(" `", "`"), "", _words(command.help), ""]
        panels: dict[str, list[str]] = {}
        for option in command.params:
            if getattr(option, "hidden", False):
                continue
            panel = getattr(option, "rich_help_panel", None) or "Options"
            panels.setdefault(panel, []).append(_row(option))
        for panel, rows in panels.items():
            parts += [f"| {panel} | |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _argument(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    return shown if argument.required else f"[{shown}]"


def _row(option: Any) -> str:
    if option.param_type_name == "argument":
        name = _argument(option)
    else:
        value = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
        name = ", ".join([*option.opts, *option.secondary_opts]) + value.rstrip()
    text = _plain(option.help or "")
    required = " *Required.*" if option.required else ""
    return f"| `{name}` | {text}{required} |"


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\[/?bold\]", "", text).split()).replace("|", "\\|").replace("<", "&lt;")


def _words(text: str | None) -> str:
    """The help of a command: paragraphs, and its examples as a block."""
    said = []
    for paragraph in (text or "").replace("\f", "").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head.strip() in ("For example:", "Start here:"):
            said.append("```sh\n" + "\n".join(line.removeprefix("  ") for line in rest.splitlines()) + "\n```")
        else:
            said.append(_plain(paragraph).replace("\\|", "|"))
    return "\n\n".join(said)
