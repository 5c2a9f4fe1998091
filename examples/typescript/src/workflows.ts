import { createNexusServiceClient } from '@temporalio/workflow';
import { type Turn, memoryService } from './service.js';

/** Keeps what a user says, and answers with what is remembered. */
export async function remember(
  endpoint: string,
  userId: string,
  sessionId: string,
  turn: Turn,
  question: string,
): Promise<string> {
  const memory = createNexusServiceClient({ service: memoryService, endpoint });
  const options = { scheduleToCloseTimeout: '1 minute' } as const;
  const keeping = { user_id: userId, session_id: sessionId, turns: [turn] };
  await memory.executeOperation('encode', keeping, options);
  const turnsOnly = { limit: 1, memory_types: ['episodic'] };
  const asked = { user_id: userId, query: question, options: turnsOnly };
  const { hits } = await memory.executeOperation('recall', asked, options);
  return hits[0]?.memory.content ?? '';
}
