// A customer's server: it offers a recording and receives callbacks.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { recording, within } from './world.mjs';

/** stranger starts a server that offers /talk.flac and, once it is ready, /late.flac, and receives posts to /hook; answers are the status codes of the posts, then 204. */
export async function stranger(...answers) {
  const bytes = readFileSync(recording),
    got = [],
    waiting = [];
  let late = true;
  const server = createServer((request, answer) => {
    if (request.method === 'POST' && request.url.startsWith('/hook')) {
      const parts = [];
      request.on('data', (d) => parts.push(d));
      request.on('end', () => {
        got.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
        answer.writeHead(answers.shift() ?? 204).end();
        for (const go of waiting.splice(0)) go();
      });
    } else if (request.url === '/late.flac' && late) {
      answer.writeHead(503).end();
    } else if (/^\/(talk\d*|late)\.flac$/.test(request.url)) {
      answer.writeHead(200, { 'Content-Type': 'audio/flac', 'Content-Length': bytes.length }).end(bytes);
    } else answer.writeHead(404).end();
  });
  await new Promise((go) => server.listen(0, '127.0.0.1', go));
  const address = `127.0.0.1:${server.address().port}`;
  return {
    address,
    url: `http://${address}`,
    got,
    /** callbacks waits until the given number of posts have arrived. */
    callbacks: async (n) => {
      while (got.length < n) await within(new Promise((go) => waiting.push(go)), `callback ${got.length + 1}`);
      return got;
    },
    ready: () => {
      late = false;
    },
    stop: () =>
      new Promise((go) => {
        server.closeAllConnections();
        server.close(go);
      }),
  };
}
