"""Documentation agrees with the code: what is written from it, links, commands, exit codes."""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import typer
from ruamel.yaml import YAML

from raykd import errors
from raykd.cli import main as cli
from raykd.cli.sweep import NO_FRONT, SOME_FAILED

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READ = [
    str(page.relative_to(ROOT))
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "cluster" / "README.md",
        ROOT / "dashboards" / "README.md",
        *PAGES,
    )
]
FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?)$", re.MULTILINE)
WORDS_AFTER = {"|", "||", "&&", ";", ">", ">>", "<", "&"}


def beside(name: str) -> ModuleType:
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rooms_stand_in_the_order_of_the_import_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(
        import_contract["layers"]
        for import_contract in contract["contracts"]
        if import_contract["type"] == "layers"
    )
    depth = {
        name.strip().removeprefix("raykd."): rooms
        for rooms, line in enumerate(layers)
        for name in line.split("|")
    }
    table = (DOCS / "ARCHITECTURE.md").read_text(encoding="utf-8").split("| room |")[1].split("\n\n")[0]
    rows = [re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1]) for line in table.splitlines()[2:]]
    assert {name for rooms in rows for name in rooms} == depth.keys()
    assert all(len({depth[name] for name in rooms}) == 1 for rooms in rows), (
        "rooms on one line are on one layer"
    )
    order = [depth[rooms[0]] for rooms in rows]
    assert order == sorted(order)


def test_the_reference_of_the_sweep_file_is_up_to_date():
    written = (DOCS / "SWEEP_FILE.md").read_text(encoding="utf-8")
    assert written == beside("sweep_file").reference(), "run python docs/sweep_file.py"


@pytest.mark.parametrize("page", READ)
def test_relative_links_lead_somewhere(page):
    for target, anchor in beside("repository_files").links(page):
        assert (ROOT / target).is_file(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(ROOT / target), f"{page} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by the rule that forges and mkdocs have in common."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower())) for heading in headings}


def test_anchors_are_those_of_forges(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Is it `good`?\n```\n# no heading\n```\n### `source: conll`\n", encoding="utf-8")
    assert anchors(page) == {"is-it-good", "source-conll"}


def test_every_page_is_in_the_navigation_once():
    nav = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    shown_path = beside("repository_files").place("CONTRIBUTING.md")
    assert sorted(leaves(nav)) == sorted([shown_path, *(str(page.relative_to(DOCS)) for page in PAGES)])


def leaves(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [leaf for item in entries for leaf in leaves(item)]  # type: ignore[union-attr]


@pytest.mark.parametrize("page", READ)
def test_commands_exist(page):
    for words in commands((ROOT / page).read_text(encoding="utf-8")):
        unknown = faults(words)
        assert not unknown, f"{page}: raykd {' '.join(words)}: {unknown}"


def commands(text: str) -> list[list[str]]:
    """The words after `raykd` in the commands of a page, in blocks and in lines of code."""
    blocks = [match[0] for match in FENCE.finditer(text) if not re.match(r" *```(python|yaml)", match[0])]
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [command for line in [*lines, *spans] if (command := _command(line))]


def _command(line: str) -> list[str]:
    match = re.search(
        r"(?:^|\| |&& |-- |\$ )\s*raykd ((?:[a-z-]|`).*)", line.split("   #")[0].split(" # ")[0]
    )
    if match is None:
        return []
    words = shlex.split(match[1].replace("…", ""))
    end = next((place for place, word in enumerate(words) if word in WORDS_AFTER), len(words))
    return words[:end]


def faults(words: list[str]) -> list[str]:
    """The unknown words of a command: its verb, a verb of its own, options."""
    verb, *rest = words
    if verb.startswith("-"):
        return [] if verb in options(typer.main.get_command(cli.app)) else [verb]
    if verb not in cli.VERBS:
        return [verb]
    command = cli._imported(verb)
    if isinstance(command, typer.core.TyperGroup):
        if rest and rest[0] not in command.commands:
            return [rest[0]]
        command = command.commands[rest[0]] if rest else command
    return [word for word in rest if word.startswith("--") and word.split("=")[0] not in options(command)]


def options(command: object) -> set[str]:
    return {"--help"} | {
        name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
    }  # type: ignore[attr-defined]


def test_commands_that_do_not_exist_are_found():
    block = (
        "```\ncat x | raykd predict student - --int8 > y\nraykd front a --wher 'f1 > 1'   # what --for\n```"
    )
    text = f"{block}\n`raykd corpus sow F`, `raykd polish`"
    assert [faults(words) for words in commands(text)] == [[], ["--wher"], ["sow"], ["polish"]]


def test_the_exit_codes_are_listed():
    """EXIT_CODES.md has a row for each code that raykd ends with, and no other."""
    rows = re.findall(r"^\| (\d+) \|", (DOCS / "EXIT_CODES.md").read_text(encoding="utf-8"), re.MULTILINE)
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and hasattr(value, "exit_code")
    ]
    assert sorted(map(int, rows)) == sorted(
        {0, SOME_FAILED, NO_FRONT, cli.INTERRUPTED} | {c.exit_code for c in classes}
    )
