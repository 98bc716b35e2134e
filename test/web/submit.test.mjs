// Submissions: files, links, batches, every option of the specification,
// callbacks; and their error messages.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { stranger } from './stranger.mjs';
import { browser, eventually, logIn, open, recording, service } from './world.mjs';

let s, b, page, other;
before(async () => {
  other = await stranger(500); // its first answer is a failure
  [s, b] = await Promise.all([service('--allow-outbound', other.address), browser()]);
  page = await open(b, { origin: s.url });
  await logIn(page, s);
});
after(async () => {
  await b?.close();
  await s?.stop();
  await other?.stop();
});

/** done waits until a recording is done, and returns its task. */
async function done(name) {
  await page.getByRole('link', { name: `Open: ${name}`, exact: true }).waitFor({ timeout: 600000 });
  const { tasks } = await s.ask('/tasks');
  return s.ask('/tasks/' + tasks.find((x) => x.audio_filename === name).id);
}
/** Few stages, so that the tests are quick. */
async function textOnly() {
  await page.getByLabel('Identify speakers').uncheck();
  await page.getByLabel('Detect sounds').uncheck();
}

test('every option of the specification can be set, and its default is the specification’s', async () => {
  const specified = (await (await fetch(s.url + '/openapi.json')).json()).components.schemas.Options.properties;
  delete specified.optimize_zh; // the earlier interface's
  delete specified.voices; // an addition
  delete specified.audio_track; // another
  await page.getByText('More options').click();
  const values = {
    optimize: false,
    timestamp_level: 'segment',
    asr_language: 'de',
    asr_beam_size: 3,
    asr_temperature: 0.4,
    asr_best_of: 2,
    hotwords: ['Ferreira', 'Otograph'],
    initial_prompt: 'Dear all,',
    vad_threshold: 0.5,
    vad_min_speech_ms: 300,
    vad_min_silence_ms: 200,
    vad_speech_pad_ms: 50,
    no_speech_threshold: 0.7,
    num_speakers: 3,
    min_speakers: 2,
    max_speakers: 4,
    diarize_min_segment_sec: 0.8,
    diarize_single_speaker_threshold: -0.1,
    audio_events_threshold: 0.5,
    audio_events_classes: ['Music', 'Applause'],
  };
  const switches = {
    enable_asr: 'Transcribe speech',
    enable_diarize: 'Identify speakers',
    enable_audio_events: 'Detect sounds',
  };
  assert.deepEqual(
    [...Object.keys(values), ...Object.keys(switches)].sort(),
    Object.keys(specified).sort(),
    'the form knows every option',
  );

  const labels = {
    optimize: ['Accuracy', 'words'],
    timestamp_level: ['Times', 'segment'],
    asr_language: ['Language spoken', 'de'],
    num_speakers: ['Number of speakers', '3'],
    hotwords: ['Names and special words', 'Ferreira, Otograph'],
    initial_prompt: ['Prompt', 'Dear all,'],
    audio_events_classes: ['Only these sounds', 'Music, Applause'],
  };
  for (const [name, value] of Object.entries(values)) {
    const field = labels[name] ? page.getByLabel(labels[name][0], { exact: true }) : page.locator(`#o-${name}`);
    if (!labels[name]) {
      // a number: its default and bounds are the specification's
      const { default: usual, minimum, maximum } = specified[name];
      assert.equal(await field.inputValue(), usual === null ? '' : String(usual), name);
      assert.equal(Number(await field.getAttribute('min')), minimum, name);
      assert.equal(Number(await field.getAttribute('max')), maximum, name);
      const hint = await page.locator(`#o-${name}-hint`).innerText();
      assert.match(
        hint,
        usual === null ? /Default: empty\.$/ : new RegExp(`Default: ${String(usual).replace('.', '\\.')}\\.$`),
        name,
      );
    }
    if ((await field.evaluate((e) => e.tagName)) === 'SELECT') await field.selectOption(labels[name][1]);
    else await field.fill(labels[name]?.[1] ?? String(value));
  }
  await page.getByLabel('Callback address').fill(other.url + '/nowhere');
  const secret = page.getByLabel('Callback secret').first();
  const hint = page.locator('#o-secret-hint');
  assert.equal(await hint.textContent(), 'Signs the request, so that your program can verify it.');
  await secret.fill('sixteen letters!');
  assert.equal(await hint.textContent(), 'Signs the request, so that your program can verify it.');
  await secret.fill('s3cret');
  assert.equal(await hint.textContent(), 'Shorter than 16 characters: easy to guess.');
  await page.getByLabel('This recording may be used to train models').check();
  const bodies = [];
  await page.route(`${s.url}/v1/tasks`, (route) => {
    bodies.push(JSON.parse(route.request().postData()));
    return route.fulfill({
      status: 400,
      contentType: 'application/json',
      body: '{"error":"only looked at","error_code":"invalid_request"}',
    });
  });
  const submit = async () => {
    await page.getByLabel('Or paste a link').fill('https://example.com/a.mp3');
    await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
    await page.locator('.submit .error', { hasText: 'only looked at' }).waitFor();
  };
  await submit();
  assert.deepEqual(bodies[0], {
    audio_url: 'https://example.com/a.mp3',
    options: values,
    callback_url: other.url + '/nowhere',
    callback_secret: 's3cret',
    allow_training: true,
  });

  // The real service accepts the same body.
  const real = await fetch(s.url + '/v1/tasks', {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...bodies[0], audio_url: other.url + '/gone.flac' }),
  });
  assert.equal(real.status, 201, await real.clone().text());
  assert.deepEqual(
    Object.fromEntries(Object.keys(values).map((k) => [k, values[k]])),
    Object.fromEntries(Object.entries((await real.json()).options).filter(([k]) => k in values)),
  );

  await page.getByRole('button', { name: 'Reset to defaults' }).click();
  await submit();
  assert.deepEqual(bodies[1], { audio_url: 'https://example.com/a.mp3' }, 'what is not changed is not sent');
  await page.getByLabel(switches.enable_diarize).uncheck();
  await page.getByLabel(switches.enable_audio_events).uncheck();
  await submit();
  assert.deepEqual(bodies[2].options, { enable_diarize: false, enable_audio_events: false });
  await page.getByLabel(switches.enable_audio_events).check();
  await page.getByLabel(switches.enable_asr).uncheck();
  await submit();
  assert.deepEqual(bodies[3].options, { enable_asr: false, enable_diarize: false });
  await page.getByText('About 0.70 per hour').waitFor(); // the careful price and the sounds

  const sent = bodies.length,
    refused = async (text) => {
      await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
      await page.locator('.submit .error', { hasText: text }).waitFor();
      assert.equal(bodies.length, sent);
      await page.getByRole('button', { name: 'Reset to defaults' }).click();
    };
  await page.getByLabel(switches.enable_audio_events).uncheck();
  await refused('Choose at least one.');
  await page.locator('#o-asr_beam_size').fill('21');
  await refused('“Beam size” must be a whole number from 1 to 20');
  await page.locator('#o-vad_threshold').fill('1.5');
  await refused('must be a number from 0 to 1');
  await page.locator('#o-min_speakers').fill('11');
  await refused('number of speakers is above the maximum');
  await page.unroute(`${s.url}/v1/tasks`);
  await page.getByText('More options').click();
});

test('a link is fetched and transcribed', async () => {
  await textOnly();
  await page.getByLabel('Or paste a link').fill(other.url + '/talk.flac');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.locator('.task', { hasText: 'talk.flac' }).waitFor();
  await eventually(async () =>
    assert.equal(await page.getByLabel('Or paste a link').inputValue(), '', 'what is taken leaves the field'),
  );
  const task = await done('talk.flac');
  assert.equal(task.audio_source_type, 'url');
  await page.getByRole('link', { name: 'Open: talk.flac' }).click();
  const { segments } = await s.ask(`/tasks/${task.id}/result`);
  await page.locator('.segment .text', { hasText: segments[0].text }).first().waitFor();
  await page.getByText('The recording is not stored').waitFor();
  await page.getByRole('link', { name: '← All recordings' }).click();
});

test('a dropped link is entered, and a batch that breaks off keeps the links that were not submitted', async () => {
  const field = page.getByLabel('Or paste a link');
  const link = await page.evaluateHandle(() => {
    const dropped = new DataTransfer();
    dropped.setData('text/uri-list', 'https://example.com/0.mp3');
    return dropped;
  });
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: link });
  assert.equal(await field.inputValue(), 'https://example.com/0.mp3');
  const links = Array.from({ length: 101 }, (_, i) => `https://example.com/${i}.mp3`);
  await page.route(`${s.url}/v1/tasks/batch`, (route) => {
    const { audio_url } = JSON.parse(route.request().postData());
    if (audio_url.length < 100)
      return route.fulfill({ status: 500, json: { error: 'broken', error_code: 'internal' } });
    return route.fulfill({
      status: 201,
      json: { results: audio_url.map((url) => ({ audio_url: url, success: true })) },
    });
  });
  await page.getByLabel('Batch').check();
  await field.fill(links.join('\n'));
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.locator('.submit .error').waitFor();
  assert.equal(await field.inputValue(), links[100]);
  await field.fill('');
  await page.getByLabel('Batch').uncheck();
  await page.unroute(`${s.url}/v1/tasks/batch`);
});

test('the page asks before it loses a file that is not sent', async () => {
  await page.route(`${s.url}/v1/tasks`, (route) =>
    route.request().method() === 'POST' ? undefined : route.continue(),
  );
  await page
    .locator('.drop input')
    .setInputFiles({ name: 'slow.wav', mimeType: 'audio/wav', buffer: Buffer.alloc(5000) });
  const row = page.locator('.task', { hasText: 'slow.wav' });
  await row.waitFor();
  const question = page.waitForEvent('dialog');
  await page.evaluate(() => void setTimeout(() => location.reload()));
  const dialog = await question;
  assert.equal(dialog.type(), 'beforeunload');
  await dialog.dismiss();
  await row.getByRole('button', { name: 'Cancel' }).click();
  await row.waitFor({ state: 'detached' });
  await page.unroute(`${s.url}/v1/tasks`);
});

test('a temporary error is shown, and the service retries by itself', async () => {
  await page.getByLabel('Or paste a link').fill(other.url + '/late.flac');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  const row = page.locator('.task', { hasText: 'late.flac' });
  await row.getByText('Retrying').waitFor();
  await row.getByText(/^Response from the service: .*503/).waitFor();
  other.ready();
  await done('late.flac');
});

test('an upload shows its progress and can be canceled', async () => {
  const cdp = await page.context().newCDPSession(page),
    slow = (perSecond) =>
      cdp.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: perSecond,
      });
  await cdp.send('Network.enable');
  await slow(100000);
  await page
    .locator('.drop input')
    .setInputFiles({ name: 'slow.wav', mimeType: 'audio/wav', buffer: Buffer.alloc(3e6) });
  const row = page.locator('.task', { hasText: 'slow.wav' });
  const shares = [];
  for (let i = 0; i < 3; i++) {
    const more = await page.waitForFunction(
      (last) => {
        const found = [...document.querySelectorAll('.task')].find((e) => e.textContent.includes('slow.wav')),
          percent = Number(/Uploading, (\d+) %/.exec(found?.textContent)?.[1]);
        return percent > last && { percent, bar: found.querySelector('progress').value };
      },
      shares.at(-1)?.percent ?? 0,
    );
    shares.push(await more.jsonValue());
  }
  for (const { percent, bar } of shares) assert.equal(percent, Math.floor(bar * 100));
  await row.getByRole('button', { name: 'Cancel' }).click();
  await row.waitFor({ state: 'detached' });
  await slow(-1);
  await cdp.detach();
  assert.ok(!(await s.ask('/tasks')).tasks.some((x) => x.audio_filename === 'slow.wav'));
});

test('at batch speed, links are sent as one batch and files cost half', async () => {
  await page.getByLabel('Batch: 50 % off').check();
  const batch = page.waitForRequest(`${s.url}/v1/tasks/batch`);
  await page
    .getByLabel('Or paste a link')
    .fill(`${other.url}/talk1.flac\n${other.url}/talk2.flac\nhttp://10.1.2.3/talk3.flac`);
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  const body = (await batch).postDataJSON();
  assert.deepEqual([body.audio_url.length, body.batch_mode], [3, true]);
  await page
    .locator('.submit .error', { hasText: /^http:\/\/10\.1\.2\.3\/talk3\.flac: .*not a public address/ })
    .waitFor();
  await eventually(async () =>
    assert.equal(
      await page.getByLabel('Or paste a link').inputValue(),
      'http://10.1.2.3/talk3.flac',
      'what was refused stays in the field',
    ),
  );
  await page
    .locator('.drop input')
    .setInputFiles([{ name: 'slow one.flac', mimeType: 'audio/flac', buffer: readFileSync(recording) }]);
  for (const name of ['talk1.flac', 'talk2.flac', 'slow one.flac']) {
    const task = await done(name);
    const { billing } = await s.ask(`/tasks/${task.id}/result`);
    const { detail } = billing;
    assert.equal(detail.batch_discount, 0.5, name);
    const hour =
      detail.base_price_per_hour + (detail.diarize_price_per_hour ?? 0) + (detail.events_price_per_hour ?? 0);
    assert.equal(billing.amount, Math.round((hour / 60) * billing.billable_minutes * 5000) / 10000, name);
  }
  await page.getByLabel('Batch: 50 % off').uncheck();
  await page.getByLabel('Or paste a link').fill('');
});

test('several files are uploaded one after the other', async () => {
  const buffer = readFileSync(recording);
  await page
    .locator('.drop input')
    .setInputFiles(['one', 'two', 'three'].map((name) => ({ name: `${name}.flac`, mimeType: 'audio/flac', buffer })));
  for (const name of ['one', 'two', 'three']) await done(`${name}.flac`);
});

test('the callback tester sends a signed callback, and the page shows what must arrive', async () => {
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByLabel('Address of your receiver').fill(other.url + '/hook?a=1');
  await page.locator('#tester-secret').fill('s3cret');
  await page.locator('#tester-kind option', { hasText: 'costs 0.0033 – 0.01' }).waitFor({ state: 'attached' });
  await page.getByRole('button', { name: 'Send a test callback' }).click();
  await page.getByText(`has been queued for ${other.url}/hook?a=1`).waitFor();
  const shown = await page.locator('.tester pre').innerText(),
    [, signature, body] = /^X-Signature: (sha256=[0-9a-f]{64})\n\n(\{.*\})$/.exec(shown);
  assert.equal(signature, 'sha256=' + createHmac('sha256', 's3cret').update(body).digest('hex'));
  const got = (await other.callbacks(2)).slice(); // the first was answered with 500
  for (const c of got) assert.deepEqual([c.url, c.headers['x-signature'], c.body], ['/hook?a=1', signature, body]);
  const message = JSON.parse(body),
    paid = (await s.ask(`/tasks/${message.task_id}/result`)).billing.amount;
  assert.equal(message.status, 'done');
  assert.match(await page.locator('.tester [role=status]').innerText(), new RegExp(`It cost ${paid.toFixed(4)}`));

  await page.locator('#tester-kind').selectOption('failed');
  await page.locator('#tester-secret').fill('');
  const before = (await s.ask('/account')).balance;
  await page.getByRole('button', { name: 'Send a test callback' }).click();
  await page.getByText('without a signature').waitFor();
  const second = (await other.callbacks(3))[2];
  assert.equal(second.body, await page.locator('.tester pre').innerText());
  assert.equal(second.headers['x-signature'], undefined);
  assert.equal(JSON.parse(second.body).status, 'failed');
  assert.ok(JSON.parse(second.body).error_message);
  const { balance, held_amount } = await s.ask('/account');
  assert.deepEqual([balance, held_amount], [before, 0], 'a failure costs nothing');
});

test('a test callback to a forbidden address is refused', async () => {
  for (const address of ['http://127.0.0.1:1/hook', 'http://169.254.169.254/latest', 'http://192.168.1.1/hook']) {
    await page.getByLabel('Address of your receiver').fill(address);
    const [answer] = await Promise.all([
      page.waitForResponse(
        (r) => r.request().method() === 'POST' && r.url() === `${s.url}/v1/tasks` && r.status() !== 429,
      ),
      page.getByRole('button', { name: 'Send a test callback' }).click(),
    ]);
    assert.equal(answer.status(), 400, address);
    await page
      .locator('.tester .error', {
        hasText:
          /^The service rejected the request: (the host is not a public address that this service may access|only ports 80, 443, 8080 and 8443 are allowed)$/,
      })
      .waitFor();
  }
});

test('the sample command signs as the service does', async () => {
  await page.getByLabel('Address of your receiver').fill("https://example.com/it's");
  await page.locator('#tester-secret').fill('s3cret');
  await page.locator('#tester-kind').selectOption('done');
  await page.getByRole('button', { name: 'Show as a command' }).click();
  const command = await page.locator('.tester pre').innerText();
  const body = /--data-binary '(.*)'$/.exec(command)[1],
    mac = /sha256=([0-9a-f]{64})/.exec(command)[1];
  assert.equal(mac, createHmac('sha256', 's3cret').update(body).digest('hex'));
  assert.match(command, /'https:\/\/example\.com\/it'\\''s'/);
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
});

test('a failed upload shows the reason and can be retried', async () => {
  const upload = `${s.url}/v1/tasks`,
    row = page.locator('.task', { hasText: 'again.flac' }).first();
  const answers = [
    [(r) => r.abort('connectionreset'), 'Cannot reach the service'],
    [
      (r) => r.fulfill({ status: 500, contentType: 'application/json', body: '{"error":"x","error_code":"internal"}' }),
      'Internal error in the service',
    ],
    [
      (r) => r.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' }),
      'Internal error in the service',
    ],
    [
      (r) => r.fulfill({ status: 413, contentType: 'text/html', body: '<h1>Too large</h1>' }),
      'too large for the service',
    ],
    [
      (r) =>
        r.fulfill({
          status: 402,
          contentType: 'application/json',
          body: '{"error":"x","error_code":"insufficient_balance"}',
        }),
      'The balance is too low',
    ],
  ];
  await page.route(upload, (r) =>
    r.request().method() === 'POST' && answers.length ? answers[0][0](r) : r.continue(),
  );
  await page
    .locator('.drop input')
    .setInputFiles({ name: 'again.flac', mimeType: 'audio/flac', buffer: readFileSync(recording) });
  while (answers.length) {
    await row.getByText(answers[0][1]).waitFor();
    answers.shift();
    await row.getByRole('button', { name: 'Try again' }).click();
  }
  await done('again.flac');
  await page.unroute(upload);
});

test('the list shows that the service is unreachable, and continues when it returns', async () => {
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.abort('connectionrefused'));
  await page.getByLabel('Show').selectOption('done');
  await page.getByText('Cannot reach the service').waitFor();
  await page.unroute(`${s.url}/v1/tasks?*`);
  await page.getByText('Cannot reach the service').waitFor({ state: 'detached' });
  await page.getByLabel('Show').selectOption('');
});

test('a revoked key leads back to the login, with an explanation', async () => {
  const { keys } = JSON.parse(s.otograph('account', 'list', 'local')),
    { id } = keys.find((k) => s.key.startsWith(k.key.slice(0, -1)));
  s.otograph('key', 'revoke', id);
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByText('The key or login is invalid or has expired').waitFor();
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'nothing of the login stays');
});

test('an expired token leads back to the login, with an explanation', async () => {
  s.otograph('user', 'create', 'local', 'ada', '--password=correct horse battery');
  await page.getByLabel('User name and password').check();
  await page.getByLabel('User name', { exact: true }).fill('mallory');
  const tooMany = page.getByText('Too many attempts');
  for (let i = 0; !(await tooMany.count()); i++) {
    // five requests a minute are answered; on a slow machine some more
    assert.ok(i < 40, `${i} tries are not too many`);
    await page.getByLabel('Password', { exact: true }).fill('wrong horse battery' + i);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong user name or password').or(tooMany).waitFor();
    assert.ok(i >= 5 || !(await tooMany.count()), `${i + 1} tries are too many`);
  }
  await page.getByLabel('User name', { exact: true }).fill('ada');
  await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Account', exact: true }).waitFor(); // where the reader was
  await page.evaluate(() => {
    // an hour later
    const l = JSON.parse(sessionStorage.getItem('otograph.login'));
    sessionStorage.setItem('otograph.login', JSON.stringify({ ...l, until: Date.now() - 1 }));
  });
  await page.reload();
  await page.getByRole('button', { name: 'Log in' }).waitFor();
});

test('the page logged no error and put no secret in a URL', async () => {
  assert.deepEqual(page.wrong, []);
  for (const u of page.urls) assert.ok(!/asr_|eyJ|s3cret/.test(u), u);
  assert.ok(!/s3cret/.test(s.log()));
});
