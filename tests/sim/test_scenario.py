"""Scenario files of claudeless are read strictly and matched in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.sim.scenario import FAILURES, Pattern, Scenario, ScenarioError, check, load
from nbs_fleet.sim.script import Model, Reply

Json = dict[str, Any]


def made(data: Json) -> Scenario:
    return check(data, "s", lambda name: f"<{name}>")


def complaints(data: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        made(data)
    return str(caught.value).splitlines()


def rule(pattern: Json, response: Any, **more: Any) -> Json:
    return {"pattern": pattern, "response": response, **more}


ANY = {"type": "any"}


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        (Pattern("exact", "go"), "go", "go on"),
        (Pattern("contains", "go"), "let us go on", "Go"),
        (Pattern("regex", r"\bv\d+"), "use v2", "use x2"),
        (Pattern("glob", "fix *.py"), "fix a.py", "fix a.js"),
        (Pattern("any"), "", None),
    ],
)
def test_each_kind_of_pattern(pattern: Pattern, takes: str, leaves: str | None) -> None:
    assert pattern.takes(takes)
    assert leaves is None or not pattern.takes(leaves)


def test_everything_that_is_wrong_is_said_at_once_with_its_place() -> None:
    data = {
        "trusted": "yes",
        "respones": [],
        "permission_mode": "acceptEdits",
        "responses": [
            {"patern": ANY, "response": "x"},
            rule({"type": "regexp", "pattern": "x"}, {"text": 3, "tool_calls": [{"input": {}}]}),
            {"pattern": {"type": "regex", "pattern": "("}, "failure": {"type": "meltdown"}},
            rule(ANY, "x", max_matches=True, turns=[{"expect": ANY}]),
        ],
        "tool_execution": {"mode": "dead", "tools": {"Bash": {"approve": True}}},
        "nbs_fleet": {"startup": ["coffee"]},
    }
    assert complaints(data) == [
        "s: trusted: must be true or false",
        's: respones: unknown key; did you mean "responses"?',
        's: responses[0].patern: unknown key; did you mean "pattern"?',
        's: responses[0]: needs "pattern"',
        "s: responses[1].pattern.type: must be one of exact, contains, glob, regex, any",
        "s: responses[1].response.text: must be a string",
        's: responses[1].response.tool_calls[0]: needs "tool"',
        "s: responses[2].pattern.pattern: is no regular expression: missing ), unterminated subpattern at position 0",
        f"s: responses[2].failure.type: must be one of {', '.join(FAILURES)}",
        "s: responses[3].max_matches: must be a whole number",
        's: responses[3].turns[0]: needs "response"',
        's: tool_execution.mode: must be "live" or "mock"',
        's: tool_execution.tools.Bash.approve: unknown key; did you mean "auto_approve"?',
        "s: permission_mode: must be one of default, plan, accept-edits, bypass-permissions, dont-ask, delegate",
        "s: nbs_fleet.startup: must list only trust, apikey, mcp",
    ]
    assert complaints([]) == ["s: must be a table"]


def test_the_defaults_need_no_account() -> None:
    scenario = made({})
    assert (scenario.trusted, scenario.logged_in, scenario.live) == (True, True, True)
    assert made({"permission_mode": "bypass-permissions"}).permission_mode == "bypassPermissions"


def test_toml_and_json_files_are_read_and_file_references_filled_in(tmp_path: Path) -> None:
    (tmp_path / "body.txt").write_text("the body")
    (tmp_path / "data.json").write_text('{"k": 1}')
    toml = tmp_path / "s.toml"
    toml.write_text(
        '[[responses]]\npattern = {type = "any"}\n[responses.response]\ntext = "t"\n'
        '[[responses.response.tool_calls]]\ntool = "Write"\n'
        'input = {content = {"$file" = "body.txt"}, data = {"$file" = "data.json"}}\n'
    )
    response = load(str(toml)).rules[0].response
    assert response is not None
    assert response.calls[0].input == {"content": "the body", "data": {"k": 1}}
    json_file = tmp_path / "s.json"
    json_file.write_text('{"default_response": "hi"}')
    default = load(str(json_file)).default
    assert default is not None
    assert default.text == "hi"


@pytest.mark.parametrize(("name", "text"), [("s.toml", "= broken"), ("s.json", "{"), ("none.toml", None)])
def test_a_file_that_can_t_be_read_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError, match=str(tmp_path / name)):
        load(str(tmp_path / name))


def test_a_missing_file_reference_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(
        '{"responses": [{"pattern": {"type": "any"}, "response": {"tool_calls": '
        '[{"tool": "Write", "input": {"content": {"$file": "gone"}}}]}}]}'
    )
    with pytest.raises(ScenarioError, match=r"tool_calls\[0\].input.content: can't read gone"):
        load(str(path))


# --- the scripted model


def user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def answer(model: Model, prompt: str | None, results: str = "", chosen: str | None = None) -> Reply:
    return model.reply([user(prompt or "x")], prompt, results, "/plan.md", chosen)


def test_the_first_rule_that_matches_wins_until_it_is_spent() -> None:
    scenario = made(
        {
            "responses": [
                rule({"type": "contains", "text": "go"}, "first", max_matches=1),
                rule({"type": "contains", "text": "go"}, "second"),
            ]
        }
    )
    model = Model(scenario)
    assert [answer(model, "go").text for _ in range(3)] == ["first", "second", "second"]


def test_turns_answer_the_tool_results_of_the_same_prompt() -> None:
    calls = {"text": "look", "tool_calls": [{"tool": "Bash", "input": {"command": "ls"}}]}
    turns = [{"expect": {"type": "contains", "text": "file"}, "response": "found"}]
    model = Model(made({"responses": [rule(ANY, calls, turns=turns)]}))
    assert answer(model, "go").calls[0].tool == "Bash"
    assert answer(model, None, results="a file").text == "found"
    assert answer(model, None).text == "Done."


def test_turns_whose_expectation_fails_are_given_up_and_the_rules_tried_on_the_output() -> None:
    turns = [{"expect": {"type": "exact", "text": "never"}, "response": "no"}]
    model = Model(
        made(
            {
                "responses": [
                    rule({"type": "exact", "text": "go"}, "going", turns=turns),
                    rule({"type": "contains", "text": "output"}, "saw the output"),
                ]
            }
        )
    )
    answer(model, "go")
    assert answer(model, None, results="some output").text == "saw the output"


def test_a_person_s_choice_can_be_matched_as_json() -> None:
    model = Model(
        made(
            {
                "responses": [
                    rule({"type": "contains", "text": '"answers"'}, "Thanks."),
                    rule(ANY, {"tool_calls": [{"tool": "AskUserQuestion", "input": {}}]}),
                ]
            }
        )
    )
    answer(model, "ask")
    assert answer(model, None, chosen='{"answers": {}}').text == "Thanks."


def test_what_was_said_in_mid_turn_is_matched_when_the_turns_are_over() -> None:
    turns = [{"expect": ANY, "response": "still on it"}]
    model = Model(made({"responses": [rule({"type": "exact", "text": "go"}, "x", turns=turns), rule(ANY, "heard")]}))
    answer(model, "go")
    assert answer(model, "by the way").text == "still on it"
    assert answer(model, None).text == "heard"


def test_directives_come_after_the_rules_and_before_the_default() -> None:
    model = Model(
        made({"responses": [rule({"type": "exact", "text": "rule"}, "ruled")], "default_response": "default"})
    )
    assert answer(model, "rule").text == "ruled"
    assert answer(model, "[[say scripted]]").text == "scripted"
    assert answer(model, "else").text == "default"


@pytest.mark.parametrize(
    ("directive", "wanted"),
    [
        ("[[say a [b] c]]", Reply("a [b] c")),
        ("[[slow 2 a b]]", Reply("a b", stream=2.0)),
        ("[[wait 1.5 late]]", Reply("late", wait=1.5)),
        ("[[usage 900 big]]", Reply("big", input_tokens=900)),
        ("[[err 429 2]]", Reply(status=429, times=2)),
        ("[[streamerr]]", Reply("partial text before the error", broken="overloaded_error")),
        ("[[stop max_tokens cut]]", Reply("cut", stop_reason="max_tokens")),
    ],
)
def test_each_directive_makes_its_reply(directive: str, wanted: Reply) -> None:
    assert answer(Model(Scenario()), directive)._replace(key="") == wanted


def test_tool_directives_make_calls() -> None:
    model = Model(Scenario())
    assert answer(model, "[[bash ls -l]]").calls[0].input["command"] == "ls -l"
    assert answer(model, "[[bg sleep 9]]").calls[0].input["run_in_background"] is True
    both = answer(model, '[[saytool I read || Read {"file_path": "/x"}]]')
    assert (both.text, both.calls[0].tool, both.calls[0].input) == ("I read", "Read", {"file_path": "/x"})
    plan = answer(model, "[[plan]]").calls[0]
    assert (plan.tool, plan.input["file_path"]) == ("Write", "/plan.md")
    two = answer(model, '[[tools [["Read", {"file_path": "/a"}], ["Bash", {"command": "ls"}]]]]')
    assert [call.tool for call in two.calls] == ["Read", "Bash"]
    assert answer(model, "[[tool Odd not json]]").calls[0].input == {}


def test_directives_are_taken_one_per_reply_then_the_prompt_is_echoed() -> None:
    model, messages = Model(Scenario()), [user("[[say one]] [[say two]]")]
    assert model.reply(messages, "x", "", "").text == "one"
    messages.append(assistant("one"))
    assert model.reply(messages, None, "", "").text == "two"
    messages += [assistant("two"), user("and   now?\nplease")]
    assert model.reply(messages, "x", "", "").text == "ok: and   now? please"


def test_directives_inside_the_client_s_own_reminders_count_only_if_they_are_there() -> None:
    mail = "<task-notification>x</task-notification>\n<system-reminder>\n[[say from mail]]\n</system-reminder>"
    assert answer(Model(Scenario()), mail).text == "from mail"
    assert answer(Model(Scenario()), "<system-reminder>noise</system-reminder>hello").text == "ok: hello"
