// The npm client of the 1.x line: sessions only, nothing newer than 2025-11-25.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { job, run } from './driver.mjs';

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
  act(client, { method, name, arguments: args }) {
    const options = { timeout: job.timeoutMs };
    switch (method) {
      case 'prompts/get':
        return client.getPrompt({ name, arguments: args }, options);
      case 'resources/read':
        return client.readResource({ uri: name }, options);
      default:
        return client.callTool({ name, arguments: args }, undefined, options);
    }
  },
  describe: (client) => ({
    version,
    capabilities: client.getServerCapabilities(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  }),
});
