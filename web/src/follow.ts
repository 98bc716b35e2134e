// How a task stands, told by the service as it changes.
import { api, sleep, type Status } from './api';

/** TaskState is the data of an event of GET /tasks/{id}/events. */
export interface TaskState {
  task_id: string;
  status: Status;
  final: boolean;
  stage: string | null;
  percent: number | null;
  error_message: string | null;
  updated_at: string;
  finished_at: string | null;
}

/** tries is how often a stream is opened again that says nothing. */
const tries = 3;

/**
 * follow tells how a task stands, now and after every change. It gives true after
 * the final state, and false where the service does not tell: then the task has to
 * be asked for.
 */
export async function follow(task: string, told: (state: TaskState) => void, stop: AbortSignal): Promise<boolean> {
  let last = '';
  for (let silent = 0; silent < tries && !stop.aborted; silent++) {
    try {
      const answer = await api.events(task, last, stop);
      if (answer.status === 204) return false;
      for await (const { id, data } of events(answer.body!)) {
        const state = JSON.parse(data) as TaskState;
        last = id;
        silent = -1;
        told(state);
        if (state.final) return true;
      }
    } catch {
      /* it broke off, or there are no events */
    }
    if (!stop.aborted) await sleep(1000);
  }
  return false;
}

/** events reads the server-sent events that are named task; sentences are for others. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<{ id: string; data: string }> {
  const reader = body.getReader(),
    decoder = new TextDecoder();
  try {
    for (let text = '', end; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      while ((end = text.indexOf('\n\n')) >= 0) {
        const fields = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const field = (name: string) => fields.find((f) => f.startsWith(name + ': '))?.slice(name.length + 2);
        const data = field('data');
        if (data !== undefined && field('event') === 'task') yield { id: field('id') ?? '', data };
      }
    }
  } finally {
    reader.cancel().catch(() => {
      /* it has ended */
    });
  }
}
