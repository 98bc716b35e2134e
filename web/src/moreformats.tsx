// The files that the service writes for a result.
import { useRef, useState } from 'preact/hooks';
import { api, plainly } from './api';
import { save, stem } from './formats';
import type { Keeper } from './corrections';
import type { Result } from './result';
import { t, type TextKey } from './texts';

interface MoreFormat {
  format: string;
  extension: string;
  title: TextKey;
  /** able reports whether a result has the parts that the format needs. */
  able: (r: Result) => boolean;
}

const words = (r: Result) => !!r.segments?.length && r.segments.every((s) => s.words?.length);
const any = () => true;

const more: MoreFormat[] = [
  { format: 'md', extension: 'md', title: 'fMarkdown', able: any },
  { format: 'docx', extension: 'docx', title: 'fWord', able: any },
  { format: 'textgrid', extension: 'TextGrid', title: 'fPraat', able: any },
  { format: 'eaf', extension: 'eaf', title: 'fElan', able: any },
  { format: 'labels', extension: 'labels.txt', title: 'fAudacity', able: any },
  { format: 'tsv', extension: 'tsv', title: 'fTable', able: any },
  { format: 'ctm', extension: 'ctm', title: 'fWords', able: words },
];

/** MoreFormats is a menu of further files; they have the names and corrections that the service keeps. */
export function MoreFormats({
  task,
  name,
  result,
  keeper,
}: {
  task: string;
  name: string;
  result: Result;
  keeper: Keeper;
}) {
  const [problem, setProblem] = useState('');
  const menu = useRef<HTMLDetailsElement>(null);
  const take = async (f: MoreFormat) => {
    menu.current!.open = false;
    menu.current!.querySelector('summary')!.focus();
    setProblem('');
    try {
      await keeper.settled();
      save(`${stem(name)}.${f.extension}`, await api.transcript(task, f.format));
    } catch (e) {
      setProblem(plainly(e));
    }
  };
  return (
    <>
      <details
        class="menu"
        ref={menu}
        onKeyDown={(e) => {
          if (e.key !== 'Escape') return;
          menu.current!.open = false;
          menu.current!.querySelector('summary')!.focus();
        }}
      >
        <summary class="button">{t('moreFormats')}</summary>
        <ul>
          {more.map((f) => (
            <li key={f.format}>
              <button type="button" class="quiet" disabled={!f.able(result)} onClick={() => void take(f)}>
                {t(f.title)}
              </button>
            </li>
          ))}
        </ul>
      </details>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}
