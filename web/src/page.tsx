// The page of the service.
import { signal } from '@preact/signals';
import { render, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { AccountPage } from './account';
import { api, expired, Failure, login, plainly, setLogin } from './api';
import './style.css';
import { active } from './live';
import { LivePage } from './livepage';
import { Submit } from './submit';
import { TaskPage } from './taskpage';
import { lang, setLang, t } from './texts';
import { toggleTheme } from './theme';
import { Worklist } from './worklist';

/** path is the address after #: / , /live, /account or /task/ID. It never contains a secret. */
const path = signal(location.hash.slice(1) || '/');
addEventListener('hashchange', () => {
  path.value = location.hash.slice(1) || '/';
  scrollTo(0, 0);
});

function App() {
  document.documentElement.lang = lang.value === 'zh' ? 'zh-CN' : 'en';
  if (!login.value)
    return (
      <Shell>
        <LoginForm />
      </Shell>
    );
  const task = /^\/task\/([0-9a-f-]{36})$/.exec(path.value);
  return (
    <Shell>
      {task ? (
        <TaskPage key={task[1]} id={task[1]} />
      ) : path.value === '/account' ? (
        <AccountPage />
      ) : path.value === '/live' ? (
        <LivePage />
      ) : (
        <>
          <Submit />
          <Worklist />
        </>
      )}
    </Shell>
  );
}

function Shell({ children }: { children: ComponentChildren }) {
  const here = (p: string) => (path.value === p ? 'page' : undefined);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        {t('skip')}
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <img src="./icon.svg" alt="" width={28} height={28} />
          <span>{t('title')}</span>
        </a>
        {login.value && (
          <nav aria-label={t('menu')}>
            <a href="#/" aria-current={here('/')}>
              {t('navWork')}
            </a>
            <a href="#/live" aria-current={here('/live')}>
              {t('navLive')}
              {active() && <span class="recording" role="img" aria-label={t('liveOn')} />}
            </a>
            <a href="#/account" aria-current={here('/account')}>
              {t('navAccount')}
            </a>
          </nav>
        )}
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
          {login.value && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                location.hash = '/';
                setLogin(null);
              }}
            >
              {t('logout')}
            </button>
          )}
        </span>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

function LoginForm() {
  const [way, setWay] = useState<'key' | 'user'>('key');
  const [problem, setProblem] = useState(expired.value ? t('eUnauthorized') : '');
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), [way]);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement),
      text = (name: string) => String(data.get(name) ?? '');
    setProblem('');
    setBusy(true);
    try {
      if (way === 'key') {
        const key = text('key').trim();
        if (!/^asr_[0-9A-Za-z]{40}$/.test(key)) {
          setProblem(t('keyShape'));
          return;
        }
        await api.account({ key });
        setLogin({ key });
      } else {
        const got = await api.logIn(text('username').trim(), text('password'));
        setLogin({ token: got.access_token, until: Date.now() + got.expires_in * 1000 });
      }
    } catch (e) {
      setProblem(
        e instanceof Failure && (e.code === 'unauthorized' || e.code === 'rate_limited')
          ? t(e.code === 'rate_limited' ? 'tooManyTries' : way === 'key' ? 'keyWrong' : 'userWrong')
          : plainly(e),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card login">
      <h1>{t('loginTitle')}</h1>
      <p class="lead">{t('subtitle')}</p>
      <p class="muted">{t('loginHelp')}</p>
      <form onSubmit={submit}>
        <div class="ways" role="radiogroup" aria-label={t('loginTitle')}>
          <label class="check">
            <input
              type="radio"
              name="way"
              checked={way === 'key'}
              onChange={() => {
                setWay('key');
                setProblem('');
              }}
            />
            {t('byKey')}
          </label>
          <label class="check">
            <input
              type="radio"
              name="way"
              checked={way === 'user'}
              onChange={() => {
                setWay('user');
                setProblem('');
              }}
            />
            {t('byUser')}
          </label>
        </div>
        {way === 'key' ? (
          <>
            <label for="key">{t('key')}</label>
            <input
              id="key"
              name="key"
              ref={first}
              type="password"
              autocomplete="off"
              spellcheck={false}
              required
              aria-describedby="key-hint"
            />
            <span id="key-hint" class="muted small">
              {t('keyHint')}
            </span>
          </>
        ) : (
          <>
            <label for="username">{t('username')}</label>
            <input id="username" name="username" ref={first} autocomplete="username" required />
            <label for="password">{t('password')}</label>
            <input id="password" name="password" type="password" autocomplete="current-password" required />
          </>
        )}
        {problem && (
          <p class="error" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? t('loggingIn') : t('login')}
        </button>
      </form>
    </section>
  );
}

render(<App />, document.getElementById('app')!);
