"""The plugin that opencode loads for one agent: tells the fleet's hooks of each event, and takes its mail to the session."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

_PLUGIN = """\
// What ties one agent's opencode to nbs-fleet. It is written at each start; changes made here are lost.
// Whatever fails in here is left out: it never fails the client.
import { spawn } from "node:child_process"
import { appendFileSync, mkdirSync, watch } from "node:fs"
import { join } from "node:path"

const given = @GIVEN@
const quiet = () => undefined

// Run the hook program: its exit code and what it said.
function hook(words, payload) {
  return new Promise((resolve) => {
    const said = { code: 0, out: "", err: "" }
    const child = spawn(given.hook, words, { stdio: ["pipe", "pipe", "pipe"] })
    child.on("error", () => resolve(said))
    child.stdin.on("error", quiet)
    child.stdout.on("data", (data) => (said.out += data))
    child.stderr.on("data", (data) => (said.err += data))
    child.on("close", (code) => resolve({ ...said, code }))
    child.stdin.end(payload ? JSON.stringify(payload) : "")
  })
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

export const NbsFleet = async ({ client, directory }) => {
  let session = given.session // the agent's own session, once it is known
  let words = "" // what the agent said last
  let stopped = false // the last stop was held back
  let turn = Promise.resolve()
  const children = new Set() // sessions of subagents
  const prompts = new Set() // ids of messages that are no words of the agent

  const file = (id) => join(given.sessions, id + ".jsonl")

  function note(id, type, text) {
    try {
      mkdirSync(given.sessions, { recursive: true, mode: 0o700 })
      appendFileSync(file(id), JSON.stringify({ type, text }) + "\\n", { mode: 0o600 })
    } catch {}
  }

  async function tell(event, id, more) {
    const about = { hook_event_name: event, session_id: id, transcript_path: file(id), cwd: directory, ...more }
    return parsed((await hook([event], about)).out)
  }

  const added = (said) => said.hookSpecificOutput?.additionalContext

  async function prompt(id, text) {
    await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
  }

  // One look at the mail at a time, each after the one before.
  function drain() {
    turn = turn.then(async () => {
      if (!session) return
      const { code, err } = await hook(["drain"])
      if (code === 2 && err) await prompt(session, err)
    }).catch(quiet)
  }

  async function answer(request) {
    const input = { ...request.metadata, patterns: request.patterns }
    const said = await tell("PermissionRequest", request.sessionID, { tool_name: request.permission, tool_input: input })
    const decision = said.hookSpecificOutput?.decision
    if (!decision) return
    const allowed = decision.behavior === "allow"
    await client._client.post({
      url: "/permission/{requestID}/reply",
      path: { requestID: request.id },
      body: allowed ? { reply: "once" } : { reply: "reject", message: decision.message },
      headers: { "Content-Type": "application/json" },
    })
  }

  async function ended(id) {
    note(id, "assistant", words)
    const said = await tell("Stop", id, { last_assistant_message: words, stop_hook_active: stopped })
    stopped = said.decision === "block"
    if (stopped) await prompt(id, said.reason)
  }

  async function failed(id, error) {
    const status = error?.data?.statusCode
    const login = error?.name === "ProviderAuthError" || status === 401 || status === 403
    const kind = login ? "authentication_failed" : status === 429 ? "rate_limit" : "unknown"
    await tell("StopFailure", id, { error: kind, error_details: String(error?.data?.message ?? error?.name ?? "") })
  }

  async function happened({ type, properties }) {
    const id = properties?.sessionID
    if (type === "session.created" && properties.info?.parentID) children.add(properties.info.id)
    if (type === "message.part.updated" && properties.part.type === "text") {
      const { sessionID, messageID, text } = properties.part
      if (sessionID === session && !prompts.has(messageID)) words = text
    }
    if (type === "permission.asked") await answer(properties)
    if (!id || id !== session) return
    if (type === "session.idle") await ended(id)
    if (type === "session.error" && properties.error?.name !== "MessageAbortedError") await failed(id, properties.error)
  }

  try {
    watch(given.mail, drain)
  } catch {}
  if (session) drain()

  return {
    event: async ({ event }) => {
      happened(event).catch(quiet)
    },
    "chat.message": async (input, output) => {
      try {
        const id = input.sessionID
        if (children.has(id)) return
        prompts.add(output.message.id)
        const first = session !== id
        session = id
        const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
        const text = parts.map((part) => part.text).join("\\n")
        words = ""
        // The hooks hear of it before it can be read to have arrived.
        const more = added(await tell("UserPromptSubmit", id, { prompt: text }))
        note(id, "user", text)
        if (more && parts.length) {
          output.parts.push({ ...parts[0], id: parts[0].id + "n", text: more, synthetic: true })
          note(id, "context", more)
        }
        if (first) drain()
      } catch {}
    },
    "tool.execute.before": async (input, output) => {
      if (!given.refuses.includes(input.tool) || children.has(input.sessionID)) return
      const about = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }
      const said = (await tell("PreToolUse", input.sessionID, about)).hookSpecificOutput
      if (said?.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      try {
        if (children.has(input.sessionID)) return
        const about = { tool_name: input.tool, tool_use_id: input.callID }
        const more = added(await tell("PostToolUse", input.sessionID, about))
        if (more) {
          output.output = output.output + "\\n\\n" + more
          note(input.sessionID, "context", more)
        }
      } catch {}
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!children.has(input.sessionID)) output.system.push(given.briefing)
    },
  }
}
"""


class Given(Struct, frozen=True):
    """What the plugin must know. Paths absolute; `session` of a resumed start; `refuses` are tools that a policy forbids."""

    hook: str
    mail: str
    sessions: str
    briefing: str
    session: str | None = None
    refuses: tuple[str, ...] = ()

    def value(self) -> dict[str, Any]:
        """As JSON."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def text(given: Given) -> str:
    """The whole plugin, a module of JavaScript without dependencies."""
    return _PLUGIN.replace("@GIVEN@", json.dumps(given.value(), indent=2))
