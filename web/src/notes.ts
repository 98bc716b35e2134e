// What the reader says of a result: names of speakers and corrected texts.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { TextKey } from './texts';

/** Notes are names by the speakers of a result, and texts by the ids of its segments. */
export interface Notes {
  speakers: Record<string, string>;
  texts: Record<string, string>;
}

/** A Change sets what it names; null takes it back. */
export type Change = { [part in keyof Notes]?: Record<string, string | null> };

/** A Keeper keeps the notes of one result. */
export interface Keeper {
  notes: ReadonlySignal<Notes>;
  change(to: Change): void;
  /** settled waits until every change is kept. */
  settled(): Promise<void>;
  /** problem says why the last change is not kept; empty when it is. */
  problem: ReadonlySignal<string>;
  /** where tells the reader where notes are kept. */
  where: TextKey;
}

/** changed gives notes with a change. */
export function changed(notes: Notes, to: Change): Notes {
  const merged = (old: Record<string, string>, by: Record<string, string | null> = {}) =>
    Object.fromEntries(
      Object.entries({ ...old, ...by }).filter((entry): entry is [string, string] => entry[1] !== null),
    );
  return { speakers: merged(notes.speakers, to.speakers), texts: merged(notes.texts, to.texts) };
}

/** tabKeeper keeps notes while the tab is open; a file:// page may have no storage. */
export function tabKeeper(name: string): Keeper {
  const place = `otograph.notes.${name}`,
    notes = signal<Notes>({ speakers: {}, texts: {} });
  try {
    notes.value = changed(notes.value, JSON.parse(sessionStorage.getItem(place) ?? '{}') as Change);
  } catch {
    /* there are none */
  }
  return {
    notes,
    change(to) {
      notes.value = changed(notes.value, to);
      try {
        sessionStorage.setItem(place, JSON.stringify(notes.value));
      } catch {
        /* it is kept while the page is */
      }
    },
    settled: () => Promise.resolve(),
    problem: signal(''),
    where: 'editedNote',
  };
}
