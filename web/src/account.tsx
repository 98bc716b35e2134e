// The account: money, limits, prices, transactions.
import { useEffect, useState } from 'preact/hooks';
import { api, plainly, sells, type Account, type Pricing, type Transaction } from './api';
import { CallbackTester } from './callbacktester';
import { Keys } from './keys';
import { chargeOf } from './reasons';
import { money, t, when, type TextKey } from './texts';
import { UsageSection } from './usage';
import { Voices } from './voices';

export function AccountPage() {
  const [account, setAccount] = useState<Account | null>(null);
  const [prices, setPrices] = useState<Pricing | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let timer = 0,
      over = false;
    const ask = async () => {
      try {
        setAccount(await api.account());
        setProblem('');
      } catch (e) {
        setProblem(plainly(e));
      }
      if (!over) timer = window.setTimeout(ask, 10000);
    };
    void ask();
    api.pricing().then(setPrices, (e) => setProblem(plainly(e)));
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  const rows = (list: [TextKey, string | number][]) => (
    <dl class="facts-table">
      {list.map(([k, v]) => (
        <div key={k}>
          <dt>{t(k)}</dt>
          <dd>{v}</dd>
        </div>
      ))}
    </dl>
  );
  const free = prices && !sells(prices);
  const loading = !problem && <p class="muted">{t('loading')}</p>;
  return (
    <>
      <h1>{t('account')}</h1>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <div class="columns">
        {!free && (
          <section class="card pad">
            <h2>{t('balance')}</h2>
            {account ? (
              <>
                <p class="big">{money(account.balance)}</p>
                {rows([
                  ['held', money(account.held_amount)],
                  ['packs', money(account.resource_pack_equivalent)],
                  ['available', money(account.available_balance)],
                ])}
              </>
            ) : (
              loading
            )}
          </section>
        )}
        <section class="card pad">
          <h2>{t('limits')}</h2>
          {account
            ? rows([
                ['tier', account.tier],
                ['concurrency', account.concurrency_limit],
                ['active', account.active_tasks],
                ['batchWaiting', account.waiting_batch_tasks],
                ['rate', account.tps_limit],
                ['burst', account.tps_burst],
              ])
            : loading}
        </section>
        {!free && (
          <section class="card pad">
            <h2>{t('prices')}</h2>
            {prices ? (
              <>
                {rows([
                  ['pStandard', money(prices.standard_price_per_hour)],
                  ['pFast', money(prices.zh_lite_price_per_hour)],
                  ['pDiarize', money(prices.diarize_price_per_hour)],
                  ['pEvents', money(prices.audio_events_price_per_hour)],
                  ...(prices.live_price_per_hour === undefined
                    ? []
                    : ([['pLive', money(prices.live_price_per_hour)]] as [TextKey, string][])),
                  ['pBatch', t('pBatchValue', { factor: prices.batch_discount })],
                ])}
                <p class="muted small">
                  {t('priceNote')}
                  {Date.parse(prices.updated_at) > 0 && ` ${t('priceDate', { when: when(prices.updated_at) })}`}
                </p>
              </>
            ) : (
              loading
            )}
          </section>
        )}
      </div>
      <Keys />
      <Voices />
      <UsageSection free={!!free} balance={account?.balance} />
      {!free && <Transactions balance={account?.balance} />}
      <CallbackTester
        prices={prices}
        onCharge={() =>
          void api.account().then(setAccount, () => {
            /* the account is requested again soon */
          })
        }
      />
    </>
  );
}

/** Transactions lists the account's transactions, again when the balance has changed. */
function Transactions({ balance }: { balance?: number }) {
  const [page, setPage] = useState(1);
  const [list, setList] = useState<{ transactions: Transaction[]; total: number } | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let current = true;
    api.transactions(page).then(
      (l) => {
        if (current) setList(l);
      },
      (e) => {
        if (current) setProblem(plainly(e));
      },
    );
    return () => {
      current = false;
    };
  }, [page, balance]);
  const pages = list ? Math.max(1, Math.ceil(list.total / 20)) : 1;
  return (
    <section class="card pad transactions" aria-labelledby="transactions-title">
      <h2 id="transactions-title">{t('transactions')}</h2>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {list && list.total === 0 && <p class="muted">{t('noTransactions')}</p>}
      {list && list.total > 0 && (
        <div class="table" tabIndex={0} role="group" aria-labelledby="transactions-title">
          <table role="table">
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader" scope="col">
                  {t('when')}
                </th>
                <th role="columnheader" scope="col">
                  {t('kind')}
                </th>
                <th role="columnheader" scope="col">
                  {t('what')}
                </th>
                <th role="columnheader" scope="col" class="number">
                  {t('amount')}
                </th>
                <th role="columnheader" scope="col" class="number">
                  {t('after')}
                </th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              {list.transactions.map((x) => (
                <tr key={x.id} role="row">
                  <td role="cell">{when(x.created_at)}</td>
                  <td role="cell">{t(x.type)}</td>
                  <td role="cell">
                    {x.task_id ? (
                      <a href={`#/task/${x.task_id}`}>{chargeOf(x.description) || x.task_id}</a>
                    ) : (
                      x.description
                    )}
                  </td>
                  <td role="cell" class={`number ${x.amount.startsWith('-') ? 'minus' : 'plus'}`}>
                    {x.amount}
                  </td>
                  <td role="cell" class="number">
                    {x.balance_after}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages > 1 && (
        <div class="pager">
          <button type="button" disabled={page <= 1} onClick={() => setPage(page - 1)}>
            {t('newer')}
          </button>
          <span class="muted small">{t('pageOf', { page, pages })}</span>
          <button type="button" disabled={page >= pages} onClick={() => setPage(page + 1)}>
            {t('older')}
          </button>
        </div>
      )}
    </section>
  );
}
