// A Temporal application in TypeScript with memory: through Nexus in a workflow, and over HTTP.
//
//     ENGRAM_NEXUS_ENDPOINT=engram ENGRAM_NEXUS_PLAIN=true ENGRAM_TEMPORAL_PORT=7233 engram up
//     export ENGRAM_API_KEY=$(engram keys create typescript --access write)
//     npm ci && npm run build && npm start ada "I live in Porto."
//
// The workflow asks the Nexus service "engram.memory". Nexus asks again when a handler dies, and
// nothing is kept twice. What has to be encrypted goes over HTTP instead: a caller at a plain
// endpoint has what it sends and is answered readable in its own history. The HTTP client's types
// are made from docs/openapi.json.

import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import createClient from 'openapi-fetch';
import type { paths } from './api.js';
import type { remember } from './workflows.js';

const taskQueue = 'engram-typescript';
const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
const namespace = process.env.TEMPORAL_NAMESPACE ?? 'default';

async function throughNexus(userId: string, text: string): Promise<string> {
  const connection = await NativeConnection.connect({ address });
  const workflowsPath = fileURLToPath(new URL('./workflows.js', import.meta.url));
  const worker = await Worker.create({ connection, namespace, taskQueue, workflowsPath });
  try {
    return await worker.runUntil(async () => {
      const temporal = new Client({ connection: await Connection.connect({ address }), namespace });
      return temporal.workflow.execute<typeof remember>('remember', {
        args: [process.env.ENGRAM_NEXUS_ENDPOINT ?? 'engram', userId, text],
        taskQueue,
        workflowId: `engram-typescript-${randomUUID()}`,
        workflowExecutionTimeout: '2 minutes',
      });
    });
  } finally {
    await connection.close();
  }
}

async function overHttp(user_id: string, query: string): Promise<string> {
  const memory = createClient<paths>({
    baseUrl: process.env.ENGRAM_URL ?? 'http://127.0.0.1:8745',
    headers: { Authorization: `Bearer ${process.env.ENGRAM_API_KEY ?? ''}` },
  });
  const { data, error } = await memory.POST('/v1/namespaces/{namespace}/users/{user_id}/recall', {
    params: { path: { namespace: 'default', user_id } },
    body: { query, limit: 1 },
  });
  if (!data) throw new Error(JSON.stringify(error));
  return data[0]?.memory.content ?? '';
}

const [userId, text] = process.argv.slice(2);
if (!userId || !text) throw new Error('usage: npm start USER TEXT');
console.log('nexus:', await throughNexus(userId, text));
console.log('http:', await overHttp(userId, text));
process.exit(0);
