'''The command line: one file per command, one table of commands (`app.py`), one printer (`output.py`).

How to write a command. Its module holds one function with a typed signature. `typer.Argument` and `typer.Option` in
its annotations say how a parameter is typed on the command line (what several commands share is in `params.py`), and
its default is its default:

    import typer

    from nbs_fleet.cli import output
    from nbs_fleet.cli.params import Handle, Json, TeamName

    Rows = Annotated[int, typer.Option("--rows", "-r", min=1, help="so many rows")]

    def peek(handle: Handle, *, rows: Rows = 24, team: TeamName = None, json: Json = False) -> int | None:
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
