// The account's usage by month or day.
import { useEffect, useState } from 'preact/hooks';
import { api, login, plainly, type Usage, type UsageGroup, type UsageQuery } from './api';
import { save } from './formats';
import { tierName } from './price';
import { clock, lang, money, t, type TextKey } from './texts';

const groups: [UsageGroup, TextKey][] = [
  ['key', 'key'],
  ['model', 'usageModel'],
  ['kind', 'usageKind'],
];
const kinds: Record<string, TextKey> = {
  asr: 'usageText',
  diarize: 'pDiarize',
  audio_events: 'pEvents',
  batch: 'pBatch',
  live: 'navLive',
};
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** UsageSection shows the usage; free omits the money; a change of balance fetches the usage again. */
export function UsageSection({ free, balance }: { free: boolean; balance?: number }) {
  const [period, setPeriod] = useState<UsageQuery['period']>('month');
  const [by, setBy] = useState<UsageGroup[]>(['kind']);
  const [usage, setUsage] = useState<{ list: Usage; by: UsageGroup[] } | null>(null);
  const [keys, setKeys] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState('');
  const query = { period, by, timezone: zone };
  useEffect(() => {
    let current = true;
    const answered = (list: Usage) => {
      if (!current) return;
      setUsage({ list, by });
      setProblem('');
    };
    api.usage(query).then(answered, (e) => {
      if (current) setProblem(plainly(e));
    });
    return () => {
      current = false;
    };
  }, [period, by, balance]);
  const byKey = by.includes('key') && !!login.value && 'token' in login.value; // without a password only ids are shown
  useEffect(() => {
    if (!byKey) return;
    let current = true;
    api.keys().then(
      (l) => {
        if (current) setKeys(Object.fromEntries(l.keys.map((k) => [k.id, k.hint + '…'])));
      },
      () => {
        /* the ids are shown */
      },
    );
    return () => {
      current = false;
    };
  }, [byKey]);
  const text = (group: UsageGroup, value: string) => {
    if (group === 'key') return value ? (keys[value] ?? value.slice(0, 8)) : t('usageNoKey');
    if (group === 'model') return tierName(value);
    return value
      .split('+')
      .map((k) => (kinds[k] ? t(kinds[k]) : k))
      .join(lang.value === 'zh' ? '、' : ', ');
  };
  const columns = groups.filter(([g]) => usage?.by.includes(g));
  const sums = (x: Usage['total']) => (
    <>
      <td role="cell" class="number" data-label={t('usageTasks')}>
        {x.tasks}
      </td>
      <td role="cell" class="number" data-label={t('usageLength')}>
        {clock(x.seconds)}
      </td>
      {!free && (
        <td role="cell" class="number sum">
          {money(x.amount)}
        </td>
      )}
    </>
  );
  return (
    <section class="card pad usage" aria-labelledby="usage-title">
      <h2 id="usage-title">{t('usage')}</h2>
      <div class="usage-choices">
        <label>
          {t('usagePeriod')}{' '}
          <select value={period} onChange={(e) => setPeriod(e.currentTarget.value as UsageQuery['period'])}>
            <option value="month">{t('usageMonths')}</option>
            <option value="day">{t('usageDays')}</option>
          </select>
        </label>
        <span class="group" role="group" aria-label={t('usageBy')}>
          <span class="muted">{t('usageBy')}</span>
          {groups.map(([g, name]) => (
            <label key={g} class="check">
              <input
                type="checkbox"
                checked={by.includes(g)}
                onChange={() => setBy(by.includes(g) ? by.filter((x) => x !== g) : [...by, g])}
              />
              {t(name)}
            </label>
          ))}
        </span>
        <button
          type="button"
          class="small"
          disabled={!usage?.list.usage.length}
          onClick={() =>
            void api.usageTable(query).then(
              (file) => save('usage.csv', file),
              (e) => setProblem(plainly(e)),
            )
          }
        >
          {t('usageFile')}
        </button>
      </div>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {!usage && !problem && <p class="muted">{t('loading')}</p>}
      {usage?.list.usage.length === 0 && <p class="muted">{t('usageNone')}</p>}
      {usage && usage.list.usage.length > 0 && (
        <div class="table" tabIndex={0} role="group" aria-labelledby="usage-title">
          <table role="table">
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader" scope="col">
                  {t('usagePeriod')}
                </th>
                {columns.map(([g, name]) => (
                  <th key={g} role="columnheader" scope="col">
                    {t(name)}
                  </th>
                ))}
                <th role="columnheader" scope="col" class="number">
                  {t('usageTasks')}
                </th>
                <th role="columnheader" scope="col" class="number">
                  {t('usageLength')}
                </th>
                {!free && (
                  <th role="columnheader" scope="col" class="number">
                    {t('amount')}
                  </th>
                )}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {usage.list.usage.map((x) => (
                <tr key={[x.period, x.key, x.model, x.kind].join('|')} role="row">
                  <td role="cell">{x.period}</td>
                  {columns.map(([g]) => (
                    <td key={g} role="cell" class="of">
                      {text(g, x[g] ?? '')}
                    </td>
                  ))}
                  {sums(x)}
                </tr>
              ))}
            </tbody>
            <tfoot role="rowgroup">
              <tr role="row">
                <th role="rowheader" scope="row">
                  {t('usageTotal')}
                </th>
                {columns.map(([g]) => (
                  <td key={g} role="cell" class="of" />
                ))}
                {sums(usage.list.total)}
              </tr>
            </tfoot>
          </table>
        </div>
      )}
      <p class="muted small">{t('usageZone', { zone })}</p>
    </section>
  );
}
