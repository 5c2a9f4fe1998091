// A Temporal application in TypeScript with memory: as updates of a session's workflow, through
// Nexus from a workflow of its own, and over HTTP. Everything that passes Temporal is encrypted.
//
//     ENGRAM_NEXUS_ENDPOINT=engram ENGRAM_TEMPORAL_PORT=7233 engram up
//     engram codec --address-file ~/codec.address   # beside it; the address is as good as the keys
//     export ENGRAM_CODEC=$(cat ~/codec.address)
//     export ENGRAM_API_KEY=$(engram keys create typescript --access write)
//     npm ci && npm run build && npm start ada "I live in Porto." "Where do I live?"
//
// It needs no keys: the codec has them, and encodes for one workflow each. A turn that is sent
// twice, by this program or by others, is kept once. The HTTP client's types are made from
// docs/openapi.json.

import { createHash, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import createClient from 'openapi-fetch';
import type { paths } from './api.js';
import { codecOf } from './codec.js';
import type { Turn } from './service.js';
import { keep, sessionId, workflowOf } from './session.js';
import type { remember } from './workflows.js';

const taskQueue = 'engram-typescript';
const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
const namespace = process.env.TEMPORAL_NAMESPACE ?? 'default';

/** A turn of the user's. A program has ids of its messages; here the same words are the same. */
function said(content: string): Turn {
  const message_id = createHash('sha256').update(content).digest('hex').slice(0, 16);
  return { role: 'user', content, message_id, timestamp: new Date().toISOString() };
}

async function clientFor(workflowId: string): Promise<Client> {
  const connection = await Connection.connect({ address });
  const dataConverter = { payloadCodecs: [codecOf(workflowId)] };
  return new Client({ connection, namespace, dataConverter });
}

async function asUpdate(userId: string, turn: Turn): Promise<string> {
  return keep(await clientFor(workflowOf(userId)), userId, turn);
}

async function throughNexus(userId: string, turn: Turn, question: string): Promise<string> {
  const connection = await NativeConnection.connect({ address });
  const workflowsPath = fileURLToPath(new URL('./workflows.js', import.meta.url));
  // It is no workflow of Engram's: what it sends is bound to none, under the shared key.
  const dataConverter = { payloadCodecs: [codecOf('-')] };
  const worker = await Worker.create({ connection, namespace, taskQueue, workflowsPath, dataConverter });
  const endpoint = process.env.ENGRAM_NEXUS_ENDPOINT ?? 'engram';
  try {
    return await worker.runUntil(async () => {
      const temporal = await clientFor('-');
      return temporal.workflow.execute<typeof remember>('remember', {
        args: [endpoint, userId, sessionId, turn, question],
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
    body: { query, limit: 1, memory_types: ['episodic'] },
  });
  if (!data) throw new Error(JSON.stringify(error));
  return data[0]?.memory.content ?? '';
}

const [userId, text, question] = process.argv.slice(2);
if (!userId || !text || !question) throw new Error('usage: npm start USER TEXT QUESTION');
const turn = said(text);
console.log('session:', await asUpdate(userId, turn));
console.log('nexus:', await throughNexus(userId, turn, question));
console.log('http:', await overHttp(userId, question));
process.exit(0);
