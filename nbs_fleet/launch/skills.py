"""Writes an agent's skills to where its client looks for them, in place of those of an earlier start."""

from __future__ import annotations

import os

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.plan.types import SKILL_TEXTS, Skill


def share(place: str, skills: tuple[Skill, ...]) -> None:
    """Write each skill to NAME below `place`, which running clients may be reading; FleetError if that can't be done."""
    import shutil  # noqa: PLC0415 -- most agents have no skills

    for skill in skills:
        fresh = os.path.join(place, f".{skill.name}")
        deploy(fresh, fresh, (skill,))
        try:
            shutil.rmtree(os.path.join(place, skill.name), ignore_errors=True)
            os.rename(os.path.join(fresh, skill.name), os.path.join(place, skill.name))
            os.rmdir(fresh)
        except OSError as error:
            raise FleetError(f"skills can't be written to {place}: {error.strerror}") from error


def deploy(own: str, place: str | None, skills: tuple[Skill, ...]) -> None:
    """Empty the folder `own`, then write each skill to NAME below `place`, which lies in `own`; None: write none.

    What lies in a skill's folder beside its text is copied; links stay links. FleetError if that can't be done.
    """
    try:
        os.makedirs(own, mode=0o700, exist_ok=True)
        # Most agents have no skills: nothing to remove, which takes file systems milliseconds, and nothing to write.
        if skills or os.listdir(own):
            _deploy(own, place, skills)
    except OSError as error:
        why = error.strerror or str(error)
        raise FleetError(
            f"skills can't be written to {own}: {why}", hint="look at the folders of its skills"
        ) from error


def _deploy(own: str, place: str | None, skills: tuple[Skill, ...]) -> None:
    import shutil  # noqa: PLC0415 -- only for agents that have skills

    shutil.rmtree(own, ignore_errors=True)
    os.makedirs(own, mode=0o700, exist_ok=True)
    for skill in skills if place is not None else ():
        target = os.path.dirname(text_path(place or own, skill))
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if skill.folder is None:
            os.makedirs(target, mode=0o700, exist_ok=True)
        else:
            shutil.copytree(skill.folder, target, symlinks=True, ignore=shutil.ignore_patterns(*SKILL_TEXTS))
        write_atomic(text_path(place or own, skill), skill.text)


def text_path(place: str, skill: Skill) -> str:
    """Where the text of a skill lies below `place`."""
    return os.path.join(place, skill.name, SKILL_TEXTS[-1])
