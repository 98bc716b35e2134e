// A task's state and text, as the service reports their changes.
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

/** Sentence is the data of an event with a sentence of a running task. */
export interface Sentence {
  attempt: number;
  index: number;
  start: number;
  end: number;
  text: string;
}

/**
 * withSentences enters sentences by their index. A reconnected stream sends all of
 * them again; sentences of a later attempt replace the text of an earlier one.
 */
export function withSentences(all: Sentence[], news: Sentence[]): Sentence[] {
  let out = [...all];
  for (const sentence of news) {
    const attempt = out[0]?.attempt ?? 0;
    if (sentence.attempt < attempt) continue;
    if (sentence.attempt > attempt) out = [];
    out[sentence.index] = sentence;
  }
  return out;
}

/** tries limits how often a stream without events is opened again. */
const tries = 3;

/**
 * follow reports a task's state, now and after every change, and the sentences of
 * its text as they arrive. It returns true after the final state, and false if the
 * stream fails: then the caller has to poll the task.
 */
export async function follow(
  task: string,
  told: (state: TaskState) => void,
  stop: AbortSignal,
  spoken?: (sentences: Sentence[]) => void,
): Promise<boolean> {
  let last = '';
  for (let silent = 0; silent < tries && !stop.aborted; silent++) {
    try {
      const answer = await api.events(task, last, stop);
      if (answer.status === 204) return false;
      for await (const arrived of events(answer.body!)) {
        const sentences = arrived.filter((e) => e.name === 'segment').map((e) => JSON.parse(e.data) as Sentence);
        if (sentences.length) spoken?.(sentences);
        for (const { id, data } of arrived.filter((e) => e.name === 'task')) {
          const state = JSON.parse(data) as TaskState;
          last = id;
          silent = -1;
          told(state);
          if (state.final) return true;
        }
      }
    } catch {
      /* the connection ended early, or there are no events */
    }
    if (!stop.aborted) await sleep(1000);
  }
  return false;
}

/** Event is a server-sent event with data. */
interface Event {
  name: string;
  id: string;
  data: string;
}

/** events yields server-sent events in lists: each holds the events that arrive together. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Event[]> {
  const reader = body.getReader(),
    decoder = new TextDecoder();
  try {
    for (let text = '', end; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const arrived: Event[] = [];
      while ((end = text.indexOf('\n\n')) >= 0) {
        const fields = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const field = (name: string) => fields.find((f) => f.startsWith(name + ': '))?.slice(name.length + 2);
        const data = field('data');
        if (data !== undefined) arrived.push({ name: field('event') ?? '', id: field('id') ?? '', data });
      }
      yield arrived;
    }
  } finally {
    reader.cancel().catch(() => {
      /* it has ended */
    });
  }
}
