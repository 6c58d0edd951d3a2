// The npm client of the 2.x line. Era "legacy" is its default, "auto" probes and falls back, and
// "modern" insists on 2026-07-28.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answer, job, run, tell } from './driver.mjs';

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

const subscriptions = new Map(); // open ones of 2026-07-28, by URI
let level; // of log messages, which calls of 2026-07-28 name

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
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => tell.updated(params));
    client.setNotificationHandler('notifications/progress', ({ params }) => tell.progress(params));
    client.setNotificationHandler('notifications/message', ({ params }) => tell.log(params));
    if (job.capabilities.elicitation) client.setRequestHandler('elicitation/create', ({ params }) => answer.elicit(params));
    if (job.capabilities.sampling) client.setRequestHandler('sampling/createMessage', ({ params }) => answer.sample(params));
    if (job.capabilities.roots) client.setRequestHandler('roots/list', () => answer.roots());
    await client.connect(transport(), { timeout: job.timeoutMs });
    return client;
  },
  // Without an argument the client walks all pages itself, which is how it is used. Page counts are not to be had.
  async list(client, kind) {
    const [method, field] = methods[kind];
    const all = await client[method](undefined, { timeout: job.timeoutMs, cacheMode: 'refresh' });
    return { items: all[field], pages: 0 };
  },
  async act(client, { method, name, arguments: args }, options, meta) {
    const modern = client.getNegotiatedProtocolVersion() >= '2026-07-28';
    switch (method) {
      case 'prompts/get':
        return client.getPrompt({ name, arguments: args }, options);
      case 'resources/read':
        return client.readResource({ uri: name }, options);
      case 'resources/subscribe':
        if (!modern) return client.subscribeResource({ uri: name }, options);
        subscriptions.set(name, await client.listen({ resourceSubscriptions: [name] }, options));
        return {};
      case 'resources/unsubscribe':
        if (!modern) return client.unsubscribeResource({ uri: name }, options);
        await subscriptions.get(name).close();
        return {};
      case 'logging/setLevel':
        if (!modern) return client.setLoggingLevel(name, options);
        level = name;
        return {};
      case 'completion/complete': {
        const [[argument, value]] = Object.entries(args);
        return client.complete({ ref: { type: 'ref/prompt', name }, argument: { name: argument, value } }, options);
      }
      default: {
        if (level) meta['io.modelcontextprotocol/logLevel'] = level;
        return client.callTool({ name, arguments: args, _meta: meta }, options);
      }
    }
  },
  describe: (client) => ({
    version: client.getNegotiatedProtocolVersion(),
    capabilities: client.getServerCapabilities(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  }),
});
