// The view of one result as a separate file.
import { signal } from '@preact/signals';
import { render } from 'preact';
import { bytesOf } from './base64';
import { tabKeeper } from './corrections';
import { renamed, type GivenFormat } from './formats';
import { peaksOf } from './peaks';
import type { Result } from './result';
import { ResultView } from './resultview';
import './style.css';
import { lang, setLang, t } from './texts';
import { toggleTheme } from './theme';

const data = JSON.parse(document.getElementById('data')!.textContent!) as {
  name: string;
  result: Result;
  peaks?: string;
  audioType?: string;
  /** files are the files that the command wrote for the result. */
  files: Partial<Record<GivenFormat, string>>;
};
const peaks = data.peaks ? peaksOf(bytesOf(data.peaks)) : undefined;

/** audio is the embedded recording, once it has been unpacked. */
const audio = signal<Blob | undefined>(undefined);
/** unpacking is true while the embedded recording is not yet ready. */
const unpacking = signal(!!data.audioType);

/** unpack decodes the embedded recording piece by piece into one that can be played and sought in: hours take tens of megabytes. */
async function unpack(): Promise<void> {
  const text = document.getElementById('audio')!.textContent!,
    parts: BlobPart[] = [],
    step = 1 << 20; // a multiple of 4, so that the pieces can be joined
  for (let at = 0; at < text.length; at += step) {
    parts.push(bytesOf(text.slice(at, at + step)));
    await new Promise((go) => setTimeout(go));
  }
  document.getElementById('audio')!.remove();
  audio.value = new Blob(parts, { type: data.audioType });
  unpacking.value = false;
}
if (data.audioType) void unpack();

const keeper = tabKeeper(data.result.audio_md5);

function App() {
  document.documentElement.lang = lang.value === 'zh' ? 'zh-CN' : 'en';
  return (
    <>
      <header class="top">
        <span class="brand">{t('title')}</span>
        <span class="top-tools">
          <button
            type="button"
            class="quiet"
            onClick={() => setLang(lang.value === 'en' ? 'zh' : 'en')}
            lang={lang.value === 'en' ? 'zh-CN' : 'en'}
          >
            {t('language')}
          </button>
          <button type="button" class="quiet" onClick={toggleTheme} aria-label={t('theme')} title={t('theme')}>
            ◐
          </button>
        </span>
      </header>
      <main id="main">
        <ResultView
          name={data.name}
          result={data.result}
          audio={audio.value}
          opening={unpacking.value}
          peaks={peaks}
          keeper={keeper}
          given={(format, speakers, names) =>
            Promise.resolve(renamed(format, data.files[format] ?? '', speakers, names))
          }
          uncorrected
          reader={lang.value}
        />
      </main>
    </>
  );
}

render(<App />, document.getElementById('app')!);
