// Light or dark: as the system says, until the reader chooses.
import { computed, signal } from '@preact/signals';

const system = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(system.matches);
system.addEventListener('change', (e) => {
  systemDark.value = e.matches;
});

const stored = (() => {
  try {
    return localStorage.getItem('otograph.theme');
  } catch {
    return null;
  }
})();
const chosen = signal(stored === 'dark' || stored === 'light' ? stored : '');

export const dark = computed(() => (chosen.value ? chosen.value === 'dark' : systemDark.value));

dark.subscribe((on) => {
  document.documentElement.dataset.theme = on ? 'dark' : 'light';
});

/** toggleTheme goes from light to dark or back, and remembers it. */
export function toggleTheme(): void {
  chosen.value = dark.value ? 'light' : 'dark';
  try {
    localStorage.setItem('otograph.theme', chosen.value);
  } catch {
    /* a file:// page may have no storage */
  }
}

const inks = new Map<string, string>();
dark.subscribe(() => inks.clear());

/** inkOf returns the color of a class in the current theme, for canvases. */
export function inkOf(className: string): string {
  const known = inks.get(className);
  if (known) return known;
  const probe = document.createElement('span');
  probe.className = className;
  probe.hidden = true;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  inks.set(className, colour);
  return colour;
}

/** voice returns the class with a speaker's color; there are eight, which then repeat. */
export const voice = (index: number) => (index < 0 ? 'voice-none' : `voice-${index % 8}`);
