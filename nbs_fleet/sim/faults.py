"""Failures of the model's API: their texts, kinds and retries (Claude Code 2.1.197, measured)."""

from __future__ import annotations

from typing import Any

from nbs_fleet.sim.scenario import Failure
from nbs_fleet.sim.transcript import new_uuid

Json = dict[str, Any]
MOST = 10
_AGAIN = "usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1)."


class ApiError(Exception):
    """A request that failed for good.

    `quiet` ones hang below the prompt instead of standing alone; `tail` is on the screen only.
    """

    def __init__(
        self,
        text: str,
        kind: str,
        *,
        status: int | None = None,
        details: str = "",
        quiet: bool = False,
        tail: str = "",
        refused: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.kind = kind
        self.status = status
        self.details = details
        self.quiet = quiet
        self.tail = tail
        self.refused = refused


class Retry:
    """How long to wait before the next try; `most` from CLAUDE_CODE_MAX_RETRIES."""

    def __init__(self, env: dict[str, str]) -> None:
        given = env.get("CLAUDE_CODE_MAX_RETRIES", "")
        self.most = int(given) if given.isdigit() else MOST
        self.attempt = 0

    def next(self, status: int) -> float | None:
        """Seconds, or None when this status is not tried again."""
        self.attempt += 1
        limits = {400: 0, 403: 0, 413: 0, 401: 1, 529: 2}
        if status == 404 and self.attempt == 1:
            return 0.0  # once more at once, without streaming
        if status == 404 or self.attempt > min(self.most, limits.get(status, self.most)):
            return None
        return min(32.0, 0.5 * float(1 << (self.attempt - 1)))


def from_status(status: int, *, repeated: int = 0, model: str = "the model") -> ApiError:
    """The error of an HTTP status."""
    if status == 400:
        shown = (
            "Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~1685 "
            "tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange "
            "conversation cannot be compacted; reduce attached files/tools or start with less context."
        )
        details = '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: '
        details += '250000 tokens > 200000 maximum"}}'
        tail = " · /clear to start fresh"
        return ApiError(shown, "invalid_request", status=400, details=details, quiet=True, tail=tail)
    if status == 404:
        text = (
            f"There's an issue with the selected model ({model}). It may not exist or you may not have access to it. "
            "Run /model to pick a different model."
        )
        return ApiError(text, "model_not_found", status=404)
    if status == 413:
        text = "Request too large (max 32MB). Double press esc to go back and try with a smaller file."
        error = '{"type":"error","error":{"type":"request_too_large","message":"scripted error 413"}}'
        return ApiError(text, "invalid_request", status=413, details=f"request_too_large: 413 {error}")
    if status == 401:
        return ApiError("Invalid API key · Fix external API key", "authentication_failed", status=401, quiet=True)
    if status == 403:
        text = "Please run /login · API Error: 403 scripted error 403"
        return ApiError(text, "authentication_failed", status=403)
    if status == 429:
        text = (
            "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try "
            "again later."
        )
        return ApiError(text, "rate_limit", status=429)
    if status == 529 and repeated > 2:
        text = (
            "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again "
            "in a moment. If it persists, check your inference gateway (127.0.0.1)."
        )
        return ApiError(text, "server_error", status=529)
    name = {500: "Internal server error", 529: "Overloaded"}.get(status, f"scripted error {status}")
    text = f"API Error: {status} {name}. This is a server-side issue, {_AGAIN}"
    return ApiError(text, "server_error", status=status)


def refusal() -> ApiError:
    """The model would not answer."""
    text = (
        "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy "
        "(https://www.anthropic.com/legal/aup). Please double press esc to edit your last message or start a new session "
        "for Claude Code to assist with a different task.\n\nRequest ID: req_sim"
    )
    return ApiError(text, "invalid_request", refused=True)


def from_failure(failure: Failure) -> ApiError:
    """The error of a scenario's failure; it comes at once, without retries."""
    if failure.kind == "auth_error":
        error = from_status(401)
        error.details = str(failure.fields.get("message", ""))
        return error
    if failure.kind == "rate_limit":
        return from_status(429)
    if failure.kind == "out_of_credits":
        return ApiError("Credit balance is too low", "billing_error", status=400, quiet=True)
    text, kind = {
        "network_unreachable": ("Unable to connect to API (ConnectionRefused)", "server_error"),
        "connection_timeout": ("Request timed out", "server_error"),
        "partial_response": ("scripted overloaded_error", "unknown"),
        "malformed_json": ("Unexpected end of JSON input", "unknown"),
    }[failure.kind]
    return ApiError(f"API Error: {text}", kind)


def synthetic(error: ApiError) -> Json:
    """The assistant line that records an error."""
    message = {
        "id": new_uuid(),
        "container": None,
        "model": "<synthetic>",
        "role": "assistant",
        "stop_details": None,
        "stop_reason": "refusal" if error.refused else "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "content": [{"type": "text", "text": error.text}],
        "context_management": None,
    }
    return {"type": "assistant", "message": message}


def marks(error: ApiError) -> Json:
    """The fields that mark it as an error."""
    found: Json = {"error": error.kind, "isApiErrorMessage": True}
    if error.status is not None:
        found["apiErrorStatus"] = error.status
    if error.details:
        found["errorDetails"] = error.details
    return found
