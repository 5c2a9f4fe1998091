import { createNexusServiceClient } from '@temporalio/workflow';
import { memoryService } from './service.js';

/** Keeps what a user says, and answers with what is remembered about it. */
export async function remember(endpoint: string, userId: string, text: string): Promise<string> {
  const memory = createNexusServiceClient({ service: memoryService, endpoint });
  const options = { scheduleToCloseTimeout: '1 minute' } as const;
  const said = { user_id: userId, session_id: 'typescript', turns: [{ content: text }] };
  await memory.executeOperation('encode', said, options);
  const asked = { user_id: userId, query: text, options: { limit: 1 } };
  const { hits } = await memory.executeOperation('recall', asked, options);
  return hits[0]?.memory.content ?? '';
}
