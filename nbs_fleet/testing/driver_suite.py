"""What every driver must do, whatever its client: tests for pytest, run by a subclass that gives the fixture `driver`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.drivers.base import PROMPT, Capabilities, Dialog, Driver, Facts, Option, Screen, able
from nbs_fleet.drivers.dialect import EVENT, OURS, Dialect
from nbs_fleet.drivers.recipes import TEXT, Command, Lines, MailFolder, Request
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Agent, Dialogs

SESSION = "11111111-2222-4333-8444-555555555501"
SCREENS: tuple[tuple[str, ...], ...] = (
    (),
    ("",),
    ("$ ",),
    ("x" * 500,) * 60,
    ("─" * 80, "❯", "─" * 80),
    ("\0", "\x1b[31m"),
)


def facts(driver: Driver, *, resume: bool = False, has_prompt: bool = False, **given: Any) -> Facts:
    """Facts of one start of an agent of this driver."""
    agent = Agent(handle="bo-1", base="bo", role=None, driver=driver.name, dir="/srv/project", **given)
    return Facts(
        agent=agent,
        team="review",
        run="/state/review",
        agent_dir="/state/review/agents/bo-1",
        settings_path="/state/review/agents/bo-1/settings.json",
        session_id=SESSION,
        resume=resume,
        has_prompt=has_prompt,
        home="/home/ana",
        env=dict(agent.env),
        real_dir="/srv/project",
    )


class DriverSuite:
    """The contract of `drivers/base.py`, as far as it can be seen without a client."""

    def test_it_describes_itself(self, driver: Driver) -> None:
        assert driver.name
        assert driver.program
        assert isinstance(driver.capabilities, Capabilities)
        assert driver.stop_signals
        assert driver.start_seconds > 0
        assert driver.min_version is None or len(driver.min_version) >= 1

    def test_a_launch_is_a_value_that_depends_on_its_facts_alone(self, driver: Driver) -> None:
        given = facts(driver, has_prompt=True, model="some-model")
        assert driver.launch(given) == type(driver)().launch(given)

    def test_a_prompt_is_one_mark_and_only_where_there_is_one(self, driver: Driver) -> None:
        assert driver.launch(facts(driver, has_prompt=True)).argv.count(PROMPT) == 1
        assert PROMPT not in driver.launch(facts(driver)).argv

    def test_a_command_of_the_team_file_comes_first(self, driver: Driver) -> None:
        launch = driver.launch(facts(driver, command=("nice", "-n", "5", "client")))
        assert launch.argv[:4] == ("nice", "-n", "5", "client")

    def test_a_session_is_begun_or_resumed_never_both(self, driver: Driver) -> None:
        fresh, later = driver.launch(facts(driver)).argv, driver.launch(facts(driver, resume=True)).argv
        if driver.capabilities.session_id:
            assert fresh.count(SESSION) == 1
        if driver.capabilities.resume:
            assert sum(SESSION in word for word in later) == 1
            assert fresh != later

    def test_variables_of_the_team_file_are_left_to_it(self, driver: Driver) -> None:
        plain = driver.launch(facts(driver))
        own = dict.fromkeys((*plain.env, *plain.unset), "mine")
        launch = driver.launch(facts(driver, env=own))
        assert not own.keys() & launch.env.keys()
        assert not own.keys() & set(launch.unset)

    def test_nothing_is_set_and_dropped_at_once(self, driver: Driver) -> None:
        launch = driver.launch(facts(driver, dialogs=Dialogs(trust="accept", bypass="accept")))
        assert not launch.env.keys() & set(launch.unset)

    def test_one_turn_without_a_terminal_has_the_prompt_as_one_word(self, driver: Driver) -> None:
        argv = driver.one_shot(facts(driver, has_prompt=True, command=("/opt/client",)))
        assert argv is None or (argv[0] == "/opt/client" and argv.count(PROMPT) == 1)

    def test_what_came_with_a_later_version_is_not_used_before_it(self, driver: Driver) -> None:
        assert able(driver, None) == driver.capabilities
        for name, first in driver.since.items():
            assert getattr(driver.capabilities, name) is True
            assert getattr(able(driver, ".".join(map(str, first))), name) is True
            assert getattr(able(driver, "0.0.1"), name) is False

    def test_the_inbox_fits_the_capabilities_and_holds_the_text_once(self, driver: Driver) -> None:
        inbox = driver.inbox(facts(driver), SESSION)
        assert (inbox is not None) == driver.capabilities.native_inbox
        assert isinstance(inbox, MailFolder) == driver.capabilities.mail
        match inbox:
            case Command():
                assert inbox.argv.count(TEXT) == 1
            case Lines():
                assert inbox.path in driver.launch(facts(driver)).files
                assert json.dumps(inbox.line).count(TEXT) == 1
            case Request():
                assert json.dumps(inbox.body).count(TEXT) == 1
                assert inbox.url.startswith(("http://127.0.0.1:", "http://[::1]:"))

    def test_hooks_are_described_by_a_dialect_that_can_do_what_is_promised(self, driver: Driver) -> None:
        can, dialect = driver.capabilities, driver.dialect
        assert (dialect is not None) == can.hooks
        shapes = dialect or Dialect("none", ())
        assert can.stop_block == bool(shapes.block)
        assert can.permission_hook <= bool(shapes.allow and shapes.deny)
        assert can.context_before_tool == ("PreToolUse" in shapes.context)
        assert can.context_after_tool == ("PostToolUse" in shapes.context)
        assert {event.ours for event in shapes.events} <= set(OURS)

    def test_a_dialect_has_a_place_for_the_text_in_each_shape(self, driver: Driver) -> None:
        dialect = driver.dialect or Dialect("none", ())
        for shape in (*dialect.context.values(), dialect.block, dialect.deny, dialect.refuse):
            assert shape is None or TEXT in json.dumps(shape)
        assert EVENT not in json.dumps([dialect.block, dialect.allow, dialect.deny, dialect.refuse])

    def test_the_hook_programs_policies_are_among_the_files_of_a_start(self, driver: Driver) -> None:
        files = driver.launch(facts(driver, stop="signal")).files
        assert ("/state/review/agents/bo-1/hooks.json" in files) == driver.capabilities.hooks

    def test_what_is_changed_in_foreign_files_is_a_value_and_absolute(self, driver: Driver) -> None:
        given = facts(driver)
        assert driver.deploy(given) == type(driver)().deploy(given)
        assert all(one.path.startswith("/") for one in driver.deploy(given))

    def test_files_are_written_below_the_agents_own_folder_only(self, driver: Driver) -> None:
        launch = driver.launch(facts(driver, has_prompt=True))
        assert all(path.startswith("/state/review/agents/bo-1/") for path in launch.files)

    def test_places_are_absolute_and_fit_the_capabilities(self, driver: Driver) -> None:
        places = driver.places(facts(driver))
        assert (places.state_dir is not None) == driver.capabilities.state_file
        every = (places.state_dir, places.transcript, places.pattern, places.sessions)
        assert all(path is None or path.startswith("/") for path in every)
        assert not (places.transcript and places.pattern)
        assert not driver.capabilities.resume or places.transcript or places.pattern

    def test_settings_can_be_written_as_json_and_hold_the_team_files_own(self, driver: Driver) -> None:
        settings = driver.settings(facts(driver, settings={"anything": {"of": "theirs"}}))
        assert json.loads(json.dumps(settings))["anything"] == {"of": "theirs"}

    @pytest.mark.parametrize("rows", SCREENS)
    def test_a_screen_that_says_nothing_is_unknown_or_idle_but_never_a_dialog(
        self, driver: Driver, rows: tuple[str, ...]
    ) -> None:
        reading = driver.read_screen(Screen(rows, 80, len(rows)))
        assert reading.dialog is None
        assert reading.state in (AgentState.UNKNOWN, AgentState.IDLE)

    @pytest.mark.parametrize("text", ["", "{", "null", "[1]", "\0", '{"pid": 1'])
    def test_half_a_file_of_the_client_is_no_news(self, driver: Driver, text: str) -> None:
        assert driver.read_state_file(text) is None
        assert driver.read_hook(text) is None
        turns = driver.read_transcript(text, text)
        assert (turns.prompts, turns.finished, turns.reading.state) == (0, 0, AgentState.UNKNOWN)
        assert driver.proofs(text) == ()

    def test_a_strange_title_says_nothing(self, driver: Driver) -> None:
        assert driver.read_title("some-host").state is AgentState.UNKNOWN

    @pytest.mark.parametrize("kind", list(BlockedKind))
    def test_what_is_left_to_a_person_is_never_answered(self, driver: Driver, kind: BlockedKind) -> None:
        dialog = Dialog(kind, "text", (Option("Yes", "1"), Option("No", "2")), 0)
        assert driver.answer(dialog, Dialogs()) is None

    @pytest.mark.parametrize("wish", ["accept", "approve", "deny"])
    def test_a_question_is_never_answered_by_keys(self, driver: Driver, wish: str) -> None:
        dialog = Dialog(BlockedKind.QUESTION, "text", (Option("Yes", "1"), Option("No", "2")), 0)
        every: dict[str, Any] = dict.fromkeys(Dialogs.__struct_fields__, wish)
        assert driver.answer(dialog, Dialogs(**every)) is None

    def test_ends_that_every_client_has_are_told(self, driver: Driver) -> None:
        assert driver.read_exit(0, None, ()) is ExitKind.CLEAN
        assert driver.read_exit(None, 9, ()) is ExitKind.CRASH
        assert driver.read_exit(127, None, ("nbs-fleet: program not found: x",)) is ExitKind.MISSING_PROGRAM
        assert driver.read_exit(126, None, ("nbs-fleet: not executable: x",)) is ExitKind.NOT_EXECUTABLE

    def test_a_version_is_none_where_the_output_has_none(self, driver: Driver) -> None:
        assert driver.parse_version("") is None
        assert driver.parse_version("something else entirely\n") is None
