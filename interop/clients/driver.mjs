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

// run connects with connect(), lists with list(client, kind), uses things with act(client, op)
// and prints the report. A list is asked for again until it is as long as wanted or patience ends.
export async function run({ connect, list, act, describe }) {
  const report = { tools: [], prompts: [], resources: [], templates: [], pages: {}, ops: [], listChanged: {} };
  let client;
  try {
    client = await connect((kind) => {
      report.listChanged[kind] = (report.listChanged[kind] ?? 0) + 1;
    });
    Object.assign(report, describe(client));
    await settle(client, list, report);
    for (const op of job.ops ?? []) {
      report.ops.push(await outcome(() => act(client, op)));
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
  const end = Date.now() + (job.patienceMs ?? 0);
  for (report.walks = 1; ; report.walks++) {
    for (const [kind, capability] of kinds) {
      if (!report.capabilities?.[capability]) continue;
      const { items, pages } = await list(client, kind);
      report[kind] = items;
      report.pages[kind] = pages;
    }
    const whole = Object.entries(job.want ?? {}).every(([kind, n]) => report[kind].length >= n);
    if (whole || Date.now() >= end) return;
    await new Promise((done) => setTimeout(done, 250));
  }
}

async function outcome(f) {
  try {
    return { result: await f() };
  } catch (error) {
    return { error: explain(error) };
  }
}

function explain(error) {
  const parts = [];
  for (let e = error, n = 0; e && n < 4; e = e.cause, n++) {
    parts.push(`${e.name ?? 'Error'}${e.code === undefined ? '' : ` (${e.code})`}: ${e.message ?? e}`);
  }
  return parts.join(' <- ');
}
