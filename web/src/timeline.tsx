// Waveform, speakers and sounds on one axis of time.
import { useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import WaveSurfer from 'wavesurfer.js';
import { speechBand } from './peaks';
import type { Player } from './player';
import type { Result, SoundEvent } from './result';
import { crowdOf, indexAt, soundsOf } from './result';
import { clock, t } from './texts';
import { dark, inkOf, voice } from './theme';

const waveHeight = 72,
  axisHeight = 20,
  laneHeight = 16,
  gap = 6,
  maxSounds = 5;
/** The widest time line, in pixels: wider elements are cut by browsers. */
const maxWidth = 8e6;

interface Lane {
  name: string;
  voice: string;
  bars: { start: number; end: number; label?: string }[];
}

/** lanesOf returns a lane for each speaker and for the sounds that last longest. */
function lanesOf(r: Result, speakers: string[], names: (s: string) => string, called: Record<string, string>): Lane[] {
  const lanes: Lane[] = speakers.map((s, i) => ({ name: names(s), voice: voice(i), bars: [] }));
  const index = new Map(speakers.map((s, i) => [s, i]));
  const turns = r.diarize_segments?.length ? r.diarize_segments : (r.segments ?? []).filter((s) => s.speaker);
  for (const d of turns) {
    const i = index.get(d.speaker!);
    if (i !== undefined) lanes[i].bars.push(d);
  }
  const byClass = new Map<string, SoundEvent[]>();
  for (const e of soundsOf(r)) byClass.set(e.class, [...(byClass.get(e.class) ?? []), e]);
  const weight = (list: SoundEvent[]) => list.reduce((n, e) => n + (e.end - e.start) * e.confidence, 0);
  const top = [...byClass].sort((a, b) => weight(b[1]) - weight(a[1])).slice(0, maxSounds);
  for (const [name, list] of top) lanes.push({ name: called[name] ?? name, voice: 'sound', bars: list });
  return lanes;
}

export interface TimelineProps {
  result: Result;
  player: Player;
  speakers: string[];
  names: (s: string) => string;
  called: Record<string, string>;
  /** peaks are the whole recording's, from 0 to 1, if they are known already. */
  peaks?: Float32Array;
}

export function Timeline({ result, player, speakers, names, called, peaks }: TimelineProps) {
  const wave = useRef<HTMLDivElement>(null),
    lanesCanvas = useRef<HTMLCanvasElement>(null),
    head = useRef<HTMLDivElement>(null);
  const surfer = useRef<WaveSurfer | null>(null);
  const [zoom, setZoom] = useState(0); // pixels per second; 0 = the whole recording
  const [width, setWidth] = useState(0);
  const duration = Math.max(result.audio_duration, 0.01);
  const band = useMemo(() => speechBand(result), [result]);
  const shown = speakers.map(names).join('\n');
  const lanes = useMemo(() => lanesOf(result, speakers, names, called), [result, speakers, shown, called]);
  const height = axisHeight + lanes.length * (laneHeight + gap);
  const fit = width / duration,
    scale = Math.max(zoom, fit);
  const most = Math.max(fit, Math.min(300, maxWidth / duration));

  const crowd = useMemo(() => crowdOf(result), [result]);

  const live = useRef({ lanes, crowd, scale, height, width });
  live.current = { lanes, crowd, scale, height, width };
  const scrolled = () => surfer.current?.getScroll() ?? 0;

  const drawHead = () => {
    const line = head.current;
    if (!line) return;
    const x = player.time.value * live.current.scale - scrolled();
    line.style.transform = `translateX(${x}px)`;
    line.hidden = x < -1 || x > live.current.width + 1;
  };
  // Several requests in a frame draw once.
  const due = useRef(0);
  const draw = () => {
    due.current ||= requestAnimationFrame(() => {
      due.current = 0;
      drawNow();
    });
  };
  const drawNow = () => {
    const canvas = lanesCanvas.current;
    const { lanes, crowd, scale, height, width } = live.current;
    if (!canvas || !width) return;
    const ratio = devicePixelRatio || 1;
    const wide = Math.round(width * ratio),
      high = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = `${height}px`;
    }
    const g = canvas.getContext('2d')!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const left = scrolled(),
      from = left / scale,
      to = (left + width) / scale;
    const ink = inkOf('muted'),
      line = inkOf('line');
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    const step =
      [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].find((s) => s * scale >= 70) ?? 3600;
    for (let k = Math.floor(from / step); k * step <= Math.min(to, duration); k++) {
      const x = Math.round(k * step * scale - left) + 0.5;
      g.strokeStyle = line;
      g.beginPath();
      g.moveTo(x, 0);
      g.lineTo(x, height);
      g.stroke();
      const label = clock(k * step, step < 1);
      if (x + g.measureText(label).width + 6 < width) {
        g.fillStyle = ink;
        g.fillText(label, x + 4, axisHeight / 2);
      }
    }
    // A band shows where several speakers talk at the same time.
    const voices = lanes.filter((lane) => lane.voice !== 'sound').length;
    g.fillStyle = inkOf('crowd');
    for (let k = Math.max(0, indexAt(crowd, from)); k < crowd.length && crowd[k].start <= to; k++) {
      const x = crowd[k].start * scale - left,
        w = Math.max(2, (crowd[k].end - crowd[k].start) * scale);
      g.fillRect(x, axisHeight - gap / 2, w, voices * (laneHeight + gap));
    }
    lanes.forEach((lane, i) => {
      const y = axisHeight + i * (laneHeight + gap),
        colour = inkOf(lane.voice);
      g.fillStyle = line;
      g.fillRect(0, y + laneHeight / 2, width, 1);
      g.fillStyle = colour;
      let covered = -Infinity; // bars that share their pixels with the last one are drawn once
      for (let k = Math.max(0, indexAt(lane.bars, from) - 20); k < lane.bars.length; k++) {
        const b = lane.bars[k];
        if (b.start > to) break;
        if (b.end < from || b.end * scale - left < covered) continue;
        const x = Math.max(-4, b.start * scale - left),
          w = Math.max(2, Math.min(width + 4, b.end * scale - left) - x);
        covered = x + w;
        if (w < 5) {
          g.fillRect(x, y, w, laneHeight);
          continue;
        }
        g.beginPath();
        g.roundRect(x, y, w, laneHeight, 4);
        g.fill();
      }
    });
    drawHead();
  };

  useEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>('meta[name=otograph-nonce]')?.content;
    const ws = WaveSurfer.create({
      container: wave.current!,
      height: waveHeight,
      media: player.element,
      peaks: [peaks ?? band], // without peaks it would fetch the recording to measure them
      duration,
      cspNonce: nonce,
      hideScrollbar: true,
      autoScroll: false,
      autoCenter: false,
      cursorWidth: 0,
      barWidth: 2,
      barGap: 1,
      barRadius: 2,
      dragToSeek: true,
      normalize: false,
      maxPeak: 1,
      waveColor: inkOf('wave'),
      progressColor: inkOf('wave-done'),
    });
    surfer.current = ws;
    const off = [
      ws.on('interaction', (time) => player.seek(time)), // also while dragging
      ws.on('click', () => player.play()),
      ws.on('scroll', draw),
      ws.on('redraw', draw),
      ws.on('zoom', draw),
      ws.on('error', () => {
        /* the player reports the error */
      }),
    ];
    const size = new ResizeObserver(() => setWidth(wave.current?.clientWidth ?? 0));
    size.observe(wave.current!);
    return () => {
      cancelAnimationFrame(due.current);
      size.disconnect();
      off.forEach((f) => f());
      ws.destroy();
      surfer.current = null;
    };
  }, []);

  const source = player.source.value;
  useEffect(() => {
    surfer.current?.load(player.src, [peaks ?? band], duration).catch(() => {
      /* another load replaced this one, or the player reports the error */
    });
  }, [source, band, peaks]);

  useLayoutEffect(() => {
    // before zoomTo scrolls
    try {
      surfer.current?.zoom(zoom);
    } catch {
      surfer.current?.setOptions({ minPxPerSec: zoom });
    } // a recording that is being loaded is drawn with the new zoom
    draw();
  }, [zoom, width]);
  useEffect(() => draw(), [lanes, scale, width]);
  useSignalEffect(() => {
    void dark.value;
    surfer.current?.setOptions({ waveColor: inkOf('wave'), progressColor: inkOf('wave-done') });
    draw();
  });
  useSignalEffect(() => {
    const time = player.time.value,
      ws = surfer.current,
      { scale, width } = live.current;
    if (ws && width) {
      const x = time * scale - ws.getScroll();
      if (x < 0 || x > width) ws.setScroll(Math.max(0, time * scale - width * 0.1));
    }
    drawHead();
  });

  const zoomTo = (next: number, atX = width / 2) => {
    const bounded = Math.min(most, next),
      time = (scrolled() + atX) / scale;
    setZoom(bounded <= fit ? 0 : bounded);
    requestAnimationFrame(() => {
      surfer.current?.setScroll(Math.max(0, time * Math.max(bounded, fit) - atX));
      draw();
    });
  };
  const onWheel = (e: WheelEvent) => {
    const box = wave.current!.getBoundingClientRect();
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      zoomTo(scale * Math.exp(-e.deltaY / 300), e.clientX - box.left);
    } else if (zoom && (e.deltaX || e.shiftKey)) {
      e.preventDefault();
      surfer.current?.setScroll(scrolled() + (e.deltaX || e.deltaY));
      draw();
    }
  };
  const board = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = board.current!;
    at.addEventListener('wheel', onWheel, { passive: false });
    return () => at.removeEventListener('wheel', onWheel);
  });
  // On the lanes a click plays from there, and dragging moves the view.
  const drag = useRef<{ x: number; left: number; moved: boolean } | null>(null);
  const onDown = (e: PointerEvent) => {
    drag.current = { x: e.clientX, left: scrolled(), moved: false };
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
  };
  const onMove = (e: PointerEvent) => {
    const d = drag.current;
    if (!d) return;
    if (Math.abs(e.clientX - d.x) > 4) d.moved = true;
    if (d.moved) {
      surfer.current?.setScroll(Math.max(0, d.left + d.x - e.clientX));
      draw();
    }
  };
  const onUp = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (d && !d.moved) player.playFrom((scrolled() + e.clientX - wave.current!.getBoundingClientRect().left) / scale);
  };
  const [hint, setHint] = useState('');
  const onHover = (e: PointerEvent) => {
    const box = lanesCanvas.current!.getBoundingClientRect();
    const i = Math.floor((e.clientY - box.top - axisHeight) / (laneHeight + gap)),
      time = (scrolled() + e.clientX - box.left) / scale;
    const bar = lanes[i]?.bars.find((b) => b.start <= time && b.end >= time);
    const both = crowd.some((c) => c.start <= time && c.end >= time) && lanes[i]?.voice !== 'sound';
    setHint(
      bar
        ? `${lanes[i].name} · ${clock(bar.start, true)} – ${clock(bar.end, true)}${both ? ` · ${t('together')}` : ''}`
        : '',
    );
  };

  return (
    <section class="timeline" aria-label={t('position')}>
      <div class="timeline-board" ref={board}>
        <div class="timeline-names" aria-hidden="true">
          {lanes.map((lane, i) => (
            <span key={i} class={lane.voice} title={lane.name}>
              {lane.name}
            </span>
          ))}
        </div>
        <div class="timeline-view">
          <div class="timeline-wave" ref={wave} />
          <canvas
            ref={lanesCanvas}
            class="timeline-lanes"
            role="img"
            title={hint}
            aria-label={t('timeline', {
              speakers: speakers.length,
              events: soundsOf(result).length,
              length: clock(duration),
            })}
            onPointerDown={onDown}
            onPointerMove={(e) => {
              onMove(e);
              onHover(e);
            }}
            onPointerUp={onUp}
            onPointerCancel={() => {
              drag.current = null;
            }}
          />
          <div class="timeline-head" ref={head} />
        </div>
      </div>
      <div class="timeline-foot">
        <span class="muted small">{peaks ? '' : t('onlyTimes')}</span>
        <span class="group">
          <button
            type="button"
            class="small"
            onClick={() => zoomTo(scale / 2)}
            disabled={!zoom}
            aria-label={t('zoomOut')}
            title={t('zoomOut')}
          >
            −
          </button>
          <button
            type="button"
            class="small"
            onClick={() => zoomTo(scale * 2)}
            disabled={scale >= most}
            aria-label={t('zoomIn')}
            title={t('zoomIn')}
          >
            +
          </button>
          <button type="button" class="small" onClick={() => zoomTo(0)} disabled={!zoom}>
            {t('fit')}
          </button>
        </span>
      </div>
    </section>
  );
}
