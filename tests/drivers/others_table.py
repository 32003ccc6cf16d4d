"""What each captured screen of the other clients shows, reviewed by eye: the expected reading, then the captures."""

from __future__ import annotations

CODEX: dict[str, str] = {
    "blocked draft": """
        codex-04-nogap codex-21-multi-typed codex-23-long codex-24-queue-nodaemon
    """,
    "blocked login": """
        codex-31-virgin-login
    """,
    "blocked permission": """
        codex-16-approval
    """,
    "blocked trust": """
        codex-01-first codex-08-hooktrust
    """,
    "busy": """
        codex-11-busy codex-15-busy-tool
    """,
    "idle": """
        codex-02-after-trust codex-05-answer codex-06-gaps codex-09-afterhooktrust codex-10-tool
        codex-12-busy-queued codex-13-after-queued codex-14-busy codex-17-approval-esc codex-18-queue
        codex-19-queue-drain codex-20-yolo codex-22-paste codex-26-resume codex-27-after-resume
        codex-28-stopblock codex-30-iso-cflags codex-32-queue
    """,
    "unknown": """
        codex-03-warning codex-07-quit codex-25-quit codex-29-exit-inline
    """,
}
"""Codex 0.171.0 at 80 columns, without the title. Two are named for the turn that had just ended when they were taken."""

COPILOT: dict[str, str] = {
    "blocked draft": """
        copilot-26-draft copilot-27-draft-rows copilot-30-after
    """,
    "blocked login": """
        copilot-20-virgin-after-trust copilot-22-error401
    """,
    "blocked permission": """
        copilot-07-approval copilot-13-approval2
    """,
    "blocked question": """
        copilot-24-question
    """,
    "blocked trust": """
        copilot-01-first copilot-14-yolo-untrusted copilot-19-virgin
    """,
    "busy": """
        copilot-04-busy copilot-05-busy-queued copilot-06-afterqueue copilot-17-apierror
        copilot-23-retrying copilot-29-busy-draft
    """,
    "idle": """
        copilot-02-idle copilot-03-nogap copilot-08-approved copilot-09-paste copilot-10-long
        copilot-12-clean-idle copilot-15-allowall-env copilot-16-resume copilot-18-plugin
        copilot-21-error400 copilot-25-question-cancelled
    """,
    "limited": """
        copilot-31-error429
    """,
    "unknown": """
        copilot-11-exit copilot-28-loading
    """,
}
"""GitHub Copilot CLI 1.0.102 at 80 and 100 columns."""

QWEN: dict[str, str] = {
    "blocked draft": """
        qwen-07-draft qwen-13-shell
    """,
    "blocked login": """
        qwen-10-error401
    """,
    "blocked permission": """
        qwen-04-approval
    """,
    "busy": """
        qwen-03-busy qwen-08-busy-draft qwen-09-queued
    """,
    "idle": """
        qwen-01-first qwen-02-inputfile qwen-05-approved qwen-11-error400 qwen-12-interrupted qwen-14-ctrlc
    """,
    "unknown": """
        qwen-06-exit
    """,
}
"""Qwen Code 0.15.10 at 80 and 100 columns."""

GEMINI: dict[str, str] = {
    "blocked draft": """
        gemini-04-nogap gemini-10-paste-nogap
    """,
    "blocked login": """
        gemini-02-after-trust
    """,
    "blocked permission": """
        gemini-08-approval
    """,
    "blocked question": """
        gemini-11-exit
    """,
    "blocked trust": """
        gemini-01-first
    """,
    "busy": """
        gemini-06-busy gemini-07-busy-queued
    """,
    "idle": """
        gemini-03-idle gemini-05-answer gemini-09-approved gemini-12-yolo gemini-13-iso-system
        gemini-14-rules
    """,
}
"""Gemini CLI 0.61.0 at 80 columns."""

OPENCODE: dict[str, str] = {
    "blocked permission": """
        opencode-09-approval
    """,
    "busy": """
        opencode-03-busy opencode-04-queued opencode-08-initial
    """,
    "idle": """
        opencode-01-first opencode-02-nogap opencode-05-tool opencode-06-paste opencode-07-exit
        opencode-10-approved opencode-11-async opencode-13-auto-long opencode-14-realtext opencode-15-iso
        opencode-16-virgin opencode-17-sidebar
    """,
    "unknown": """
        opencode-12-exit
    """,
}
"""opencode 1.18.33 at 80 columns."""

AIDER: dict[str, str] = {
    "busy": """
        aider-03-busy
    """,
    "idle": """
        aider-01-first aider-02-nogap
    """,
}
"""aider 0.86.2 at 80 columns, by the patterns of the generic reader."""

AMP: dict[str, str] = {
    "blocked login": """
        amp-01-virgin
    """,
}
"""Amp 0.0.1790142911 at 80 columns, by the patterns of the generic reader."""
