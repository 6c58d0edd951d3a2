// The npm client of the 2.x line. Era "legacy" is its default, "auto" probes and falls back, and
// "modern" insists on 2026-07-28.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { job, run } from './driver.mjs';

const methods = {
  tools: ['listTools', 'tools'],
  prompts: ['listPrompts', 'prompts'],
  resources: ['listResources', 'resources'],
  templates: ['listResourceTemplates', 'resourceTemplates'],
};

const modes = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

function transport() {
  if (!job.url) {
    return new StdioClientTransport({ command: job.command, args: job.args, env: job.env, stderr: 'inherit' });
  }
  return job.transport === 'sse'
    ? new SSEClientTransport(new URL(job.url))
    : new StreamableHTTPClientTransport(new URL(job.url));
}

const watch = (changed, kind) => ({ autoRefresh: false, debounceMs: 0, onChanged: () => changed(kind) });

await run({
  async connect(changed) {
    const client = new Client(
      { name: 'interop-client2', version: '1' },
      {
        capabilities: job.capabilities,
        versionNegotiation: { mode: modes[job.era] },
        listChanged: {
          tools: watch(changed, 'tools'),
          prompts: watch(changed, 'prompts'),
          resources: watch(changed, 'resources'),
        },
      },
    );
    await client.connect(transport(), { timeout: job.timeoutMs });
    return client;
  },
  // Without an argument the client walks all pages itself, which is how it is used. Page counts are not to be had.
  async list(client, kind) {
    const [method, field] = methods[kind];
    const all = await client[method](undefined, { timeout: job.timeoutMs, cacheMode: 'refresh' });
    return { items: all[field], pages: 0 };
  },
  act(client, { method, name, arguments: args }) {
    const options = { timeout: job.timeoutMs };
    switch (method) {
      case 'prompts/get':
        return client.getPrompt({ name, arguments: args }, options);
      case 'resources/read':
        return client.readResource({ uri: name }, options);
      default:
        return client.callTool({ name, arguments: args }, options);
    }
  },
  describe: (client) => ({
    version: client.getNegotiatedProtocolVersion(),
    capabilities: client.getServerCapabilities(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  }),
});
