// Written by `biv hooks install`, removed by `biv hooks remove`.
// Tells Bivouac what happens, and the model what Bivouac has to say. It never fails and never waits long.
import { spawn } from "node:child_process"

const BINARY = "biv"

function tell(event, input, directory) {
  return new Promise((resolve) => {
    let answer = ""
    try {
      const child = spawn("sh", ["-c", `${BINARY} hook opencode ${event} 2>/dev/null || true`], {
        cwd: directory,
        stdio: ["pipe", "pipe", "ignore"],
      })
      const timer = setTimeout(() => resolve(""), 60000)
      child.stdout.on("data", (data) => (answer += data))
      child.on("error", () => resolve(""))
      child.on("close", () => {
        clearTimeout(timer)
        resolve(answer)
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ ...input, cwd: directory }))
    } catch {
      resolve("")
    }
  })
}

export const Bivouac = async ({ directory }) => {
  const words = new Map()
  const warnings = new Map()
  const children = new Set()
  const busy = new Set()
  return {
    event: async ({ event }) => {
      const properties = event.properties ?? {}
      const sessionID = properties.sessionID ?? properties.info?.id
      if (event.type === "session.created" && properties.info?.parentID) children.add(sessionID)
      if (!sessionID || children.has(sessionID)) return
      if (event.type === "session.idle" && busy.delete(sessionID)) await tell("session.idle", { sessionID }, directory)
      if (event.type === "session.compacted") await tell("session.compacted", { sessionID }, directory)
      if (event.type === "session.error") await tell("session.error", { sessionID, error: properties.error }, directory)
      if (event.type === "permission.updated" || event.type === "permission.asked") {
        await tell("permission.asked", { sessionID, ...properties }, directory)
      }
    },
    "chat.message": async (input, output) => {
      if (children.has(input.sessionID)) return
      busy.add(input.sessionID)
      const prompt = (output.parts ?? []).map((part) => part.text ?? "").join("\n")
      const answer = await tell("chat.message", { sessionID: input.sessionID, prompt }, directory)
      // What is wrong may be over with the next prompt; what the work is about stays.
      if (answer.startsWith("Warning:")) warnings.set(input.sessionID, answer)
      else warnings.delete(input.sessionID)
      if (answer.trim() && !warnings.has(input.sessionID)) words.set(input.sessionID, answer)
    },
    "experimental.chat.system.transform": async (input, output) => {
      for (const answer of [words.get(input.sessionID), warnings.get(input.sessionID)]) {
        if (answer) output.system.push(answer)
      }
    },
    "tool.execute.before": async (input, output) => {
      await tell("tool.execute.before", { ...input, args: output.args }, directory)
    },
    "tool.execute.after": async (input, output) => {
      await tell("tool.execute.after", { ...input, metadata: output.metadata }, directory)
    },
    "experimental.session.compacting": async (input) => {
      await tell("experimental.session.compacting", { sessionID: input.sessionID }, directory)
    },
  }
}
