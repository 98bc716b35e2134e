// The readable form of the interface's document.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, open, serious, service } from './world.mjs';

let s, b;
before(async () => {
  [s, b] = await Promise.all([service(), browser()]);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

for (const [name, width] of [
  ['wide', 1280],
  ['narrow', 390],
]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`the interface's page is open to everyone and asks for nothing: ${name}, ${colorScheme}`, async () => {
      const page = await open(b, { origin: s.url, colorScheme, viewport: { width, height: 860 } });
      const failed = [];
      page.on('response', (r) => {
        if (r.status() >= 400) failed.push(`${r.status()} ${r.url()}`);
      });
      page.on('console', (m) => failed.push(m.text()));
      await page.goto(`${s.url}/docs`);
      await page.getByRole('heading', { name: 'Objects' }).waitFor();
      assert.deepEqual(await serious(page), []);
      assert.deepEqual(failed, []);
      assert.deepEqual(page.urls, [`${s.url}/docs`]);
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        'nothing is wider than the window',
      );
      if (process.env.LOOK) await page.screenshot({ path: `${process.env.LOOK}/docs-${name}-${colorScheme}.png` });
      assert.deepEqual(page.wrong, []);
      await page.context().close();
    });
  }
}
