// The Nexus service of Engram, as far as this program uses it. docs/temporal.md has all of it.

import { operation, service } from 'nexus-rpc';

/** One utterance of a conversation. */
export interface Turn {
  role: string;
  content: string;
  message_id: string;
  timestamp: string;
}

export interface EncodeArgs {
  user_id: string;
  session_id: string;
  turns: Turn[];
}

export interface RecallArgs {
  user_id: string;
  query: string;
  options?: Record<string, unknown>;
}

export const memoryService = service('engram.memory', {
  encode: operation<EncodeArgs, { episode_ids: string[] }>(),
  recall: operation<RecallArgs, { hits: { memory: { id: string; content: string } }[] }>(),
});
