// The npm client of the 1.x line: sessions only, nothing newer than 2025-11-25.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ProgressNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { answer, job, run, tell } from './driver.mjs';

const methods = {
  tools: ['listTools', 'tools'],
  prompts: ['listPrompts', 'prompts'],
  resources: ['listResources', 'resources'],
  templates: ['listResourceTemplates', 'resourceTemplates'],
};

function transport() {
  if (!job.url) {
    return new StdioClientTransport({ command: job.command, args: job.args, env: job.env, stderr: 'inherit' });
  }
  return job.transport === 'sse'
    ? new SSEClientTransport(new URL(job.url))
    : new StreamableHTTPClientTransport(new URL(job.url));
}

let version;

await run({
  async connect(changed) {
    const client = new Client({ name: 'interop-sdk1', version: '1' }, { capabilities: job.capabilities });
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed('tools'));
    client.setNotificationHandler(PromptListChangedNotificationSchema, () => changed('prompts'));
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => changed('resources'));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => tell.updated(params));
    client.setNotificationHandler(ProgressNotificationSchema, ({ params }) => tell.progress(params));
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => tell.log(params));
    if (job.capabilities.elicitation) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer.elicit(params));
    if (job.capabilities.sampling) client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer.sample(params));
    if (job.capabilities.roots) client.setRequestHandler(ListRootsRequestSchema, () => answer.roots());
    const wire = transport();
    wire.setProtocolVersion = ((next) => (v) => {
      version = v;
      next?.call(wire, v);
    })(wire.setProtocolVersion);
    await client.connect(wire, { timeout: job.timeoutMs });
    return client;
  },
  async list(client, kind) {
    const [method, field] = methods[kind];
    const items = [];
    let pages = 0;
    let cursor;
    do {
      const page = await client[method](cursor === undefined ? {} : { cursor }, { timeout: job.timeoutMs });
      items.push(...page[field]);
      cursor = page.nextCursor;
      pages++;
    } while (cursor !== undefined && pages < 1000);
    return { items, pages };
  },
  act(client, { method, name, arguments: args }, options, meta) {
    switch (method) {
      case 'prompts/get':
        return client.getPrompt({ name, arguments: args }, options);
      case 'resources/read':
        return client.readResource({ uri: name }, options);
      case 'resources/subscribe':
        return client.subscribeResource({ uri: name }, options);
      case 'resources/unsubscribe':
        return client.unsubscribeResource({ uri: name }, options);
      case 'logging/setLevel':
        return client.setLoggingLevel(name, options);
      case 'completion/complete': {
        const [[argument, value]] = Object.entries(args);
        return client.complete({ ref: { type: 'ref/prompt', name }, argument: { name: argument, value } }, options);
      }
      default:
        return client.callTool({ name, arguments: args, _meta: meta }, undefined, options);
    }
  },
  describe: (client) => ({
    version,
    capabilities: client.getServerCapabilities(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  }),
});
