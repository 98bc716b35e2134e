// The view of one result as a file of its own.
import { render } from 'preact';
import type { Result } from './result';
import { ResultView } from './resultview';
import './style.css';
import { lang, setLang, t } from './texts';
import { toggleTheme } from './theme';

const data = JSON.parse(document.getElementById('data')!.textContent!) as { name: string; result: Result; audio?: string };

/** recording makes the embedded data URI a file that can be played and sought in. */
function recording(): Blob | undefined {
  const parts = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/.exec(data.audio ?? '');
  if (!parts) return undefined;
  const text = atob(data.audio!.slice(parts[0].length)), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  data.audio = undefined;
  return new Blob([bytes], { type: parts[1] });
}
const audio = recording();

function App() {
  document.documentElement.lang = lang.value === 'zh' ? 'zh-CN' : 'en';
  return (
    <>
      <header class="top">
        <span class="brand">{t('title')}</span>
        <span class="top-tools">
          <button type="button" class="quiet" onClick={() => setLang(lang.value === 'en' ? 'zh' : 'en')} lang={lang.value === 'en' ? 'zh-CN' : 'en'}>{t('language')}</button>
          <button type="button" class="quiet" onClick={toggleTheme} aria-label={t('theme')} title={t('theme')}>◐</button>
        </span>
      </header>
      <main id="main"><ResultView name={data.name} result={data.result} audio={audio} memory={data.result.audio_md5} reader={lang.value} /></main>
    </>
  );
}

render(<App />, document.getElementById('app')!);
