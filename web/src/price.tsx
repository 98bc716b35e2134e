// The price of a task as a calculation in words.
import type { Billing } from './result';
import { money, t, type TextKey } from './texts';

/** part is one line: minutes at a price per hour. */
const part = (name: string, minutes: number, price: number, amount: number) =>
  t('pricePart', { name, minutes, price: money(price), amount: money(amount) });

/** calculation returns the lines of a price; none if the price has no parts. */
export function calculation({ mode, billable_minutes: minutes, detail: d }: Billing): string[] {
  if (d?.base_amount === undefined || d.total === undefined) return [];
  const lines = [part(tierName(mode), minutes, d.base_price_per_hour ?? 0, d.base_amount)];
  if (d.diarize_amount !== undefined)
    lines.push(part(t('pDiarize'), minutes, d.diarize_price_per_hour ?? 0, d.diarize_amount));
  if (d.events_amount !== undefined)
    lines.push(part(t('pEvents'), minutes, d.events_price_per_hour ?? 0, d.events_amount));
  if (lines.length > 1) lines.push(t('priceSum', { amount: money(d.subtotal ?? 0) }));
  if (d.batch_discount)
    lines.push(t('priceBatch', { subtotal: money(d.subtotal ?? 0), factor: d.batch_discount, amount: money(d.total) }));
  return lines;
}

/** tierName returns the page's name of a tier of the specification; another model keeps its name. */
export const tierName = (mode: string): string => {
  const known: Record<string, TextKey> = { standard: 'pStandard', zh_lite: 'pFast' };
  return known[mode] ? t(known[mode]) : mode;
};

/** Price shows how the price of a task was calculated. */
export function Price({ billing }: { billing: Billing }) {
  const lines = calculation(billing);
  if (!billing.amount || !lines.length) return null;
  return (
    <details class="small">
      <summary>{t('priceHow')}</summary>
      <ul class="price">
        {lines.map((l) => (
          <li key={l}>{l}</li>
        ))}
      </ul>
      <p class="muted">{t('priceNote')}</p>
    </details>
  );
}
