"""MkDocs hook: the pages that are generated from the code, and the documents that lie outside of docs/.

`make docs` builds the site. Commands are described by their own help, settings by `memadmin.variables`, and words by
`memadmin/web/glossary.toml`. Links are written as they work in the repository, and are rewritten here for the site.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import django
from django.core.management import get_commands, load_command_class
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("memadmin", "sessions_app", "memories_app")
# Documents of the repository that are pages of the site, too: path in the repository, path in the site.
OUTSIDE = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "packages/tests.md",
    **{
        path.relative_to(ROOT).as_posix(): f"packages/{path.parent.name}.md"
        for package in PACKAGES
        for path in sorted(ROOT.glob(f"{package}/**/README.md"))
    },
}
# Code that is shown on a generated page.
SHOWN_ON = {"memadmin/variables.py": "settings.md", "memadmin/web/glossary.toml": "glossary.md"}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The configuration with decisions and packages in the last section of the navigation."""
    decisions = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    (developing,) = list(config.nav[-1].values())
    developing.append({"Decisions": [f"adr/{name}" for name in (*decisions, "smaller-decisions.md")]})
    developing.append({"Packages": [site for site in OUTSIDE.values() if "/" in site]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")
    sys.path.insert(0, str(ROOT))
    django.setup()
    pages = {"settings.md": settings_page(), "commands.md": commands_page(), "glossary.md": glossary_page()}
    pages |= {site: (ROOT / path).read_text() for path, site in OUTSIDE.items()}
    for site, text in pages.items():
        files.append(File.generated(config, site, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    site = page.file.src_uri
    path = {site: path for path, site in OUTSIDE.items()}.get(site, f"docs/{site}")
    return LINK.sub(lambda link: rewritten(link, path, site), markdown)


def rewritten(link: re.Match[str], path: str, site: str) -> str:
    """The link for the page `site`, whose source is `path`. A link to code is its text alone: the site has no code."""
    words, target, anchor = link[1], link[2], link[3] or ""
    if ":" in target:
        return link[0]
    named = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if shown := (OUTSIDE | SHOWN_ON).get(named):
        named = shown
    elif named.startswith("docs/"):
        named = named.removeprefix("docs/")
    elif (ROOT / named).exists():
        return words
    return f"[{words}]({posixpath.relpath(named, posixpath.dirname(site) or '.')}{anchor})"


def settings_page() -> str:
    from memadmin.variables import SECTIONS

    lines = [
        "# Settings",
        "",
        "Every setting is an environment variable. Each may instead be given as `NAME_FILE`, the path of a file with"
        " the value: secrets reach a container that way. An empty variable counts as not set. A wrong value stops the"
        " start with one sentence. Yes is `1`, `true`, `yes` or `on`.",
        "",
        "Addresses and keys of [stores](stores.md) are in variables of your own choice, whose names are given to"
        " `attach_store` (`--url-env`, `--token-env`, `--key-env`).",
    ]
    for section, variables in SECTIONS.items():
        lines += ["", f"## {section}", "", "| variable | default | unit | meaning |", "| --- | --- | --- | --- |"]
        for each in variables:
            default = f"`{each.default}`" if each.default else each.unset or "none"
            lines.append(f"| `{each.name}` | {default} | {each.unit} | {each.meaning} |")
    return "\n".join(lines)


def commands_page() -> str:
    own = {name: app for name, app in sorted(get_commands().items()) if app.split(".")[0] in PACKAGES}
    parsers = {name: parser_of(name, load_command_class(app, name)) for name, app in own.items()}
    lines = [
        "# Commands",
        "",
        "Run them as `python manage.py COMMAND` in a checkout, or as `memadmin COMMAND` when installed. Options of all"
        " Django commands (`--help`, `--verbosity`, `--traceback` and others) are left out here. The database role for"
        " each command is listed in [database roles](database-roles.md).",
        "",
        "| command | |",
        "| --- | --- |",
    ]
    lines += [f"| [`{name}`](#{name}) | {first_sentence(parser)} |" for name, parser in parsers.items()]
    for name, parser in parsers.items():
        lines += ["", f"## {name}", "", escaped(parser.description or "")]
        lines += ["", "```text", parser.format_usage().removeprefix("usage: ").strip(), "```", ""]
        if parser._actions:
            lines += ["| argument | |", "| --- | --- |"]
            lines += [f"| {names_of(action)} | {help_of(action)} |" for action in parser._actions]
    return "\n".join(lines)


def parser_of(name: str, command: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"manage.py {name}",
        description=command.help,
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=110),
    )
    command.add_arguments(parser)
    return parser


def first_sentence(parser: argparse.ArgumentParser) -> str:
    return escaped(re.split(r"(?<=\.)\s", (parser.description or "").strip())[0])


def names_of(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return f"`{' '.join([', '.join(action.option_strings), value]).strip()}`"


def help_of(action: argparse.Action) -> str:
    choices = f"; one of {', '.join(f'`{choice}`' for choice in action.choices)}" if action.choices else ""
    return escaped((action.help or "").replace("%%", "%")) + choices


def escaped(text: str) -> str:
    """Text as Markdown that shows it; what is in backticks stays code."""
    return re.sub(r"(`[^`]*`)|([|*_<\[])", lambda found: found[1] or f"\\{found[2]}", text)


def glossary_page() -> str:
    groups = tomllib.loads((ROOT / "memadmin" / "web" / "glossary.toml").read_text())["group"]
    lines = ["# Glossary", "", "Terms with a meaning of their own in memadmin. Each term has one meaning everywhere."]
    for group in groups:
        lines += ["", f"## {group['title']}", ""]
        for term in group["term"]:
            text = " ".join([term["text"].strip(), *([term["code"]] if "code" in term else [])])
            lines.append(f"**{term['name']}**{{#{slug(term['name'])}}}\n: {text}\n")
    return "\n".join(lines)


def slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())
