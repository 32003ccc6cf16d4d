"""The model's API fails: what is shown, recorded and told to hooks."""

from __future__ import annotations

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Errors of the API"
TWICE = Setting(env={"CLAUDE_CODE_MAX_RETRIES": "2"})

TABLE = (
    *(
        play(f"error-{status}", f"status {status}, without retries", f"""
            until idle
            say [[err {status} 9]]
            until rest
        """)
        for status in (400, 401, 403, 404, 413, 429, 500, 503, 529)
    ),
    play("error-stream", "an error in mid-stream", """
        until idle
        say [[streamerr overloaded_error]]
        until rest
    """),
    play("error-refusal", "the model refuses", """
        until idle
        say [[stop refusal no]]
        until rest
    """),
    play("retry-500", "status 500, tried again twice", """
        until idle
        say [[err 500 2]] [[say well]]
        until rest
    """, TWICE),
    play("retry-500-shown", "a retry is told on the screen", """
        until idle
        say [[err 500 9]]
        shows attempt 2/3
        until rest
    """, Setting(env={"CLAUDE_CODE_MAX_RETRIES": "3"})),
    play("retry-429", "status 429 until the client gives up", """
        until idle
        say [[err 429 9]]
        until rest
    """, TWICE),
    play("retry-escape", "Escape while the client waits to try again", """
        until idle
        say [[err 500 9]]
        shows attempt 3/
        keys Escape
        look
    """, Setting(env={"CLAUDE_CODE_MAX_RETRIES": "10"}), aside="-rows"),
    play("error-after-tool", "an error after a tool call", """
        until idle
        say [[bash echo hi]] [[err 500 9]]
        until rest
    """),
)  # fmt: skip
