"""What MkDocs cannot do by itself: pages made from the program and from files outside of `docs/`.

- `<!-- commands -->` becomes the reference of the command line, read from the Typer application.
- `<!-- include: CONTRIBUTING.md -->` becomes that file, its links put right.
- Pictures of `results/` are copied to the site, and links from pages to them lead there.
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


def on_files(files: Files, config: Any) -> Files:
    """Add the figures and tables of `results/`."""
    for made in sorted((ROOT / "results").iterdir()):
        files.append(File.generated(config, f"{FIGURES}/{made.name}", abs_src_path=str(made)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is made, and lead links out of `docs/` to where the site has their ends."""
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
