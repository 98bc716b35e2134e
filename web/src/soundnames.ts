// The sounds' names in the reader's language.
import { useEffect, useState } from 'preact/hooks';
import { api } from './api';
import { lang } from './texts';

/** useSoundNames returns the service's Chinese names of sounds; empty if the page is in English. */
export function useSoundNames(): Record<string, string> {
  const [sounds, setSounds] = useState<Record<string, string>>({});
  const chinese = lang.value === 'zh';
  useEffect(() => {
    if (!chinese) return setSounds({});
    let current = true;
    api.soundClasses().then(
      (all) => {
        if (current) setSounds(Object.fromEntries(all.map((c) => [c.display_name, c.zh_name])));
      },
      () => {
        /* the English names stay */
      },
    );
    return () => {
      current = false;
    };
  }, [chinese]);
  return sounds;
}
