"""Starting and ending: dialogs before the box, refusals, resumption, exit codes."""

from __future__ import annotations

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Starting and ending"
U = "11111111-2222-4333-8444-555555555501"
NAMED = Setting(args=("--session-id", U, "--name", "ana"))
SESSION = Setting(args=("--session-id", U))
BYPASS = ("--dangerously-skip-permissions",)
LOUD = {"skipDangerousModePermissionPrompt": False}
FRESH = Setting(fresh=True)
NO_KEY = Setting(config={"customApiKeyResponses": {"approved": [], "rejected": []}})
MCP = Setting(files={".mcp.json": '{"mcpServers": {"foo": {"command": "true", "args": []}}}'})


def project_settings(text: str) -> Setting:
    """A project with this settings file."""
    return Setting(files={".claude/settings.json": text})


TABLE = (
    play("start-plain", "a start in a trusted folder", """
        until idle
    """),
    play("start-named", "a start with a name", """
        until idle
    """, NAMED),
    play("start-prompt", "a prompt on the command line", """
        shows ● from the start
        until idle
    """, Setting(args=("[[say from the start]]",))),
    play("start-plan-mode", "a start in plan mode", """
        until idle
    """, Setting(args=("--permission-mode", "plan"))),
    play("start-model", "a model that nobody knows is taken as it is", """
        until idle
        say [[say hi]]
        until idle
    """, Setting(args=("--model", "some-model-9"))),
    play("trust-yes", "the trust dialog, answered with 1", """
        until trust
        keys 1
        until idle
    """, FRESH),
    play("trust-enter", "the trust dialog, answered with Enter", """
        until trust
        keys Enter
        until idle
    """, FRESH),
    play("trust-no", "the trust dialog, answered with 2: exit 1", """
        until trust
        keys 2
        gone
    """, FRESH),
    play("trust-escape", "the trust dialog, left with Escape: exit 1", """
        until trust
        keys Escape
        gone
    """, FRESH),
    play("trust-text", "text typed into the trust dialog goes nowhere", """
        until trust
        blind a message for nobody
        look
        keys 1
        until idle
    """, FRESH),
    play("trust-down-up", "arrows move the cursor of the trust dialog", """
        until trust
        keys Down
        look
        keys Up Enter
        until idle
    """, FRESH),
    play("trust-sandboxed", "CLAUDE_CODE_SANDBOXED skips the trust dialog", """
        until idle
    """, Setting(fresh=True, env={"CLAUDE_CODE_SANDBOXED": "1"})),
    play("bypass-yes", "the bypass warning, answered with 2", """
        until bypass
        keys 2
        until idle
    """, Setting(args=BYPASS, settings=LOUD)),
    play("bypass-enter", "the bypass warning, where Enter takes `No, exit`: exit 1", """
        until bypass
        keys Enter
        gone
    """, Setting(args=BYPASS, settings=LOUD)),
    play("trust-then-bypass", "trust first, then the bypass warning", """
        until trust
        keys 1
        until bypass
        keys 2
        until idle
    """, Setting(args=BYPASS, settings=LOUD, fresh=True)),
    play("bypass-root", "root without IS_SANDBOX is refused: exit 1", """
        gone
    """, Setting(args=BYPASS, env={"IS_SANDBOX": ""})),
    play("apikey-yes", "a key that nobody approved yet, answered with 1", """
        until apikey
        keys 1
        until idle
    """, NO_KEY),
    play("mcp-yes", "a server of .mcp.json, answered with 1", """
        until mcp
        keys 1
        until idle
    """, MCP, aside="-rows"),
    play("mcp-no", "a server of .mcp.json, answered with 3", """
        until mcp
        keys 3
        until idle
    """, MCP, aside="-rows"),
    play("settings-malformed", "a settings file that is no JSON, gone on without", """
        until settings
        keys 3
        until idle
    """, project_settings("{")),
    play("settings-malformed-exit", "a settings file that is no JSON, left with 2: exit 1", """
        until settings
        keys 2
        gone
    """, project_settings("{")),
    play("settings-unknown-event", "a hook event that nobody knows is a warning", """
        until settings
        keys 1
        until idle
    """, project_settings('{"hooks": {"Coffee": [{"hooks": [{"type": "command", "command": "true"}]}]}}')),
    play("settings-bad-hook", "a hook without a command is an error", """
        until settings
        keys 3
        until idle
    """, project_settings('{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}')),
    play("settings-unknown-key", "an unknown key is taken in silence", """
        until idle
    """, project_settings('{"coffee": true}')),
    play("settings-missing", "a --settings file that is not there: exit 1", """
        gone
    """, Setting(args=("--settings", "/nonexistent/settings.json"))),
    play("session-id-bad", "a session id that is no UUID: exit 1", """
        gone
    """, Setting(args=("--session-id", "ana"))),
    play("session-id-used", "a session id that is on disk already: exit 1", """
        until idle
        say [[say hi]]
        until idle
        keys C-d C-d
        gone
        start --session-id 11111111-2222-4333-8444-555555555501
        gone
    """, SESSION),
    play("option-unknown", "an option that nobody knows: exit 1", """
        gone
    """, Setting(args=("--coffee",))),
    play("mode-unknown", "a permission mode that nobody knows: exit 1", """
        gone
    """, Setting(args=("--permission-mode", "coffee"))),
    play("resume-unknown", "a session that is not there can't be resumed: exit 1", """
        gone
    """, Setting(args=("--resume", U))),
    play("continue-none", "nothing to continue: exit 1", """
        gone
    """, Setting(args=("--continue",))),
    play("continue", "the latest session goes on", """
        until idle
        say [[say hi]]
        until idle
        keys C-d C-d
        gone
        start --continue
        until idle
        say [[say on]]
        until idle
    """, SESSION),
    play("resume-name", "a session resumed by its name", """
        until idle
        say [[say hi]]
        until idle
        keys C-d C-d
        gone
        start --resume ana
        until idle
        say [[say on]]
        until idle
    """, NAMED),
    play("resume-prompt", "a session resumed with a prompt", """
        until idle
        say [[say hi]]
        until idle
        keys C-d C-d
        gone
        start --resume 11111111-2222-4333-8444-555555555501 '[[say on]]'
        until idle
    """, SESSION),
    play("resume-after-kill", "a killed client's session is resumed", """
        until idle
        say [[say remembered]]
        until idle
        signal KILL
        gone
        start --resume 11111111-2222-4333-8444-555555555501
        until idle
        say [[say on]]
        until idle
    """, NAMED),
    play("resume-mid-tool", "a client killed while a tool runs comes back idle, and the call is dropped", """
        until idle
        say [[bash sleep 30]] [[say done]]
        shows Running…
        look
        signal KILL
        gone
        start --resume 11111111-2222-4333-8444-555555555501
        until idle
        say [[say on]]
        until idle
    """, Setting(args=("--session-id", U, *BYPASS)), aside="-rows"),
    play("exit-command", "`/exit`: exit 0 and the way back", """
        until idle
        say [[say hi]]
        until idle
        say /exit
        gone
    """, NAMED, aside="-rows -transcript"),
    play("exit-ctrl-d", "Ctrl+D twice: exit 0", """
        until idle
        keys C-d C-d
        gone
    """),
    play("exit-ctrl-c", "Ctrl+C twice: exit 0", """
        until idle
        keys C-c C-c
        gone
    """),
    play("exit-term", "SIGTERM: exit 143", """
        until idle
        signal TERM
        gone
    """),
    play("exit-int", "SIGINT: exit 0", """
        until idle
        signal INT
        gone
    """),
    play("exit-hup", "SIGHUP: exit 129", """
        until idle
        signal HUP
        gone
    """),
    play("exit-kill", "SIGKILL: exit 137, the state file stays", """
        until idle
        signal KILL
        gone
    """),
    play("exit-slow-hook", "a SessionEnd hook that takes too long is cut", """
        until idle
        effect SessionEnd sleep 20
        keys C-d C-d
        gone
    """),
    play("exit-busy", "SIGTERM in mid-turn", """
        until idle
        say [[slow 20 a b c d e f g h]]
        until busy
        requests 1
        look
        signal TERM
        gone
    """, aside="-rows"),
)  # fmt: skip
