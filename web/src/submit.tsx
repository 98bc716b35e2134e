// The form that submits recordings, with its options.
import { signal } from '@preact/signals';
import { Fragment, type ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { api, plainly, sells, type Pricing, type Submission } from './api';
import { languageChoices } from './languages';
import { MicrophoneIcon } from './microphoneicon';
import { add, refresh } from './queue';
import { inCurrency, lang, t, type TextKey } from './texts';

interface Choices {
  asr: boolean;
  diarize: boolean;
  events: boolean;
  language: string;
  quality: 'auto' | 'words' | 'fast';
  speakers: string;
  hotwords: string;
  batch: boolean;
  training: boolean;
  nameVoices: boolean;
  times: 'word' | 'segment';
  callback: string;
  secret: string;
  prompt: string;
  classes: string;
  numbers: Record<string, string>;
}

interface Numeric {
  name: string;
  text: TextKey;
  hint: TextKey;
  start: string;
  min: number;
  max: number;
  step: number;
}

/** The numeric options with the specification's defaults and the service's bounds, in groups. */
const numeric: Record<'text' | 'speech' | 'voices' | 'sounds', Numeric[]> = {
  text: [
    { name: 'asr_beam_size', text: 'beam', hint: 'beamHint', start: '5', min: 1, max: 20, step: 1 },
    { name: 'asr_temperature', text: 'temperature', hint: 'temperatureHint', start: '0', min: 0, max: 1, step: 0.1 },
    { name: 'asr_best_of', text: 'bestOf', hint: 'bestOfHint', start: '', min: 1, max: 20, step: 1 },
    { name: 'no_speech_threshold', text: 'noSpeech', hint: 'noSpeechHint', start: '0.6', min: 0, max: 1, step: 0.05 },
  ],
  speech: [
    { name: 'vad_threshold', text: 'vad', hint: 'vadHint', start: '0.35', min: 0, max: 1, step: 0.05 },
    { name: 'vad_min_speech_ms', text: 'minSpeech', hint: 'minSpeechHint', start: '250', min: 0, max: 10000, step: 10 },
    {
      name: 'vad_min_silence_ms',
      text: 'minSilence',
      hint: 'minSilenceHint',
      start: '100',
      min: 0,
      max: 10000,
      step: 10,
    },
    { name: 'vad_speech_pad_ms', text: 'pad', hint: 'padHint', start: '30', min: 0, max: 2000, step: 10 },
  ],
  voices: [
    { name: 'min_speakers', text: 'minSpeakers', hint: 'speakersHint', start: '1', min: 1, max: 50, step: 1 },
    { name: 'max_speakers', text: 'maxSpeakers', hint: 'speakersHint', start: '10', min: 1, max: 50, step: 1 },
    {
      name: 'diarize_min_segment_sec',
      text: 'minSegment',
      hint: 'minSegmentHint',
      start: '0.5',
      min: 0.1,
      max: 10,
      step: 0.1,
    },
    {
      name: 'diarize_single_speaker_threshold',
      text: 'oneSpeaker',
      hint: 'oneSpeakerHint',
      start: '0.05',
      min: -1,
      max: 1,
      step: 0.05,
    },
  ],
  sounds: [
    {
      name: 'audio_events_threshold',
      text: 'eventsThreshold',
      hint: 'eventsThresholdHint',
      start: '0.3',
      min: 0,
      max: 1,
      step: 0.05,
    },
  ],
};
const allNumeric = Object.values(numeric).flat();

const defaults: Choices = {
  asr: true,
  diarize: true,
  events: true,
  language: '',
  quality: 'auto',
  speakers: '',
  hotwords: '',
  batch: false,
  training: false,
  nameVoices: false,
  times: 'word',
  callback: '',
  secret: '',
  prompt: '',
  classes: '',
  numbers: Object.fromEntries(allNumeric.map((n) => [n.name, n.start])),
};
/** choices are the form's options; a live session uses some of them. */
export const choices = signal<Choices>(defaults);
export const set = (to: Partial<Choices>) => {
  choices.value = { ...choices.value, ...to };
};
/** listOf splits a list in a field. */
export const listOf = (text: string) =>
  text
    .split(/[,，、\n]/)
    .map((x) => x.trim())
    .filter(Boolean);

/** submission returns the choices as options of the API: only the ones that differ from its defaults. */
export function submission(c: Choices): Submission {
  const options: Record<string, unknown> = {};
  if (!c.asr) options.enable_asr = false;
  if (!c.diarize || !c.asr) options.enable_diarize = false;
  if (!c.events) options.enable_audio_events = false;
  if (c.asr) {
    if (c.quality !== 'auto') options.optimize = c.quality === 'fast';
    if (c.times !== 'word') options.timestamp_level = c.times;
    if (c.language) options.asr_language = c.language;
    if (listOf(c.hotwords).length) options.hotwords = listOf(c.hotwords);
    if (c.prompt.trim()) options.initial_prompt = c.prompt.trim();
    if (c.diarize && c.nameVoices) options.voices = true;
    if (c.diarize && c.speakers) options.num_speakers = Number(c.speakers);
  }
  if (c.events && listOf(c.classes).length) options.audio_events_classes = listOf(c.classes);
  for (const n of allNumeric)
    if (c.numbers[n.name] !== n.start && c.numbers[n.name] !== '') options[n.name] = Number(c.numbers[n.name]);
  const s: Submission = {};
  if (Object.keys(options).length) s.options = options;
  if (c.batch) s.batch_mode = true;
  if (c.training) s.allow_training = true;
  if (c.callback.trim()) {
    s.callback_url = c.callback.trim();
    if (c.secret) s.callback_secret = c.secret;
  }
  return s;
}

/** objection returns why the form can't be submitted; empty if it can. */
function objection(c: Choices): string {
  if (!c.asr && !c.events) return t('nothing');
  for (const n of allNumeric) {
    const text = c.numbers[n.name],
      value = Number(text);
    if (text !== '' && !(value >= n.min && value <= n.max && (n.step < 1 || Number.isInteger(value))))
      return t(n.step < 1 ? 'outOfBounds' : 'outOfBoundsWhole', { name: t(n.text), min: n.min, max: n.max });
  }
  const of = (name: string) => Number(c.numbers[name] || allNumeric.find((n) => n.name === name)!.start);
  if (of('min_speakers') > of('max_speakers')) return t('speakersCrossed');
  if (c.secret && !c.callback.trim()) return t('secretAlone');
  return '';
}

export function Submit() {
  const c = choices.value;
  const [over, setOver] = useState(false);
  const [urls, setUrls] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    // a file that misses the field must not replace the page
    const stop = (e: DragEvent) => {
      if (e.dataTransfer?.types.includes('Files')) e.preventDefault();
    };
    for (const name of ['dragover', 'drop'] as const) document.addEventListener(name, stop);
    return () => {
      for (const name of ['dragover', 'drop'] as const) document.removeEventListener(name, stop);
    };
  }, []);

  const take = (files: FileList | null | undefined) => {
    setProblem('');
    if (!files?.length) return;
    const against = objection(c);
    if (against) return setProblem(against);
    add(files, submission(c));
  };
  const fetchUrls = async () => {
    const wanted = urls.split(/\s+/).filter(Boolean);
    setProblem('');
    const against = objection(c);
    if (against) return setProblem(against);
    const bad = wanted.find((u) => !/^https?:\/\/[^/\s]+/i.test(u));
    if (bad) return setProblem(t('urlBad', { url: bad }));
    setBusy(true);
    const left: string[] = [],
      said: string[] = [];
    let sent = 0;
    try {
      if (c.batch) {
        for (; sent < wanted.length; sent += 100) {
          const { results } = await api.submitBatch(wanted.slice(sent, sent + 100), submission(c));
          for (const r of results)
            if (!r.success) {
              left.push(r.audio_url);
              said.push(`${r.audio_url}: ${r.error}`);
            }
        }
      } else {
        for (const u of wanted) {
          try {
            await api.submitUrl(u, submission(c));
          } catch (e) {
            left.push(u);
            said.push(`${u}: ${plainly(e)}`);
          }
        }
      }
    } catch (e) {
      said.push(plainly(e));
      left.push(...wanted.slice(sent));
    }
    setUrls(left.join('\n'));
    setProblem(said.join('\n'));
    setBusy(false);
    void refresh();
  };

  return (
    <section class="card submit" aria-labelledby="new-title">
      <h1 id="new-title">{t('newTitle')}</h1>
      <div class="submit-columns">
        <div>
          <div
            class={`drop ${over ? 'over' : ''}`}
            onDragOver={(e) => {
              e.preventDefault();
              setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(e) => {
              e.preventDefault();
              setOver(false);
              const link = e.dataTransfer?.getData('text/uri-list');
              if (link) setUrls([...urls.split(/\s+/), ...link.split(/\s+/)].filter(Boolean).join('\n'));
              else take(e.dataTransfer?.files);
            }}
          >
            <svg viewBox="0 0 48 32" aria-hidden="true">
              <path d="M4 13v6M12 8v16M20 3v26M28 10v12M36 6v20M44 13v6" />
            </svg>
            <strong>{t('drop')}</strong>
            <span class="muted">{t('dropOr')}</span>
            <label class="button primary">
              {t('choose')}
              <input
                class="sr"
                type="file"
                multiple
                accept="audio/*,video/*,.flac,.mka,.mkv,.opus,.amr,.wma"
                onKeyDown={(e) => {
                  if (e.key !== 'Enter') return; // it looks like a button; Enter would submit a form
                  e.preventDefault();
                  e.currentTarget.click();
                }}
                onChange={(e) => {
                  take(e.currentTarget.files);
                  e.currentTarget.value = '';
                }}
              />
            </label>
            <span class="muted small">{t('dropHelp')}</span>
            <a class="button" href="#/live">
              <MicrophoneIcon />
              {t('liveOffer')}
            </a>
          </div>
          <form
            class="urls"
            onSubmit={(e) => {
              e.preventDefault();
              void fetchUrls();
            }}
          >
            <label for="urls">{t('orUrl')}</label>
            <textarea
              id="urls"
              rows={urls.includes('\n') ? 4 : 1}
              value={urls}
              placeholder="https://"
              spellcheck={false}
              aria-describedby="urls-hint"
              onInput={(e) => setUrls(e.currentTarget.value)}
            />
            <div class="spread">
              <span id="urls-hint" class="muted small">
                {t('urlHint')}
              </span>
              <button type="submit" disabled={!urls.trim() || busy}>
                {t('submitUrl')}
              </button>
            </div>
          </form>
          {problem && (
            <p class="error" role="alert">
              {problem}
            </p>
          )}
        </div>
        <Options />
      </div>
      <More />
    </section>
  );
}

function Options() {
  const c = choices.value;
  const [prices, setPrices] = useState<Pricing | null>(null);
  useEffect(() => {
    api.pricing().then(setPrices, () => {
      /* the price line is left out */
    });
  }, []);
  const reader = lang.value,
    spoken = useMemo(() => languageChoices(reader), [reader]);
  const perHour = (base: number) =>
    (base +
      (c.asr && c.diarize ? prices!.diarize_price_per_hour : 0) +
      (c.events ? prices!.audio_events_price_per_hour : 0)) *
    (c.batch ? prices!.batch_discount : 1);
  const cost = () => {
    const fast = perHour(prices!.zh_lite_price_per_hour).toFixed(2),
      careful = perHour(prices!.standard_price_per_hour).toFixed(2);
    return !c.asr || fast === careful || c.quality === 'words' ? careful : `${fast} – ${careful}`; // without a text the standard price applies
  };
  return (
    <fieldset class="options">
      <legend>{t('options')}</legend>
      <label class="check">
        <input type="checkbox" checked={c.asr} onChange={(e) => set({ asr: e.currentTarget.checked })} />
        {t('asr')}
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={c.diarize && c.asr}
          disabled={!c.asr}
          onChange={(e) => set({ diarize: e.currentTarget.checked })}
        />
        {t('diarize')}
        {!c.asr && <span class="muted small">{t('diarizeNeeds')}</span>}
      </label>
      <label class="check">
        <input type="checkbox" checked={c.events} onChange={(e) => set({ events: e.currentTarget.checked })} />
        {t('events')}
      </label>
      <div class="pairs">
        <label for="o-language">{t('spoken')}</label>
        <select
          id="o-language"
          value={c.language}
          disabled={!c.asr}
          onChange={(e) => set({ language: e.currentTarget.value })}
        >
          <option value="">{t('auto')}</option>
          {spoken.map(({ code, name }) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
        <label for="o-quality">{t('quality')}</label>
        <select
          id="o-quality"
          value={c.quality}
          disabled={!c.asr}
          onChange={(e) => set({ quality: e.currentTarget.value as Choices['quality'] })}
        >
          <option value="auto">{t('qAuto')}</option>
          <option value="words">{t('qWords')}</option>
          <option value="fast">{t('qFast')}</option>
        </select>
        <label for="o-speakers">{t('speakers')}</label>
        <select
          id="o-speakers"
          value={c.speakers}
          disabled={!c.asr || !c.diarize}
          onChange={(e) => set({ speakers: e.currentTarget.value })}
        >
          <option value="">{t('speakersAuto')}</option>
          {Array.from({ length: 50 }, (_, i) => (
            <option key={i} value={String(i + 1)}>
              {i + 1}
            </option>
          ))}
        </select>
        <label for="o-hotwords">{t('hotwords')}</label>
        <input
          id="o-hotwords"
          value={c.hotwords}
          disabled={!c.asr}
          placeholder={t('hotwordsHint')}
          onInput={(e) => set({ hotwords: e.currentTarget.value })}
        />
      </div>
      <label class="check">
        <input type="checkbox" checked={c.batch} onChange={(e) => set({ batch: e.currentTarget.checked })} />
        {t('batch', { percent: prices ? Math.round((1 - prices.batch_discount) * 100) : '…' })}
      </label>
      {prices && sells(prices) && <p class="muted small">{t('price', { amount: inCurrency(cost()) })}</p>}
    </fieldset>
  );
}

/** More shows the options that few people need. */
function More() {
  const c = choices.value;
  return (
    <details class="more">
      <summary>{t('more')}</summary>
      <div class="groups">
        <div>
          <Group title="gText">
            <Row id="o-times" label="times" hint="timesHint">
              <select
                id="o-times"
                value={c.times}
                aria-describedby="o-times-hint"
                onChange={(e) => set({ times: e.currentTarget.value as Choices['times'] })}
              >
                <option value="word">{t('timesWord')}</option>
                <option value="segment">{t('timesSegment')}</option>
              </select>
            </Row>
            <Row id="o-prompt" label="prompt" hint="promptHint">
              <textarea
                id="o-prompt"
                rows={2}
                maxLength={1000}
                value={c.prompt}
                aria-describedby="o-prompt-hint"
                onInput={(e) => set({ prompt: e.currentTarget.value })}
              />
            </Row>
            <Numbers list={numeric.text} />
          </Group>
          <Group title="gAfter">
            <Row id="o-callback" label="callback" hint="callbackHint">
              <input
                id="o-callback"
                type="url"
                value={c.callback}
                placeholder="https://"
                aria-describedby="o-callback-hint"
                onInput={(e) => set({ callback: e.currentTarget.value })}
              />
            </Row>
            <Row
              id="o-secret"
              label="secret"
              hint={c.secret && [...c.secret].length < 16 ? 'secretShort' : 'secretHint'}
            >
              <input
                id="o-secret"
                type="password"
                autocomplete="off"
                value={c.secret}
                aria-describedby="o-secret-hint"
                onInput={(e) => set({ secret: e.currentTarget.value })}
              />
            </Row>
          </Group>
          <label class="check">
            <input type="checkbox" checked={c.training} onChange={(e) => set({ training: e.currentTarget.checked })} />
            {t('training')}
          </label>
          <button
            type="button"
            class="small reset"
            onClick={() => {
              choices.value = defaults;
            }}
          >
            {t('reset')}
          </button>
        </div>
        <div>
          <Group title="gSpeech">
            <Numbers list={numeric.speech} />
          </Group>
          <Group title="gVoices">
            <Numbers list={numeric.voices} />
            <label class="check">
              <input
                type="checkbox"
                checked={c.nameVoices}
                onChange={(e) => set({ nameVoices: e.currentTarget.checked })}
              />
              {t('nameVoices')}
            </label>
          </Group>
          <Group title="gSounds">
            <Row id="o-classes" label="eventClasses" hint="eventClassesHint">
              <input
                id="o-classes"
                value={c.classes}
                placeholder="Music, Applause"
                aria-describedby="o-classes-hint"
                onInput={(e) => set({ classes: e.currentTarget.value })}
              />
            </Row>
            <Numbers list={numeric.sounds} />
          </Group>
        </div>
      </div>
    </details>
  );
}

/** Group shows some of the further options under a heading. */
function Group({ title, children }: { title: TextKey; children: ComponentChildren }) {
  return (
    <fieldset class="group-of-options">
      <legend>{t(title)}</legend>
      <div class="pairs">{children}</div>
    </fieldset>
  );
}

/** Row shows an option with its name and its effect. */
function Row({
  id,
  label,
  hint,
  children,
}: {
  id: string;
  label: TextKey;
  hint: TextKey;
  children: ComponentChildren;
}) {
  return (
    <>
      <div>
        <label for={id}>{t(label)}</label>
        <div id={`${id}-hint`} class="muted hint-line">
          {t(hint)}
        </div>
      </div>
      {children}
    </>
  );
}

/** Numbers shows numeric options with a default and bounds. */
function Numbers({ list }: { list: Numeric[] }) {
  const numbers = choices.value.numbers;
  return (
    <>
      {list.map((n) => {
        const id = `o-${n.name}`;
        return (
          <Fragment key={n.name}>
            <div>
              <label for={id}>{t(n.text)}</label>
              <div id={`${id}-hint`} class="muted hint-line">
                {t(n.hint)}
                {lang.value === 'zh' ? '' : ' '}
                {n.start
                  ? t('bounds', { min: n.min, max: n.max, start: n.start })
                  : t('boundsOff', { min: n.min, max: n.max })}
              </div>
            </div>
            <input
              id={id}
              type="number"
              min={n.min}
              max={n.max}
              step={n.step}
              value={numbers[n.name]}
              aria-describedby={`${id}-hint`}
              onInput={(e) => set({ numbers: { ...choices.value.numbers, [n.name]: e.currentTarget.value } })}
            />
          </Fragment>
        );
      })}
    </>
  );
}
