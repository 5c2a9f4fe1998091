// The workflow of a session, as far as this program uses it. docs/workflows.md has all of it, and
// docs/workflows.json the schemas.

import type { Client } from '@temporalio/client';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { Turn } from './service.js';

export const sessionId = 'examples';

interface EncodeReply {
  outcomes: { turns: { episode_id: string }[]; error?: { code: string; message: string } | null }[];
}

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

export const workflowOf = (userId: string): string => `session/default/${userId}/${sessionId}`;

/**
 * Stores a turn: updates the session's workflow, and starts it where it does not run.
 *
 * @param temporal has the codec of {@link workflowOf} this user.
 * @returns the turn's id in memory.
 */
export async function keep(temporal: Client, userId: string, turn: Turn): Promise<string> {
  const scope = { namespace: 'default', user_id: userId };
  const reply: EncodeReply = await temporal.workflow.executeUpdateWithStart('encode', {
    args: [{ calls: [{ turns: [turn] }] }],
    startWorkflowOperation: new WithStartWorkflowOperation('engram.session', {
      args: [{ scope, session_id: sessionId }],
      taskQueue: 'engram-store',
      workflowId: workflowOf(userId),
      workflowIdConflictPolicy: 'USE_EXISTING',
      typedSearchAttributes: [
        { key: keyword('EngramUser'), value: `default/${userId}` },
        { key: keyword('EngramSession'), value: sessionId },
        { key: keyword('EngramStage'), value: 'session' },
      ],
    }),
  });
  const outcome = reply.outcomes[0];
  if (outcome?.error) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
  return outcome?.turns[0]?.episode_id ?? '';
}
