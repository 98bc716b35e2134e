// The microphone: its sound as pieces of 16-bit samples.

/** able says that the browser gives this page a microphone: only over https or from this machine. */
export const able = !!globalThis.navigator?.mediaDevices?.getUserMedia && 'AudioWorkletNode' in globalThis;

/** wanted are the samples in a second that the models take. */
const wanted = 16000;
/** most are the samples in a second that the service takes. */
const most = 48000;

/** streamOf asks for a microphone, '' for the usual one; it is recorded as it sounds, without filters for calls. */
const streamOf = (device: string) =>
  navigator.mediaDevices.getUserMedia({
    audio: {
      ...(device ? { deviceId: { exact: device } } : {}),
      echoCancellation: false,
      noiseSuppression: false,
      autoGainControl: true,
    },
  });

/** microphones lists them; they have names once the reader has allowed one. */
export const microphones = async () =>
  (await navigator.mediaDevices.enumerateDevices()).filter((d) => d.kind === 'audioinput' && d.deviceId);

/** Microphone is one that can be turned off, on again, and changed for another. */
export class Microphone {
  /** lost is called when the microphone is unplugged. */
  lost = () => {};
  private source?: MediaStreamAudioSourceNode;
  private rest = () => {};
  /** turn counts what the reader wanted: on or off. */
  private turn = 0;

  private constructor(
    private readonly context: AudioContext,
    private readonly node: AudioWorkletNode,
    /** rate is the number of samples in a second. */
    readonly rate: number,
  ) {}

  /** open turns a microphone on; heard is given its sound, ten times a second. After stop it is off. */
  static async open(
    device: string,
    heard: (piece: Int16Array<ArrayBuffer>) => void,
    stop: AbortSignal,
  ): Promise<Microphone> {
    const stream = await streamOf(device);
    let context: AudioContext | undefined;
    try {
      stop.throwIfAborted();
      context = new AudioContext({ sampleRate: wanted });
      let source: MediaStreamAudioSourceNode;
      try {
        source = context.createMediaStreamSource(stream);
      } catch {
        void context.close();
        context = new AudioContext(); // the browser does not change rates
        source = context.createMediaStreamSource(stream);
      }
      await Promise.race([
        context.resume().then(() => context!.audioWorklet.addModule('./worklet.js')),
        new Promise((_, fail) => stop.addEventListener('abort', () => fail(stop.reason as Error))),
      ]);
      const each = Math.ceil(context.sampleRate / most),
        rate = Math.round(context.sampleRate / each);
      const node = new AudioWorkletNode(context, 'recorder', {
        processorOptions: { each, samples: Math.round(rate / 10) },
      });
      const m = new Microphone(context, node, rate);
      node.port.onmessage = (e) => {
        if (e.data) heard(e.data);
        else m.rest();
      };
      node.connect(context.destination); // silence: what leads nowhere is not computed
      m.connect(source);
      return m;
    } catch (e) {
      for (const track of stream.getTracks()) track.stop();
      void context?.close();
      throw e;
    }
  }

  /** live says that a microphone is on. */
  get live(): boolean {
    return !!this.source;
  }

  private connect(source: MediaStreamAudioSourceNode): void {
    source.connect(this.node);
    source.mediaStream.getTracks()[0].onended = () => this.lost();
    this.source = source;
  }

  /** on turns a microphone on in place of the one that was on; it gives false where the reader wanted otherwise meanwhile. */
  async on(device: string): Promise<boolean> {
    const mine = ++this.turn;
    const stream = await streamOf(device);
    if (mine === this.turn) await this.disconnect();
    try {
      if (mine === this.turn) this.connect(this.context.createMediaStreamSource(stream));
    } finally {
      if (this.source?.mediaStream !== stream) for (const track of stream.getTracks()) track.stop();
    }
    return mine === this.turn;
  }

  /** off turns the microphone off and waits for the rest of its sound. */
  async off(): Promise<void> {
    this.turn++;
    await this.disconnect();
  }

  private async disconnect(): Promise<void> {
    if (!this.source) return;
    for (const track of this.source.mediaStream.getTracks()) track.stop();
    this.source.disconnect();
    this.source = undefined;
    await new Promise<void>((go) => {
      this.rest = go;
      this.node.port.postMessage('rest');
      setTimeout(go, 500); // a context that the system has stopped does not answer
    });
  }

  /** close turns it off for good. */
  async close(): Promise<void> {
    await this.off();
    await this.context.close();
  }
}
