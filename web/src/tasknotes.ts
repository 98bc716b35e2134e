// The notes that the service keeps with a task.
import { signal } from '@preact/signals';
import { api, Failure, plainly, sleep, type Annotations } from './api';
import { changed, type Change, type Keeper, type Notes } from './notes';

/** tries is how often a change is sent. */
const tries = 10;

/** taskKeeper keeps notes with a task; start is what the service has. Changes go one after the other. */
export function taskKeeper(task: string, start: Annotations): Keeper {
  const notes = signal<Notes>(start),
    problem = signal('');
  let version = start.version,
    last = Promise.resolve();

  /** send makes a change to the version that is known, and to a newer one where somebody else was first. */
  async function send(to: Change): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        version = (await api.annotate(task, to, version)).version;
        problem.value = '';
        return;
      } catch (e) {
        if (!(e instanceof Failure) || attempt >= tries) throw e;
        if (e.status === 0 || e.status === 429 || e.status >= 500) {
          problem.value = plainly(e); // until it is kept
          await sleep(1000 * (attempt + 1));
          continue;
        }
        if (e.status !== 412) throw e;
        const theirs = await api.annotations(task);
        version = theirs.version;
        notes.value = changed(theirs, to);
      }
    }
  }

  return {
    notes,
    change(to) {
      notes.value = changed(notes.value, to);
      last = last
        .then(() => send(to))
        .catch((e) => {
          problem.value = plainly(e);
        });
    },
    settled: () => last,
    problem,
    where: 'keptNote',
  };
}
