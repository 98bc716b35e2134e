// The account's known voices: saved from a result, listed, deleted.
import { useEffect, useState } from 'preact/hooks';
import { api, plainly, type KnownVoice } from './api';
import type { Result } from './result';
import { t, when } from './texts';

/** Remember saves a speaker's voice from a task in the account. Nothing is sent before the consent is ticked. */
export function Remember({
  task,
  result,
  names,
}: {
  task: string;
  result: Result;
  names: (speaker: string) => string;
}) {
  const speakers = (result.speaker_embeddings ?? []).map((s) => s.speaker_id);
  const [speaker, setSpeaker] = useState(speakers[0] ?? '');
  const [typed, setTyped] = useState<string | null>(null);
  const [consent, setConsent] = useState(false);
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState('');
  const [problem, setProblem] = useState('');
  if (!speakers.length) return null;
  const match = (of: string) => result.voices?.find((v) => v.speaker === of);
  const known = match(speaker)?.name,
    given = names(speaker),
    name = typed ?? (given === speaker ? (known ?? '') : given);
  const label = (s: string) => {
    const v = names(s) === s && match(s);
    return v
      ? t('voiceMaybe', { speaker: s, name: v.name, percent: Math.round(100 * (v.probability ?? 0)) })
      : names(s);
  };
  const choose = (to: string) => {
    setSpeaker(to);
    setTyped(null);
    setConsent(false); // the consent was another person's
    setDone('');
  };
  const send = async (what: () => Promise<unknown>, told: string) => {
    setBusy(true);
    setProblem('');
    setDone('');
    try {
      await what();
      setDone(told);
      setConsent(false);
    } catch (e) {
      setProblem(plainly(e));
    } finally {
      setBusy(false);
    }
  };
  const remember = () => {
    const agreed = t('voiceConsentNote', { date: new Date().toISOString().slice(0, 10) });
    const voice = { name: name.trim(), consent: agreed, task_id: task, speaker };
    return send(() => api.rememberVoice(voice), t('voiceKept', { name: voice.name }));
  };
  const deny = (name: string) =>
    send(() => api.denyVoice({ name, denied: true, task_id: task, speaker }), t('voiceDenied', { name }));
  return (
    <details class="card pad remember">
      <summary>{t('voiceRemember')}</summary>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void remember();
        }}
      >
        <p class="muted">{t('voiceHelp')}</p>
        <label>
          {t('voiceSpeaker')}{' '}
          <select value={speaker} onChange={(e) => choose(e.currentTarget.value)}>
            {speakers.map((s) => (
              <option key={s} value={s}>
                {label(s)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t('voiceName')}{' '}
          <input value={name} maxLength={64} required onInput={(e) => setTyped(e.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={consent} onChange={(e) => setConsent(e.currentTarget.checked)} />
          {t('voiceConsent')}
        </label>
        <button type="submit" class="small" disabled={!consent || !name.trim() || busy}>
          {t('voiceSend')}
        </button>
        {known && (
          <button type="button" class="small" disabled={busy} onClick={() => void deny(known)}>
            {t('voiceNot', { speaker, name: known })}
          </button>
        )}
        {done && <p role="status">{done}</p>}
        {problem && (
          <p class="error" role="alert">
            {problem}
          </p>
        )}
      </form>
    </details>
  );
}

/** Voices lists the account's voices and deletes them. */
export function Voices() {
  const [list, setList] = useState<KnownVoice[]>([]);
  const [problem, setProblem] = useState('');
  const act = async (what: () => Promise<unknown>) => {
    setProblem('');
    try {
      await what();
      setList((await api.voices()).voices);
    } catch (e) {
      setProblem(plainly(e));
    }
  };
  useEffect(() => {
    void act(async () => {});
  }, []);
  return (
    <section class="card pad" aria-labelledby="voices-title">
      <h2 id="voices-title">{t('knownVoices')}</h2>
      <p class="muted">{t('knownVoicesHelp')}</p>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {list.length > 0 && (
        <ul class="keys-list">
          {list.map((v) => (
            <li key={v.id}>
              <span dir="auto">{v.name}</span>
              <span class="muted small">
                {when(v.added_at)} · {v.consent}
              </span>
              <button
                type="button"
                class="small danger"
                aria-label={`${t('voiceForget')}: ${v.name}`}
                onClick={() => void act(() => api.forgetVoice(v.id))}
              >
                {t('voiceForget')}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
