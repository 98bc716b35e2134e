// The live session: the microphone's sound to the service, its captions back.
import { effect, signal } from '@preact/signals';
import { api, Failure, login, plainly, sleep } from './api';
import { base64Of } from './base64';
import { confirmLeaving } from './leaving';
import { able, Microphone, microphones } from './microphone';
import { recordings } from './queue';
import { isSound, joinedText } from './result';
import { t, type TextKey } from './texts';
import { wavOf } from './wav';

/** Terms are the options of a session. */
export interface Terms {
  language: string;
  hotwords: string[];
  prompt: string;
  speakers: boolean;
  sounds: boolean;
  model: string;
}

/** Caption is a finished text, or a sound. */
export interface Caption {
  start: number;
  text: string;
  speaker?: string;
  sound?: boolean;
  /** missing is set where another session continues the captions: the seconds of sound lost before it. */
  missing?: number;
}

/** Part is one of the sessions of a recording: a task. */
export interface Part {
  id: string;
  start: number;
}

/** Utterance is a text that still grows. */
interface Utterance {
  id: string;
  start: number;
  text: string;
  sentences: Caption[];
  /** end is when the utterance ended, in seconds of its session. */
  end: number;
}

type Phase = 'idle' | 'starting' | 'listening' | 'paused' | 'ending' | 'ended';
export const phase = signal<Phase>('idle');
/** problem is why a session ended or the microphone failed, in the page's current language. */
export const problem = signal<(() => string) | null>(null);
export const captions = signal<Caption[]>([]);
export const growing = signal<Utterance[]>([]);
/** speakers are the captions' speakers, in the order in which they spoke. */
export const speakers = signal<string[]>([]);
/** level is how loud the microphone is, from 0 (60 dB below the loudest) to 1. */
export const level = signal(0);
/** seconds is how much has been recorded. */
export const seconds = signal(0);
/** silent is true while the microphone delivers only zeros. */
export const silent = signal(false);
/** late is true while sound is sent more slowly than it is recorded. */
export const late = signal(false);
/** reconnecting is the reason why the connection was lost, while another one is tried. */
export const reconnecting = signal<(() => string) | null>(null);
/** parts are the tasks of an ended session: several where the connection was lost. */
export const parts = signal<Part[]>([]);
/** recording is the sound of an ended session. */
export const recording = signal<File | null>(null);
export const devices = signal<MediaDeviceInfo[]>([]);
/** device is the chosen microphone, '' for the default one. */
export const device = signal('');

/** active reports whether a session would be lost if the page were closed. */
export const active = () => !['idle', 'ended'].includes(phase.value);

/** longestEnd is the longest wait for the last texts, in milliseconds: the result has them in any case. */
const longestEnd = 60000;

/** longestGap is how many seconds of sound wait for another connection. */
const longestGap = 300;
/** longestAgain is how many seconds of sound that was sent before are sent again. */
const longestAgain = 60;
/** longestPause is the longest pause between two attempts to connect, in milliseconds. */
const longestPause = 15000;

/** passing are the close codes after which another connection may succeed; 1005 and 1006 are the network's. */
const passing = [1001, 1005, 1006, 1011, 1012, 1013];

/** The reasons of a session's end by their WebSocket close codes. */
const ends: Record<number, TextKey> = {
  1001: 'liveOver',
  1008: 'liveRefused',
  1011: 'liveFault',
  1012: 'liveRestart',
  1013: 'liveFull',
};

/** The errors of getUserMedia. */
const denials: Record<string, TextKey> = {
  NotAllowedError: 'micDenied',
  SecurityError: 'micDenied',
  NotFoundError: 'micMissing',
  OverconstrainedError: 'micMissing',
  NotReadableError: 'micBusy',
};

const words = (e: unknown) => () => (e instanceof DOMException && denials[e.name] ? t(denials[e.name]) : plainly(e));

/** ServerEvent is an event of the service, with the fields that are read here. */
interface ServerEvent {
  type: string;
  session?: { id: string };
  item_id: string;
  audio_start_ms?: number;
  audio_end_ms?: number;
  delta?: string;
  transcript?: string;
  text?: string;
  speaker?: string;
  start?: number;
  detections?: { label: string }[];
  error?: { message: string; code: string };
}

class Session {
  private mic?: Microphone;
  private socket?: WebSocket;
  private id = '';
  private readonly pieces: Int16Array<ArrayBuffer>[] = [];
  private sent = 0;
  /** first is the first piece of this connection, and begins its time in seconds. */
  private first = 0;
  private begins = 0;
  /** done is where the finished texts of this connection end, in its seconds. */
  private done = 0;
  /** spoken is true if this connection's task has sound. */
  private spoken = false;
  private missing = 0;
  /** opened is true once there was a connection; tries counts the attempts since its end. */
  private opened = false;
  private tries = 0;
  /** zeros is how many of the last pieces hold no sound at all. */
  private zeros = 0;
  private ready = false;
  private settled = () => {};
  private committing = false;
  private said: { message: string; code: string } | undefined;
  private unplugged = false;
  private readonly over = new AbortController();

  constructor(private readonly terms: Terms) {}

  async begin(): Promise<void> {
    try {
      const chosen = device.value,
        mic = await Microphone.open(chosen, (piece) => this.heard(piece), this.over.signal);
      this.mic = mic;
      if (now !== this) return void mic.close();
      mic.lost = () => this.lose();
      if (device.value !== chosen) await mic.on(device.value); // the reader chose another one meanwhile
      await listDevices();
      await this.connect();
    } catch (e) {
      const unserved = e instanceof Failure && e.status === 404;
      this.end(unserved ? () => t('liveUnserved') : words(e));
    }
  }

  private async connect(): Promise<void> {
    const socket = await api.live();
    if (now !== this) return socket.close();
    this.socket = socket;
    socket.onmessage = (e) => this.take(JSON.parse(e.data) as ServerEvent);
    socket.onclose = (e) => void this.closed(e.code);
  }

  /** again connects in place of a connection that has ended, and tries until that succeeds. */
  private async again(code: number): Promise<void> {
    const said = this.said;
    reconnecting.value = () => this.refusal(code, said);
    this.split();
    while (now === this) {
      await sleep(Math.min(1000 * 2 ** this.tries++, longestPause));
      if (now !== this) return;
      try {
        return await this.connect(); // closed handles its end as well
      } catch (e) {
        if (e instanceof Failure && e.status >= 400 && e.status < 500 && e.status !== 429) this.end(words(e));
      }
    }
  }

  /** split ends the part of a connection: sound without a finished text goes to the next one. */
  private split(): void {
    if (!this.ready) return;
    this.ready = false;
    this.said = undefined;
    growing.value = [];
    this.keep();
    for (; this.first < this.sent && (this.done > 0 || seconds.value - this.begins > longestAgain); this.first++) {
      const length = this.lengthOf(this.first);
      this.done -= length;
      this.begins += length;
    }
    this.sent = this.first;
    this.done = 0;
    this.spoken = false;
  }

  /** keep keeps the sound of a part with its task, if there is one. */
  private keep(): void {
    if (!this.spoken) return;
    recordings.set(this.id, wavOf(this.pieces.slice(this.first, this.sent), this.mic!.rate, 'live.wav'));
    parts.value = [...parts.value, { id: this.id, start: this.begins }];
  }

  private lengthOf(piece: number): number {
    return this.pieces[piece].length / this.mic!.rate;
  }

  /** lose pauses a session that has lost its microphone. */
  private lose(): void {
    this.unplugged = phase.value === 'starting'; // it is paused as soon as it is ready
    void this.pause().then(() => (problem.value = () => t('micLost')));
  }

  /** heard takes a piece of sound. Sound from before the session is ready is sent once it is. */
  private heard(piece: Int16Array<ArrayBuffer>): void {
    if (now !== this) return;
    this.pieces.push(piece);
    let squares = 0;
    for (const x of piece) squares += x * x;
    this.zeros = squares ? 0 : this.zeros + 1;
    level.value = Math.max(0, Math.min(1, 1 + Math.log10(squares / piece.length / 2 ** 30 || 1e-9) / 6));
    seconds.value += piece.length / this.mic!.rate;
    silent.value = this.zeros >= 50;
    if (this.opened && !this.ready)
      for (; seconds.value - this.begins > longestGap; this.first = ++this.sent) {
        this.missing += this.lengthOf(this.sent);
        this.begins += this.lengthOf(this.sent);
      }
    late.value = this.ready && (this.socket?.bufferedAmount ?? 0) > 10 * this.mic!.rate * 2 * (4 / 3);
    this.pump();
  }

  private pump(): void {
    if (!this.ready || this.socket?.readyState !== WebSocket.OPEN) return;
    for (; this.sent < this.pieces.length; this.sent++) {
      const audio = base64Of(new Uint8Array(this.pieces[this.sent].buffer));
      this.send({ type: 'input_audio_buffer.append', audio });
    }
  }

  private send(event: object): void {
    this.socket?.send(JSON.stringify(event));
  }

  private update() {
    const { language, hotwords, prompt, speakers, sounds, model } = this.terms;
    return {
      type: 'transcription',
      audio: {
        input: {
          format: { type: 'audio/pcm', rate: this.mic!.rate },
          transcription: { model, ...(language ? { language } : {}), prompt, keywords: hotwords },
          turn_detection: { type: 'server_vad', silence_duration_ms: 500 },
        },
      },
      include: [...(speakers ? ['otograph.speakers'] : []), ...(sounds ? ['otograph.sounds'] : [])],
      otograph: { store: true },
    };
  }

  private take(e: ServerEvent): void {
    if (now !== this) return;
    const start = this.begins + (e.start ?? (e.audio_start_ms ?? 0) / 1000);
    switch (e.type.replace('conversation.item.input_audio_transcription', 'text')) {
      case 'session.created':
        this.id = e.session!.id.replace('sess_', '');
        this.send({ type: 'session.update', session: this.update() });
        break;
      case 'session.updated':
        this.ready = true;
        if (this.opened) this.mark();
        this.opened = true;
        this.tries = 0;
        if (phase.value === 'starting') phase.value = 'listening';
        this.pump();
        if (phase.value === 'ending') this.commit();
        if (this.unplugged) this.lose();
        break;
      case 'input_audio_buffer.speech_started':
        this.spoken = true;
        growing.value = [...growing.value, { id: e.item_id, start, text: '', sentences: [], end: 0 }];
        break;
      case 'input_audio_buffer.speech_stopped':
        change(e.item_id, (u) => ({ ...u, end: e.audio_end_ms! / 1000 }));
        break;
      case 'text.delta':
        change(e.item_id, (u) => ({ ...u, text: u.text + e.delta }));
        break;
      case 'text.segment':
        change(e.item_id, (u) => ({
          ...u,
          sentences: joined(u.sentences, { start, text: e.text!, speaker: e.speaker }),
        }));
        break;
      case 'text.completed':
        this.complete(e.item_id, e.transcript!);
        break;
      case 'conversation.item.sound_detection':
        this.spoken = true;
        if (isSound(e.detections![0].label, true))
          captions.value = [...captions.value, { start, text: e.detections![0].label, sound: true }];
        break;
      case 'input_audio_buffer.committed':
        this.committing = false;
        break;
      case 'error':
        this.said = e.error;
        if (!this.opened) this.end(() => this.refusal());
        break;
    }
    if (phase.value === 'ending' && this.ready && !this.committing && !growing.value.length) this.settled();
  }

  /** complete turns an utterance into captions: one, or one for each of its speakers in turn. */
  private complete(id: string, text: string): void {
    const u = growing.value.find((x) => x.id === id);
    if (!u) return;
    growing.value = growing.value.filter((x) => x !== u);
    this.done = Math.max(this.done, u.end);
    if (!text) return;
    const list = u.sentences.length > 1 ? u.sentences : [{ start: u.start, text, speaker: u.sentences[0]?.speaker }];
    captions.value = [...captions.value, ...list];
    speakers.value = [...new Set([...speakers.value, ...list.flatMap((c) => c.speaker || [])])];
  }

  /** mark adds a caption where another connection continues, with the seconds that are missing. */
  private mark(): void {
    reconnecting.value = null;
    captions.value = [...captions.value, { start: this.begins, text: '', missing: this.missing }];
    this.missing = 0;
  }

  private commit(): void {
    if (!this.ready) return;
    this.committing = true;
    this.send({ type: 'input_audio_buffer.commit' });
  }

  async pause(): Promise<void> {
    if (phase.value !== 'listening') return;
    phase.value = 'paused';
    await this.mic?.off();
    level.value = 0;
    silent.value = false;
    this.pump();
    if (this.ready) this.send({ type: 'input_audio_buffer.commit' });
  }

  /** resume turns the chosen microphone on, also in place of another. */
  async resume(): Promise<void> {
    try {
      if (!(await this.mic?.on(device.value))) return;
      problem.value = null;
      if (phase.value === 'paused') phase.value = 'listening';
    } catch (e) {
      if (!this.mic?.live && phase.value === 'listening') phase.value = 'paused';
      problem.value = words(e);
    }
  }

  /** finish waits for the last texts and ends the session. */
  async finish(): Promise<void> {
    if (phase.value === 'starting') return this.end(null);
    phase.value = 'ending';
    await this.mic?.off();
    this.pump();
    this.commit();
    await new Promise<void>((go) => {
      this.settled = go;
      setTimeout(go, longestEnd);
    });
    if (now === this) this.end(this.ready ? null : reconnecting.value);
  }

  /** closed handles the end of the connection; a browser does not say why it was refused, but the account does. */
  private async closed(code: number): Promise<void> {
    if (now !== this) return;
    if (this.ready) return passing.includes(code) ? this.again(code) : this.end(() => this.refusal(code));
    try {
      const { available_balance, available_concurrency } = await api.account();
      if (now !== this) return;
      const why = available_concurrency < 1 ? 'eConcurrency' : available_balance <= 0 ? 'eBalance' : 'liveUnreached';
      if (this.opened && why !== 'eBalance') return void this.again(code);
      this.end(() => (ends[code] ? this.refusal(code) : t(why)));
    } catch (e) {
      if (this.opened) return void this.again(code);
      this.end(words(e));
    }
  }

  private refusal(code = 0, said = this.said): string {
    if (said?.code === 'insufficient_quota') return t('eBalance');
    if (said?.code === 'rate_limit_exceeded') return t('eConcurrency');
    return t(ends[code] ?? (said ? 'liveRefused' : 'liveLost'), { message: said?.message ?? '' });
  }

  /** end closes everything; the recording stays with the task, or without one where there is none. */
  end(why: (() => string) | null): void {
    if (now !== this) return;
    now = null;
    this.leave();
    problem.value = why;
    level.value = 0;
    growing.value = [];
    reconnecting.value = null;
    if (this.ready) {
      this.spoken ||= !parts.value.length && this.sent > this.first; // the only part has a task even without speech
      this.keep();
    }
    recording.value = this.opened && this.pieces.length ? wavOf(this.pieces, this.mic!.rate, 'live.wav') : null;
    phase.value = recording.value || why ? 'ended' : 'idle';
  }

  leave(): void {
    this.over.abort();
    void this.mic?.close();
    this.socket?.close();
  }
}

/** now is the session that runs. */
let now: Session | null = null;

/** change replaces an utterance that still grows. */
function change(id: string, to: (u: Utterance) => Utterance): void {
  growing.value = growing.value.map((u) => (u.id === id ? to(u) : u));
}

/** joined adds a sentence, to the last caption if the speaker is the same. */
function joined(list: Caption[], c: Caption): Caption[] {
  const last = list[list.length - 1];
  return last?.speaker === c.speaker
    ? [...list.slice(0, -1), { ...last, text: joinedText(last.text, c.text) }]
    : [...list, c];
}

async function listDevices(): Promise<void> {
  devices.value = await microphones();
}

export function start(terms: Terms): void {
  reset();
  phase.value = 'starting';
  now = new Session(terms);
  void now.begin();
}

export const pause = () => void now?.pause();
export const resume = () => void now?.resume();
export const finish = () => void now?.finish();

/** choose selects a microphone; a session that listens changes to it immediately. */
export function choose(id: string): void {
  device.value = id;
  if (phase.value === 'listening') resume();
}

/** reset forgets the last session. */
export function reset(): void {
  now?.leave();
  now = null;
  phase.value = 'idle';
  problem.value = recording.value = reconnecting.value = null;
  captions.value = [];
  growing.value = [];
  speakers.value = [];
  seconds.value = level.value = 0;
  silent.value = late.value = false;
  parts.value = [];
}

if (able) {
  navigator.mediaDevices.addEventListener('devicechange', () => void listDevices());
  void listDevices();
}

confirmLeaving(active);

// Nothing of one login is shown to the next.
effect(() => {
  if (!login.value) reset();
});
