// The API keys of the account: a user who has logged in with a password creates,
// lists and revokes them.
import { useEffect, useState } from 'preact/hooks';
import { api, login, plainly, type Key } from './api';
import { t, when } from './texts';

export function Keys() {
  const person = !!login.value && 'token' in login.value;
  const [list, setList] = useState<Key[] | null>(null);
  const [made, setMade] = useState('');
  const [asked, setAsked] = useState('');
  const [problem, setProblem] = useState('');
  const act = async (what: () => Promise<unknown>) => {
    setProblem('');
    setAsked('');
    try {
      await what();
      setList((await api.keys()).keys);
    } catch (e) {
      setProblem(plainly(e));
    }
  };
  useEffect(() => {
    if (person) void act(async () => {});
  }, [person]);
  const make = () => act(async () => setMade((await api.makeKey()).key!));
  const revoke = (k: Key) =>
    act(async () => {
      await api.revokeKey(k.id);
      if (made.startsWith(k.hint)) setMade('');
    });
  const valid = list?.filter((k) => !k.revoked_at && !(k.expires_at && Date.parse(k.expires_at) < Date.now())) ?? [];
  return (
    <section class="card pad" aria-labelledby="keys-title">
      <h2 id="keys-title">{t('apiKeys')}</h2>
      <p class="muted">{t(person ? 'apiKeysHelp' : 'apiKeysNeedPassword')}</p>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {valid.length > 0 && (
        <ul class="keys-list">
          {valid.map((k) => (
            <li key={k.id}>
              <code>{k.hint}…</code>
              <span class="muted small">
                {t('keySince', { when: when(k.created_at) })}
                {k.read_only && ` · ${t('keyReadOnly')}`}
                {k.expires_at && ` · ${t('keyUntil', { when: when(k.expires_at) })}`}
              </span>
              <span class="group">
                {asked === k.id ? (
                  <>
                    <span class="small" role="alert">
                      {t('keyRevokeAsk', { key: `${k.hint}…` })}
                    </span>
                    <button type="button" class="small danger" onClick={() => void revoke(k)}>
                      {t('keyRevoke')}
                    </button>
                    <button type="button" class="small" onClick={() => setAsked('')}>
                      {t('cancel')}
                    </button>
                  </>
                ) : (
                  <button
                    type="button"
                    class="small"
                    aria-label={`${t('keyRevoke')}: ${k.hint}…`}
                    onClick={() => setAsked(k.id)}
                  >
                    {t('keyRevoke')}
                  </button>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      {made && (
        <div class="good" role="status">
          <p>{t('keyOnce')}</p>
          <code class="key">{made}</code>
        </div>
      )}
      {person && (
        <button type="button" onClick={() => void make()}>
          {t('keyMake')}
        </button>
      )}
    </section>
  );
}
