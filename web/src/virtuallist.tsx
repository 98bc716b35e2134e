// A list of which only the visible rows exist.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from '@tanstack/virtual-core';
import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface ListHandle {
  show(index: number, align?: 'auto' | 'center'): void;
  visible(): [number, number];
}

interface Props {
  count: number;
  estimate: (index: number) => number;
  row: (index: number) => ComponentChildren;
  label: string;
  class?: string;
  handle?: RefObject<ListHandle | null>;
  onClick?: (e: MouseEvent) => void;
}

export function VirtualList(p: Props) {
  const scroll = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const options = {
    count: p.count,
    estimateSize: p.estimate,
    overscan: 6,
    getScrollElement: () => scroll.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((n) => n + 1),
    initialRect: { width: 600, height: 400 },
  };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  if (p.handle) {
    p.handle.current = {
      show: (index, align = 'center') => virtual.scrollToIndex(index, { align }),
      visible: () => {
        const top = virtual.scrollOffset ?? 0,
          bottom = top + (virtual.scrollRect?.height ?? 0);
        const seen = virtual.getVirtualItems().filter((i) => i.start >= top && i.end <= bottom);
        return seen.length ? [seen[0].index, seen[seen.length - 1].index] : [-1, -1];
      },
    };
  }
  const items = virtual.getVirtualItems();
  return (
    <div
      class={`rows ${p.class ?? ''}`}
      ref={scroll}
      tabIndex={0}
      role="group"
      aria-label={p.label}
      onClick={p.onClick}
    >
      <div class="rows-all" role="list" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map((i) => (
          <div
            key={i.key}
            data-index={i.index}
            ref={virtual.measureElement}
            class="rows-one"
            role="listitem"
            aria-setsize={p.count}
            aria-posinset={i.index + 1}
            style={{ transform: `translateY(${i.start}px)` }}
          >
            {p.row(i.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
