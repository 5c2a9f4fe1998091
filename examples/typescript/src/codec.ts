// Encoding through `engram codec`: it has the keys, this program has not.

import type { Payload, PayloadCodec } from '@temporalio/common';

/** A payload as Temporal's HTTP API writes it. */
interface Written {
  metadata?: Record<string, string>;
  data?: string;
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const bytes = (text: string): Uint8Array => Buffer.from(text, 'base64');

function mapped<From, To>(from: Record<string, From>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, change(value)]));
}

/** The codec of one workflow: what is encoded there is bound to it. */
export function codecOf(workflowId: string): PayloadCodec {
  const address = process.env.ENGRAM_CODEC ?? '';
  if (!address.includes('WORKFLOW-ID')) {
    throw new Error('ENGRAM_CODEC has to be the address that `engram codec` prints');
  }
  const endpoint = address.replace('WORKFLOW-ID', encodeURIComponent(workflowId));

  async function ask(what: 'encode' | 'decode', payloads: Payload[]): Promise<Payload[]> {
    const sent: Written[] = payloads.map(({ metadata, data }) => ({
      metadata: mapped(metadata ?? {}, base64),
      data: base64(data ?? new Uint8Array()),
    }));
    const answer = await fetch(`${endpoint}/${what}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ payloads: sent }),
    });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    const got = (await answer.json()) as { payloads?: Written[] };
    return (got.payloads ?? []).map(({ metadata, data }) => ({
      metadata: mapped(metadata ?? {}, bytes),
      data: bytes(data ?? ''),
    }));
  }

  return {
    encode: (payloads) => ask('encode', payloads),
    decode: (payloads) => ask('decode', payloads),
  };
}
