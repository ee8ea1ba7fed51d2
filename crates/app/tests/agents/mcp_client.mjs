// The client of the official kit against `biv mcp`. Does what it is told on the command line (a job, then the server's
// command) and prints one document.
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const from = createRequire(process.env.BIV_AGENTS + "/package.json")
const load = (name) => import(pathToFileURL(from.resolve("@modelcontextprotocol/sdk/" + name)).href)
const { Client } = await load("client/index.js")
const { StdioClientTransport } = await load("client/stdio.js")
const types = await load("types.js")

const [job, command, ...args] = process.argv.slice(2)

async function connect(name, asked = []) {
  const client = new Client({ name, version: "1" }, { capabilities: { roots: {}, elicitation: {} } })
  client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(process.cwd()).href }] }))
  client.setRequestHandler(types.ElicitRequestSchema, (request) => {
    asked.push(request.params.message)
    return { action: "accept", content: { confirm: true } }
  })
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }))
  return client
}

const call = async (client, name, args = {}, options = {}) =>
  client.callTool({ name, arguments: args }, undefined, options)
// A list stands behind its heading.
const text = (answer) => answer.content.map((it) => it.text).find((it) => /^[{[]/.test(it)) ?? answer.content[0].text

const jobs = {
  // Everything there is to list, read and call.
  async tour() {
    const asked = []
    const client = await connect("tour", asked)
    const { tools } = await client.listTools()
    await call(client, "session_create", { name: "tour", task: "Look around" })
    const saved = JSON.parse(text(await call(client, "checkpoint_save", { label: "here" })))
    await call(client, "progress", { kind: "decision", text: "Go left", details: { why: "it is shorter" } })
    const { resources } = await client.listResources()
    const read = await client.readResource({ uri: resources[0].uri })
    const { resourceTemplates } = await client.listResourceTemplates()
    const { prompts } = await client.listPrompts()
    const prompt = await client.getPrompt({ name: "save-checkpoint", arguments: { label: "x" } })
    const errors = []
    for (const attempt of [
      () => client.callTool({ name: "nope", arguments: {} }),
      () => client.readResource({ uri: "biv://nope" }),
      () => client.request({ method: "nope/nope" }, types.EmptyResultSchema),
    ]) {
      await attempt().then(() => errors.push(0), (error) => errors.push(error.code))
    }
    const refused = await call(client, "rehydrate", { session: "nobody" })
    writeFileSync("a.txt", "changed")
    const rolled = JSON.parse(text(await call(client, "checkpoint_rollback", { checkpoint: "here" })))
    const briefing = text(await call(client, "rehydrate"))
    await client.close()
    return {
      server: client.getServerVersion(), n_tools: tools.length, saved: saved.name, n_resources: resources.length,
      read: read.contents[0].text, n_templates: resourceTemplates.length, n_prompts: prompts.length,
      prompt: prompt.messages[0].content.text, errors, refused: refused.isError, steps: rolled.steps.length, asked: asked.length,
      file: readFileSync("a.txt", "utf8"), briefing,
    }
  },
  // The same small thing, over and over.
  async many() {
    const client = await connect("many")
    const times = []
    for (let n = 0; n < 1000; n++) {
      const begun = performance.now()
      const answer = await call(client, n % 4 ? "rehydrate" : "session_list")
      if (answer.isError) throw new Error(text(answer))
      times.push(performance.now() - begun)
    }
    await client.close()
    times.sort((a, b) => a - b)
    return { calls: times.length, p50: times[500], p99: times[990] }
  },
  // Two clients at once, each with calls that overlap.
  async two() {
    const clients = [await connect("one"), await connect("two")]
    const note = (client, n) => call(client, "progress", { kind: "note", text: `note ${n} of ${client.name}` })
    const all = clients.flatMap((client) => Array.from({ length: 50 }, (_, n) => note(client, n)))
    const answers = await Promise.all(all)
    await Promise.all(clients.map((client) => client.close()))
    return { answers: answers.length, errors: answers.filter((it) => it.isError).map(text) }
  },
  // A call that is called off as soon as it tells how far it is.
  async cancel() {
    const client = await connect("cancel")
    const stop = new AbortController()
    let reached = 0
    const save = call(client, "checkpoint_save", { label: "off" }, {
      signal: stop.signal,
      onprogress: () => { reached += 1; stop.abort("changed my mind") },
    })
    const outcome = await save.then(() => "done", (error) => String(error.message ?? error))
    const list = JSON.parse(text(await call(client, "checkpoint_list")))
    await client.close()
    return { reached, outcome, checkpoints: list.map((it) => it.name) }
  },
}

console.log(JSON.stringify(await jobs[job]()))
