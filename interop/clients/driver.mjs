// What both npm clients have in common: read a job from stdin, do it, print a report.
//
// A job names a target (url, or command with args and env), the era to speak, what the client
// declares, and what to use. The report has everything the peer listed, whole and in order.

import { readFileSync } from 'node:fs';

export const job = JSON.parse(readFileSync(0, 'utf8'));

const kinds = [
  ['tools', 'tools'],
  ['prompts', 'prompts'],
  ['resources', 'resources'],
  ['templates', 'resources'],
];

// What the server says and asks, in words that are the same for all clients: see outcome in job_test.go.
const heard = [];
let woken = () => {};
let tokens = 0;
let gaveUp = new AbortController(); // of the op that is being done

function hear(event) {
  heard.push(event);
  woken();
}

// What a client tells of notifications. Of progress it has to tell by itself: what the libraries pass to a request's own
// callback they drop when the response is close behind.
export const tell = {
  progress({ progress, total, message }) {
    hear(`progress ${progress}/${total} ${message ?? ''}`.trim());
    if (cancel) gaveUp.abort();
  },
  updated: ({ uri }) => hear(`updated ${uri}`),
  log: ({ level, data }) => hear(`log ${level} ${data}`),
};

// How a client answers what a server asks.
export const answer = {
  elicit({ mode, message, url }) {
    if (mode === 'url') {
      hear(`elicit url ${url}`);
      return { action: 'accept' };
    }
    hear(`elicit form ${message}`);
    return { action: 'accept', content: { name: 'Ada', colour: 'r<e>d' } };
  },
  sample({ messages: [{ content }] }) {
    hear(`sample ${[content].flat()[0].text}`);
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'hello there' } };
  },
  roots() {
    hear('roots');
    return { roots: [{ uri: 'file:///interop', name: 'interop' }] };
  },
};

let changed = () => {};
let cancel = false; // the op that is being done, when there is progress

// run connects with connect(), lists with list(client, kind), uses things with act(client, op, options, meta)
// and prints the report. A list is asked for again until it is as long as wanted or patience ends.
export async function run({ connect, list, act, describe }) {
  const report = { tools: [], prompts: [], resources: [], templates: [], pages: {}, ops: [], listChanged: {} };
  let client;
  try {
    client = await connect((kind) => {
      report.listChanged[kind] = (report.listChanged[kind] ?? 0) + 1;
      changed();
    });
    Object.assign(report, describe(client));
    await settle(client, list, report);
    for (const op of job.ops ?? []) {
      report.ops.push(await outcome(client, act, op));
    }
  } catch (error) {
    report.error = explain(error);
  }
  try {
    await client?.close();
  } catch (error) {
    report.error ??= 'close: ' + explain(error);
  }
  process.stdout.write(JSON.stringify(report) + '\n', () => process.exit(0));
}

async function settle(client, list, report) {
  let patient = true;
  const end = new Promise((done) => setTimeout(done, job.patienceMs ?? 0)).then(() => (patient = false));
  for (report.walks = 1; ; report.walks++) {
    const last = !patient;
    const change = new Promise((done) => (changed = done));
    for (const [kind, capability] of kinds) {
      if (!report.capabilities?.[capability]) continue;
      const { items, pages } = await list(client, kind);
      report[kind] = items;
      report.pages[kind] = pages;
    }
    const whole = Object.entries(job.want ?? {}).every(([kind, n]) => report[kind].length >= n);
    if (whole || last) return;
    await Promise.race([change, end]);
  }
}

// outcome does one op, and waits for what must be heard meanwhile.
async function outcome(client, act, op) {
  heard.length = 0; // of an earlier op, which did not heed it
  gaveUp = new AbortController();
  cancel = op.cancel;
  const options = { timeout: job.timeoutMs, signal: gaveUp.signal };
  const meta = op.progress ? { progressToken: `token-${++tokens}` } : {};
  const out = {};
  try {
    out.result = await act(client, op, options, meta);
  } catch (error) {
    if (gaveUp.signal.aborted) out.result = { cancelled: true };
    else out.error = explain(error);
  }
  const heeded = () => heard.filter((event) => op.heed?.includes(event.split(' ')[0]));
  let late = false;
  const end = new Promise((done) => setTimeout(done, job.timeoutMs).unref()).then(() => (late = true));
  while (heeded().length < (op.await ?? 0) && !late) {
    await Promise.race([new Promise((done) => (woken = done)), end]);
  }
  out.heard = heeded();
  return out;
}

function explain(error) {
  const parts = [];
  for (let e = error, n = 0; e && n < 4; e = e.cause, n++) {
    parts.push(`${e.name ?? 'Error'}${e.code === undefined ? '' : ` (${e.code})`}: ${e.message ?? e}`);
  }
  return parts.join(' <- ');
}
