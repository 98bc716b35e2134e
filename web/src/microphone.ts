// The microphone: its sound as pieces of 16-bit samples.

/** able reports whether the browser allows this page a microphone: only over https or from this machine. */
export const able = !!globalThis.navigator?.mediaDevices?.getUserMedia && 'AudioWorkletNode' in globalThis;

/** wanted is the models' sample rate in Hz. */
const wanted = 16000;
/** most is the highest sample rate in Hz that the service accepts. */
const most = 48000;

/** streamOf opens a microphone, '' for the default one, without the browser's filters for calls. */
const streamOf = (device: string) =>
  navigator.mediaDevices.getUserMedia({
    audio: {
      ...(device ? { deviceId: { exact: device } } : {}),
      echoCancellation: false,
      noiseSuppression: false,
      autoGainControl: true,
    },
  });

/** microphones lists the microphones; they have names once the reader has allowed one. */
export const microphones = async () =>
  (await navigator.mediaDevices.enumerateDevices()).filter((d) => d.kind === 'audioinput' && d.deviceId);

/** Microphone can be turned off, on again, and replaced with another one. */
export class Microphone {
  /** lost is called when the microphone is unplugged. */
  lost = () => {};
  private source?: MediaStreamAudioSourceNode;
  private rest = () => {};
  /** turn counts the reader's requests: on or off. */
  private turn = 0;

  private constructor(
    private readonly context: AudioContext,
    private readonly node: AudioWorkletNode,
    /** rate is the sample rate in Hz. */
    readonly rate: number,
  ) {}

  /** open turns a microphone on; heard receives its sound, ten times a second. The microphone is off after stop. */
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
      node.connect(context.destination); // silence: an unconnected node is not computed
      m.connect(source);
      return m;
    } catch (e) {
      for (const track of stream.getTracks()) track.stop();
      void context?.close();
      throw e;
    }
  }

  /** live is true while a microphone is on. */
  get live(): boolean {
    return !!this.source;
  }

  private connect(source: MediaStreamAudioSourceNode): void {
    source.connect(this.node);
    source.mediaStream.getTracks()[0].onended = () => this.lost();
    this.source = source;
  }

  /** on turns a microphone on in place of the current one; it returns false if the reader has changed it meanwhile. */
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

  /** close turns the microphone off for good. */
  async close(): Promise<void> {
    await this.off();
    await this.context.close();
  }
}
