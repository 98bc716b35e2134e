// The worklet of the microphone: mixes its channels and posts them in pieces.
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, of: new (options: AudioWorkletNodeOptions) => unknown): void;

/** Recorder posts pieces of 16-bit samples; a message makes it post the rest, then null. */
class Recorder extends AudioWorkletProcessor {
  /** each is the number of input samples for an output sample. */
  private readonly each: number;
  private piece: Int16Array<ArrayBuffer>;
  private filled = 0;
  private sum = 0;
  private summed = 0;

  constructor({ processorOptions }: AudioWorkletNodeOptions) {
    super();
    this.each = processorOptions.each;
    this.piece = new Int16Array(processorOptions.samples);
    this.port.onmessage = () => {
      this.post();
      this.port.postMessage(null);
    };
  }

  private post(): void {
    const { piece, filled } = this;
    this.piece = new Int16Array(piece.length);
    this.filled = 0;
    if (filled) this.port.postMessage(filled < piece.length ? piece.slice(0, filled) : piece);
  }

  /** process handles a block of input, which has no channels while no microphone is connected. */
  process([channels]: Float32Array[][]): boolean {
    for (let i = 0; i < (channels[0]?.length ?? 0); i++) {
      for (const c of channels) this.sum += c[i] / channels.length;
      if (++this.summed < this.each) continue;
      this.piece[this.filled++] = Math.max(-32768, Math.min(32767, Math.round((32768 * this.sum) / this.each)));
      this.sum = this.summed = 0;
      if (this.filled === this.piece.length) this.post();
    }
    return true;
  }
}

registerProcessor('recorder', Recorder);
