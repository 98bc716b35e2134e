// A question before the page is left.
import { effect } from '@preact/signals';

/** confirmLeaving lets the browser ask before the page is closed or reloaded, while something would be lost. */
export function confirmLeaving(lost: () => boolean): void {
  const hold = (e: BeforeUnloadEvent) => e.preventDefault();
  effect(() => {
    if (lost()) addEventListener('beforeunload', hold);
    else removeEventListener('beforeunload', hold);
  });
}
