// The player of one result: it keeps the position also without a recording, so
// that the time line and the transcript can be walked through.
import { signal } from '@preact/signals';

export class Player {
  readonly element = new Audio();
  /** time is the position in seconds. */
  readonly time = signal(0);
  readonly playing = signal(false);
  readonly source = signal<Blob | null>(null);
  readonly problem = signal('');
  readonly rate = signal(1);
  private url = '';
  private frame = 0;

  constructor(readonly duration: number) {
    const e = this.element;
    e.preload = 'auto';
    e.addEventListener('play', () => {
      this.playing.value = true;
      this.tick();
    });
    for (const stop of ['pause', 'ended'])
      e.addEventListener(stop, () => {
        this.playing.value = false;
        this.time.value = e.currentTime;
      });
    e.addEventListener('error', () => {
      if (this.source.value) this.problem.value = e.error?.message || 'unknown format';
    });
  }

  /** open loads a recording. */
  open(source: Blob): void {
    this.close();
    this.url = URL.createObjectURL(source);
    this.problem.value = '';
    this.element.src = this.url;
    this.element.addEventListener(
      'loadedmetadata',
      () => {
        this.element.currentTime = this.time.value;
        this.element.playbackRate = this.rate.value;
      },
      { once: true },
    );
    this.source.value = source;
  }

  get src(): string {
    return this.url;
  }

  private tick = () => {
    this.time.value = this.element.currentTime;
    if (this.playing.value) this.frame = requestAnimationFrame(this.tick);
  };

  seek(seconds: number): void {
    const to = Math.max(0, Math.min(this.duration, seconds));
    this.time.value = to;
    if (this.source.value) this.element.currentTime = to; // before anything is loaded: where it will begin
  }

  playFrom(seconds: number): void {
    this.seek(seconds);
    this.play();
  }

  play(): void {
    if (!this.source.value) return;
    void this.element.play().catch((e: Error) => {
      if (e.name !== 'AbortError') this.problem.value ||= e.message;
    });
  }

  toggle(): void {
    if (this.playing.value) this.element.pause();
    else this.play();
  }

  setRate(rate: number): void {
    this.rate.value = rate;
    this.element.playbackRate = rate;
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.element.pause();
    this.source.value = null;
    if (this.url) {
      this.element.removeAttribute('src');
      URL.revokeObjectURL(this.url);
      this.url = '';
    }
  }
}
