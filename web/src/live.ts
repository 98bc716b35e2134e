// The live session: the microphone's sound to the service, its captions back.
import { effect, signal } from '@preact/signals';
import { api, Failure, login, plainly } from './api';
import { base64Of } from './base64';
import { able, Microphone, microphones } from './microphone';
import { recordings } from './queue';
import { joinedText } from './result';
import { t, type TextKey } from './texts';
import { wavOf } from './wav';

/** Terms are what the reader asks of a session. */
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
}

/** Utterance is a text that still grows. */
interface Utterance {
  id: string;
  start: number;
  text: string;
  sentences: Caption[];
}

type Phase = 'idle' | 'starting' | 'listening' | 'paused' | 'ending' | 'ended';
export const phase = signal<Phase>('idle');
/** problem says why a session ended, or the microphone fails, in the language of the moment. */
export const problem = signal<(() => string) | null>(null);
export const captions = signal<Caption[]>([]);
export const growing = signal<Utterance[]>([]);
/** speakers are those of the captions, in the order in which they spoke. */
export const speakers = signal<string[]>([]);
/** level is how loud the microphone is, from 0 (60 dB below the loudest) to 1. */
export const level = signal(0);
/** seconds is how much has been recorded. */
export const seconds = signal(0);
/** silent says that the microphone gives no sound at all. */
export const silent = signal(false);
/** late says that the sound leaves more slowly than it comes. */
export const late = signal(false);
/** task is that of an ended session, where there is one. */
export const task = signal('');
/** recording is the sound of an ended session. */
export const recording = signal<File | null>(null);
export const devices = signal<MediaDeviceInfo[]>([]);
/** device is the chosen microphone, '' for the usual one. */
export const device = signal('');

/** active says that a session would be lost with the page. */
export const active = () => !['idle', 'ended'].includes(phase.value);

/** longestEnd is how long the last texts are waited for, in milliseconds: the result has them in any case. */
const longestEnd = 60000;

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
      const socket = await api.live();
      if (now !== this) return socket.close();
      this.socket = socket;
      socket.onmessage = (e) => this.take(JSON.parse(e.data) as ServerEvent);
      socket.onclose = (e) => void this.closed(e.code);
    } catch (e) {
      const unserved = e instanceof Failure && e.status === 404;
      this.end(unserved ? () => t('liveUnserved') : words(e));
    }
  }

  /** lose pauses the session without its microphone. */
  private lose(): void {
    this.unplugged = phase.value === 'starting'; // it is paused as soon as it is ready
    void this.pause().then(() => (problem.value = () => t('micLost')));
  }

  /** heard takes a piece of sound: what is said before the session is ready is sent as soon as it is. */
  private heard(piece: Int16Array<ArrayBuffer>): void {
    if (now !== this) return;
    this.pieces.push(piece);
    let squares = 0;
    for (const x of piece) squares += x * x;
    this.zeros = squares ? 0 : this.zeros + 1;
    level.value = Math.max(0, Math.min(1, 1 + Math.log10(squares / piece.length / 2 ** 30 || 1e-9) / 6));
    seconds.value += piece.length / this.mic!.rate;
    silent.value = this.zeros >= 50;
    late.value = (this.socket?.bufferedAmount ?? 0) > 10 * this.mic!.rate * 2 * (4 / 3);
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
    const start = e.start ?? (e.audio_start_ms ?? 0) / 1000;
    switch (e.type.replace('conversation.item.input_audio_transcription', 'text')) {
      case 'session.created':
        this.id = e.session!.id.replace('sess_', '');
        this.send({ type: 'session.update', session: this.update() });
        break;
      case 'session.updated':
        this.ready = true;
        if (phase.value === 'starting') phase.value = 'listening';
        this.pump();
        if (this.unplugged) this.lose();
        break;
      case 'input_audio_buffer.speech_started':
        growing.value = [...growing.value, { id: e.item_id, start, text: '', sentences: [] }];
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
        captions.value = [...captions.value, { start, text: e.detections![0].label, sound: true }];
        break;
      case 'input_audio_buffer.committed':
        this.committing = false;
        break;
      case 'error':
        this.said = e.error;
        if (!this.ready) this.end(() => this.refusal());
        break;
    }
    if (phase.value === 'ending' && !this.committing && !growing.value.length) this.settled();
  }

  /** complete makes an utterance captions: one, or one for each of its speakers in turn. */
  private complete(id: string, text: string): void {
    const u = growing.value.find((x) => x.id === id);
    if (!u) return;
    growing.value = growing.value.filter((x) => x !== u);
    if (!text) return;
    const list = u.sentences.length > 1 ? u.sentences : [{ start: u.start, text, speaker: u.sentences[0]?.speaker }];
    captions.value = [...captions.value, ...list];
    speakers.value = [...new Set([...speakers.value, ...list.flatMap((c) => c.speaker || [])])];
  }

  async pause(): Promise<void> {
    if (phase.value !== 'listening') return;
    phase.value = 'paused';
    await this.mic?.off();
    level.value = 0;
    silent.value = false;
    this.pump();
    this.send({ type: 'input_audio_buffer.commit' });
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
    this.committing = true;
    this.send({ type: 'input_audio_buffer.commit' });
    await new Promise<void>((go) => {
      this.settled = go;
      setTimeout(go, longestEnd);
    });
    if (now === this) this.end(null);
  }

  /** closed takes the end of the connection; a browser does not say why it was refused, but the account does. */
  private async closed(code: number): Promise<void> {
    if (now !== this) return;
    if (this.ready) return this.end(() => this.refusal(code));
    try {
      const { available_balance, available_concurrency } = await api.account();
      if (now !== this) return;
      const why = available_concurrency < 1 ? 'eConcurrency' : available_balance <= 0 ? 'eBalance' : 'liveUnreached';
      this.end(() => (ends[code] ? this.refusal(code) : t(why)));
    } catch (e) {
      this.end(words(e));
    }
  }

  private refusal(code = 0): string {
    if (this.said?.code === 'insufficient_quota') return t('eBalance');
    if (this.said?.code === 'rate_limit_exceeded') return t('eConcurrency');
    return t(ends[code] ?? (this.said ? 'liveRefused' : 'liveLost'), { message: this.said?.message ?? '' });
  }

  /** end closes everything; the recording stays with the task, or without one where there is none. */
  end(why: (() => string) | null): void {
    if (now !== this) return;
    now = null;
    this.leave();
    problem.value = why;
    level.value = 0;
    growing.value = [];
    const file = this.sent ? wavOf(this.pieces, this.mic!.rate, 'live.wav') : null;
    if (file) recordings.set(this.id, file);
    recording.value = file;
    task.value = file ? this.id : '';
    phase.value = file || why ? 'ended' : 'idle';
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

/** joined adds a sentence, to the last one where the speaker is the same. */
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

/** choose takes another microphone, at once where one is on. */
export function choose(id: string): void {
  device.value = id;
  if (phase.value === 'listening') resume();
}

/** reset forgets the last session. */
export function reset(): void {
  now?.leave();
  now = null;
  phase.value = 'idle';
  problem.value = recording.value = null;
  captions.value = [];
  growing.value = [];
  speakers.value = [];
  seconds.value = level.value = 0;
  silent.value = late.value = false;
  task.value = '';
}

if (able) {
  navigator.mediaDevices.addEventListener('devicechange', () => void listDevices());
  void listDevices();
}

const hold = (e: BeforeUnloadEvent) => e.preventDefault();
effect(() => {
  if (active()) addEventListener('beforeunload', hold);
  else removeEventListener('beforeunload', hold);
});

// Nothing of one login is shown to the next.
effect(() => {
  if (!login.value) reset();
});
