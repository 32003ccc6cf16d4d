'''The command line: one file per command, one table of commands (`app.py`), one printer (`output.py`).

How to write a command. Its module holds one function with a typed signature; a parameter's marker says how it is
typed on the command line (`params.py`), and its default is its default:

    from nbs_fleet.cli import output
    from nbs_fleet.cli.params import Json, TeamName, arg

    def peek(handle: Annotated[str, arg("HANDLE", "the agent", complete="handle")], *,
             team: TeamName = None, json: Json = False) -> int | None:
        """Show an agent's current screen, or its last capture.

        More text, if any.

        For example:
            nbs-fleet peek ana
        """

- The docstring is the help; each line under `For example:` is run through the parser by a test.
- The function returns its exit code (None is 0) and raises children of FleetError for everything a person can mend.
- It prints through `output` only, and imports what is slow (tmux, YAML, templates) inside the function.
- `app.COMMANDS` gets one line: the command's name, its module and function, its summary.
- A command that is a person's (`restart`, `stop`, `down`, `attach`) calls `guard.require_person` first.
'''
