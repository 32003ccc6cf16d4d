"""The files and folders a team file names: how each is found, and what is wrong with those that can't be used."""

from __future__ import annotations

import os
import stat

from nbs_fleet.errors import TeamFileError
from nbs_fleet.resources import data_dir, packaged
from nbs_fleet.spec import envfile
from nbs_fleet.spec.names import Names, sections
from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, scalars, text_of
from nbs_fleet.spec.problems import FileRef, Path, Problems, quoted, suggest

MAX_PROMPT = 100_000
"""Bytes of a prompt; a template is checked here, what it renders to when it is rendered."""

TEMPLATE = "template:"
"""Begins the place of a packaged template; the rest is its path below `templates/`."""

DEFAULT_BUS = ".nbs/events"


def root_of(tree: Map, main: FileRef) -> str:
    """The real path of the project directory (it may not exist)."""
    node = tree.get("root")
    if isinstance(node, Scalar) and node.text:
        return os.path.realpath(beside(node))
    folder = here = os.path.dirname(main.path)
    while True:
        if any(os.path.exists(os.path.join(here, name)) for name in (".nbs", ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return folder
        here = above


def beside(node: Scalar) -> str:
    """An absolute path, taken from the folder of the file in which it is written."""
    return os.path.normpath(os.path.join(os.path.dirname(node.mark.file.path), node.text))


def below(root: str, text: str) -> str:
    """An absolute path, taken from the root."""
    return os.path.normpath(os.path.join(root, text))


def chat_path(root: str, name: str, path: str | None) -> str:
    """Where the nbs tools keep a chat of that name, unless a path is given."""
    return below(root, path if path is not None else f".nbs/chat/{name}.chat")


def prompt_place(node: Scalar) -> str | None:
    """The file beside the team file, else `template:NAME` of a packaged one, else None."""
    path = beside(node)
    if os.path.exists(path):
        return path
    for folder in ("", "prompts/"):
        if folder + node.text in _templates():
            return TEMPLATE + folder + node.text
    return None


def skill_place(node: Scalar) -> str | None:
    """The folder beside the team file, else `template:skills/NAME` of a packaged one, else None."""
    path = beside(node)
    if os.path.isdir(path):
        return path
    return f"{TEMPLATE}skills/{node.text}" if node.text in packaged("templates/skills") else None


def template_file(place: str) -> str:
    """The absolute path behind what `prompt_place` or `skill_place` gave."""
    return os.path.join(data_dir("templates"), place.removeprefix(TEMPLATE)) if place.startswith(TEMPLATE) else place


def _templates() -> tuple[str, ...]:
    ends = (".j2", ".md", ".txt")
    plain = tuple(n for n in packaged("templates", ends=ends) if n != "README.md")
    return plain + tuple(f"prompts/{n}" for n in packaged("templates/prompts", ends=ends))


def check_places(tree: Map, names: Names, root: str, problems: Problems) -> None:
    """Add a problem for each file or folder that can't be used."""
    node = tree.get("root")
    usable = os.path.isdir(root)
    if not usable and isinstance(node, Scalar):
        what = "is not a directory" if os.path.exists(root) else "no such directory"
        problems.add(node.mark, ("root",), _lost(node, what, "it is taken from the folder of this file"))
    for path, section in sections(tree, names):
        _check_env_file(section.get("env_file"), (*path, "env_file"), problems)
        for n, item in scalars(section.get("skills")):
            if skill_place(item) is None:
                known = packaged("templates/skills")
                hint = suggest(item.text, known, none="no skill is packaged")
                problems.add(
                    item.mark,
                    (*path, "skills", n),
                    f"no skill {quoted(item.source)} beside this file or packaged; {hint}",
                )
        if path:
            _check_prompt(section, path, problems)
        if usable:
            _check_dir(section.get("dir"), (*path, "dir"), root, problems)
            _check_bus(section.get("bus"), (*path, "bus"), root, problems)
    _check_chats(tree, names, root, problems)
    _check_pythia(tree, root, problems)


def bus_of(node: Node | None, root: str) -> tuple[str, ...]:
    """The bus directories of a `bus` key, or the default one where it exists; absolute paths."""
    if isinstance(node, Seq):
        return tuple(dict.fromkeys(below(root, item.text) for _, item in scalars(node)))
    default = below(root, DEFAULT_BUS)
    return (default,) if os.path.isdir(default) else ()


def _check_dir(node: Node | None, path: Path, root: str, problems: Problems) -> None:
    if isinstance(node, Scalar) and node.kind == "text" and node.text:
        place = below(root, node.text)
        if not os.path.isdir(place):
            what = "is not a directory" if os.path.exists(place) else "no such directory"
            problems.add(node.mark, path, _lost(node, what, "it is taken from the root"))


def _lost(node: Scalar, what: str, advice: str) -> str:
    """A place that is not there, with the advice for it; `~` is a shell's business."""
    if node.source.startswith("~"):
        advice = "~ is not expanded, write ${HOME}"
    return f"{quoted(node.source)}: {what}; {advice}"


def _check_bus(node: Node | None, path: Path, root: str, problems: Problems) -> None:
    for n, item in scalars(node):
        place = below(root, item.text)
        if os.path.exists(place) and not os.path.isdir(place):
            problems.add(
                item.mark, (*path, n), f"{quoted(item.source)}: is not a directory; a bus is one, such as {DEFAULT_BUS}"
            )


def _check_chats(tree: Map, names: Names, root: str, problems: Problems) -> None:
    seen: dict[str, str] = {}
    chats = tree.get("chats")
    for n, item in enumerate(chats.items if isinstance(chats, Seq) else ()):
        node = item.get("path") if isinstance(item, Map) else None
        name = text_of(item.get("name") if isinstance(item, Map) else item)
        if name is None:
            continue
        place = chat_path(root, name, text_of(node))
        if isinstance(node, Scalar) and os.path.isdir(place):
            problems.add(node.mark, ("chats", n, "path"), f"{quoted(node.source)}: is a directory; name a file")
        elif isinstance(node, Scalar) and place in seen:
            problems.add(
                node.mark,
                ("chats", n, "path"),
                f"{quoted(node.source)} is already the file of the chat {names.written(seen[place])}; choose another",
            )
        seen.setdefault(place, name)


def _check_pythia(tree: Map, root: str, problems: Problems) -> None:
    section = tree.get("pythia")
    if not isinstance(section, Map):
        return
    node = section.get("bus")
    declared = [item for _, item in scalars(tree.get("bus"))]
    if isinstance(node, Scalar) and node.kind == "text":
        known = {below(root, item.text) for item in declared}
        if declared and below(root, node.text) not in known:
            hint = suggest(node.text, [item.source for item in declared], none="")
            problems.add(node.mark, ("pythia", "bus"), f"unknown bus {quoted(node.source)}; {hint}")
    elif node is None and not bus_of(tree.get("bus"), root):
        problems.add(section.mark, ("pythia",), f"needs a bus; write bus: [{DEFAULT_BUS}] at the top of the file")


def _check_env_file(node: Node | None, path: Path, problems: Problems) -> None:
    if not isinstance(node, Scalar) or node.kind != "text" or not node.text:
        return
    try:
        text = envfile.read_private(beside(node))
        envfile.parse(text, node.source)
    except envfile.RefusedError as error:
        problems.add(node.mark, path, f"{quoted(node.source)}: {error.why}")
    except TeamFileError as error:
        for fault in error.problems[:5]:
            problems.add(node.mark, path, fault)


def _check_prompt(section: Map, path: Path, problems: Problems) -> None:
    node, text = section.get("prompt"), section.get("prompt_text")
    if node is not None and text is not None:
        problems.add(section.keys["prompt_text"], (*path, "prompt_text"), "stands beside prompt; keep one of them")
    if isinstance(text, Scalar) and len(text.text.encode("utf-8", "replace")) > MAX_PROMPT:
        problems.add(
            text.mark, (*path, "prompt_text"), f"is longer than {MAX_PROMPT} bytes; put it in a file the agent reads"
        )
    if isinstance(node, Scalar) and node.kind == "text" and node.text:
        fault = _prompt_fault(node)
        if fault:
            problems.add(node.mark, (*path, "prompt"), fault)


def _prompt_fault(node: Scalar) -> str | None:
    place = prompt_place(node)
    if place is None:
        names = [name.removeprefix("prompts/") for name in _templates()]
        hint = suggest(node.text, names, none="no template is packaged")
        return f"no prompt {quoted(node.source)} beside this file or packaged; {hint}"
    path = template_file(place)
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            return f"{quoted(node.source)}: is not a regular file; a prompt is a text file"
        if info.st_size > MAX_PROMPT:
            return f"{quoted(node.source)}: is longer than {MAX_PROMPT} bytes; put it in a file the agent reads"
        with open(path, "rb") as stream:
            stream.read(MAX_PROMPT).decode("utf-8")
    except UnicodeDecodeError:
        return f"{quoted(node.source)}: is not UTF-8; save it as UTF-8"
    except OSError as error:
        return f"{quoted(node.source)}: can't be read ({(error.strerror or 'error').lower()}); check its owner and mode"
    return None
