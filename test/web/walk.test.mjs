// The way through the page by keyboard alone, and in Chinese.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { at, browser, eventually, open, recording, repeated, service } from './world.mjs';

let s, b, id, result; // id is the recording's task, result its result from the API
before(async () => {
  [s, b] = await Promise.all([service(), browser()]);
  const answer = await fetch(s.url + '/v1/tasks', {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      audio_filename: 'conversation.flac',
      audio_base64: readFileSync(recording).toString('base64'),
      options: { optimize: false },
    }),
  });
  ({ id } = await answer.json());
  for (;;) {
    const { status, error_message } = await s.ask(`/tasks/${id}`);
    if (status === 'done') break;
    assert.equal(status, 'processing', error_message);
    await new Promise((go) => setTimeout(go, 1000));
  }
  result = await s.ask(`/tasks/${id}/result`);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

test('a result is played, searched, corrected and downloaded by keyboard alone', async () => {
  const page = await open(b, { origin: s.url, acceptDownloads: true });
  await page.goto(s.url);
  await page.waitForFunction(() => document.activeElement.id === 'key'); // the field has the focus
  const press = (...keys) => keys.reduce((after, key) => after.then(() => page.keyboard.press(key)), Promise.resolve());
  const here = () =>
    page.evaluate(() => {
      const e = document.activeElement;
      return (e.labels?.[0]?.textContent || e.getAttribute('aria-label') || e.textContent || '').trim();
    });
  /** tabTo presses Tab until the element with this name has the focus. */
  const tabTo = async (name, key = 'Tab') => {
    for (let i = 0; i < 200; i++) {
      await press(key);
      const found = await here();
      if (name instanceof RegExp ? name.test(found) : found === name) {
        assert.ok(
          await page.evaluate(() => {
            const e = document.activeElement,
              o = getComputedStyle(e),
              p = getComputedStyle(e.closest('.button, .chip') ?? e);
            return o.outlineStyle !== 'none' || p.outlineStyle !== 'none';
          }),
          `${name}: the focus is not to be seen`,
        );
        return;
      }
    }
    assert.fail(`${name} is not reached by ${key}`);
  };
  const time = () => page.locator('.scrub').inputValue().then(Number);
  /** stands waits until the slider shows a time, which it rounds to tenths of a second. */
  const stands = (seconds, what) =>
    eventually(async () => {
      const shown = await time();
      assert.ok(Math.abs(shown - seconds) < 0.06, `${shown} s instead of ${seconds} s ${what ?? ''}`);
    });
  const focused = (name, what) => eventually(async () => assert.match(await here(), name, what));
  const playing = () => page.getByRole('button', { name: 'Pause' }).waitFor();
  const still = () => page.getByRole('button', { name: 'Play', exact: true }).waitFor();

  await page.keyboard.type(s.key);
  await press('Enter');
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor();
  await Promise.all([page.waitForEvent('filechooser'), tabTo('Choose files').then(() => press('Enter'))]);
  await tabTo('Open: conversation.flac');
  await press('Enter');
  await page.locator('.segment').first().waitFor();

  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    tabTo('Open the recording').then(() => press('Enter')),
  ]);
  await chooser.setFiles(recording);
  await page.getByText('The recording is not stored').waitFor({ state: 'detached' });

  await tabTo('Play');
  await press('Enter');
  await playing();
  await press('Enter');
  await still();
  await press('Shift+Tab'); // 5 seconds back
  assert.equal(await here(), 'Back 5 seconds');
  await tabTo('Position');
  await press('End');
  await stands(result.audio_duration);
  await press('Home');
  await stands(0);
  await press('ArrowRight');
  await stands(0.1, 'the arrow moves the slider');

  const { word, total } = repeated(result.segments);
  await tabTo('Search');
  await page.keyboard.type(word);
  await page.getByText(`1 of ${total}`, { exact: true }).waitFor();
  await press('Enter');
  await page.getByText(`2 of ${total}`, { exact: true }).waitFor();
  await press('Escape');

  await tabTo(/^Play from \d:\d\d$/); // a sentence's time
  await press('Enter');
  await playing();
  await press('Shift+Tab'); // to the list
  await focused(/^Transcript$/);
  await press(' '); // the space bar plays and pauses where it has no other meaning
  await still();
  await tabTo('Position', 'Shift+Tab');
  await press('Home');
  await stands(0);
  await page.evaluate(() => document.getElementById('main').focus());
  await press('ArrowRight', 'ArrowRight');
  await stands(10, 'five seconds on, twice');
  await press('ArrowLeft');
  await stands(5, 'five seconds back');
  await press('ArrowRight');
  await stands(10);
  const starts = result.segments.flatMap((x) => x.words.map((w) => w.start)),
    next = starts.findIndex((t) => t > 10);
  await press('.');
  await stands(starts[next], 'the next word');
  await press(',', ',');
  await stands(starts[next - 2], 'the words before');

  await press('/');
  await focused(/^Search$/);
  await tabTo(/^Correct the text at/);
  await press('Enter');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('Corrected by keyboard.');
  await press('Enter');
  await page.locator('.segment .text', { hasText: 'Corrected by keyboard.' }).waitFor();
  await focused(/^Correct the text at/, 'the focus stays at the row');

  await tabTo('Rename SPEAKER_0', 'Shift+Tab');
  await press('Enter');
  await page.keyboard.type('Ada');
  await press('Enter');
  await page.locator('.segment .who', { hasText: 'Ada' }).first().waitFor();
  await focused(/^Rename Ada$/, 'the focus stays at the name');
  await tabTo('TXT');
  const [download] = await Promise.all([page.waitForEvent('download'), press('Enter')]);
  assert.match(readFileSync(await download.path(), 'utf8'), /^\[Ada\] Corrected by keyboard\.$/m);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

/** forget removes the names and corrections that a test left with the recording. */
async function forget() {
  const { version, speakers, texts } = await s.notes(id);
  const none = (o) => Object.fromEntries(Object.keys(o ?? {}).map((k) => [k, null]));
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`${s.url}/v1/tasks/${id}/corrections`, {
      method: 'POST',
      headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ version, op: 'annotate', speakers: none(speakers), texts: none(texts) }),
    });
    if (answer.status === 201) return;
    assert.ok(answer.status === 429 && tries < 10, await answer.text()); // the page has just used up its rate of requests
    await new Promise((go) => setTimeout(go, 1000));
  }
}

test('the interface in Chinese shows no English', async () => {
  await forget();
  const page = await open(b, { origin: s.url, locale: 'zh-CN', acceptDownloads: true });
  await page.goto(s.url);
  await page.waitForFunction(() => document.documentElement.lang === 'zh-CN');
  /** english lists the texts of the page with English words other than names and data. */
  const english = async (where) => {
    const found = await page.evaluate(() => {
      const out = [],
        walk = document.createTreeWalker(document.getElementById('app'), NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const e = walk.currentNode.parentElement;
        if (
          e.closest('[lang=en], pre, .segment .text, .who, .chip, .timeline-names, script, style, option, [dir=auto]')
        )
          continue;
        if (e.closest('td') && !e.closest('td:nth-child(2), td a')) continue; // dates and the operator's own words
        out.push(walk.currentNode.textContent);
      }
      for (const e of document.querySelectorAll('#app [aria-label], #app [title], #app [placeholder]'))
        for (const a of ['aria-label', 'title', 'placeholder'])
          if (!e.matches('[lang=en], .timeline-names *, .who')) out.push(e.getAttribute(a) ?? '');
      for (const e of document.querySelectorAll('#app option')) out.push(e.textContent);
      return out;
    });
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const plain = (t) =>
      t
        .replace(
          /https?:\/\/\S*|Otograph|API|asr_|Music, Applause|SPEAKER_\d|POST|Esc|Ctrl|conversation\.flac|MP3|TXT|SRT|VTT|JSON|RTTM|Markdown|Word|DOCX|Praat TextGrid|ELAN|EAF|Audacity|TSV|CTM|CSV|https|localhost|curl|ms\b/g,
          '',
        )
        .replace(zone, '');
    assert.deepEqual(
      found.map(plain).filter((t) => /[A-Za-z]{2,}/.test(t)),
      [],
      where,
    );
  };
  await page.getByRole('button', { name: '登录' }).waitFor();
  await english('login');
  await page.locator('#key').fill('asr_' + 'x'.repeat(40));
  await page.getByRole('button', { name: '登录' }).click();
  await page.getByText('密钥不存在').waitFor();
  await page.locator('#key').fill(s.key);
  await page.getByRole('button', { name: '登录' }).click();
  await page.getByRole('heading', { name: '新建转写' }).waitFor();
  await page.getByText('更多选项').click();
  await page.getByText('每小时音频约').waitFor();
  await english('start');
  await page
    .locator('.drop input')
    .setInputFiles({ name: '小.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF') });
  await page.getByText('不足 1 KB').waitFor();
  await page.getByRole('link', { name: '打开: conversation.flac' }).click();
  await page.getByRole('heading', { name: '转写文本' }).waitFor();
  await page.getByText('转写结果中不含录音').waitFor();
  await page
    .locator('.timeline-names .sound', { hasText: /\p{Script=Han}/u })
    .first()
    .waitFor(); // the sounds have Chinese names
  await english('result');
  await page.getByLabel('打开录音').setInputFiles(recording);
  await page.locator('.word').first().click();
  await page.getByRole('button', { name: '暂停' }).click();
  await at(page, 0);
  const { word, total } = repeated(result.segments);
  await page.getByRole('searchbox', { name: '搜索' }).fill(word);
  await page.getByText(`第 1 个，共 ${total} 个`, { exact: true }).waitFor();
  await page.getByRole('button', { name: '重命名 SPEAKER_0' }).click();
  await page.getByRole('textbox', { name: '重命名 SPEAKER_0' }).fill('小明');
  await page.keyboard.press('Enter');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'TXT' }).click(),
  ]);
  assert.match(readFileSync(await download.path(), 'utf8'), /^\[小明\]/m);
  await page.locator('summary', { hasText: '声音事件' }).click();
  await page.getByRole('link', { name: '账户' }).click();
  await page.locator('tr', { hasText: '扣费' }).waitFor();
  await english('account');
  await page.getByRole('link', { name: '实时' }).click();
  await page.getByRole('button', { name: '打开麦克风' }).waitFor();
  await english('live');
  await page.getByRole('button', { name: '退出' }).click();
  await page.getByRole('heading', { name: '登录' }).waitFor();
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
