// Made-up results, for cases that no demo recording has.

export const hostileName = '"><img src=x onerror=window.harmed=1>\u202egpj.<script>window.harmed=2</script>.wav';

const embedding = Array.from({ length: 192 }, () => 0.0722);

export function hostileResult() {
  const texts = [
    '<img src=x onerror="window.harmed=3">',
    '</script><script>document.title="harmed";window.harmed=4</script>',
    '"\'`&lt;b&gt; javascript:alert(1) ${7*7} {{7*7}} <!-- ]]>',
    '<svg/onload=window.harmed=5>',
  ];
  const segments = texts.map((text, id) => ({
    id,
    start: id * 3,
    end: id * 3 + 2.5,
    text,
    speaker: '<b>SPEAKER</b>_' + (id % 2),
    words: text.split(' ').map((word, i, all) => ({
      word,
      start: id * 3 + (2.5 * i) / all.length,
      end: id * 3 + (2.5 * (i + 1)) / all.length,
      probability: 0.2,
    })),
  }));
  return {
    audio_duration: 12,
    audio_md5: '0'.repeat(32),
    language: '"><script>window.harmed=6</script>',
    language_probability: 0.5,
    segments,
    vad_segments: segments.map(({ start, end }) => ({ start, end })),
    num_speakers: 2,
    speaker_embeddings: [0, 1].map((i) => ({ speaker_id: '<b>SPEAKER</b>_' + i, embedding, segment_count: 2 })),
    diarize_segments: segments.map(({ start, end, speaker }) => ({ start, end, speaker })),
    audio_events: [{ start: 1, end: 2, class: '<img src=x onerror=window.harmed=7>', confidence: 0.9 }],
    billing: { mode: 'standard', billable_minutes: 1, amount: 0.0133, balance: 999.9, detail: {} },
  };
}

const lines = [
  'Let us begin with the numbers of the last quarter, and then look at the plan.',
  'That is a good idea, because the recording from Tuesday was cut short.',
  'I have read it twice and I am still not sure what they meant by that.',
  'Could you say this again, a little more slowly this time?',
  'Of course: we had three orders from Lisbon and one from Porto.',
  'Then there is time enough to send the samples before the end of May.',
  'Somebody should write to Ms Ferreira, who asked about the delivery.',
  'I will do that this afternoon, right after the call with the printers.',
];
const voices = 4;

/** longResult makes a result of at least `words` words, spread over five hours when there are 20,000. */
export function longResult(words) {
  const segments = [],
    events = [];
  const total = (words / 20000) * 18000;
  let count = 0;
  const perWord = total / words;
  for (let id = 0, at = 0; count < words; id++) {
    const text = lines[(id * 5 + Math.floor(id / 7)) % lines.length],
      list = text.split(' '),
      speaker = 'SPEAKER_' + ((Math.floor(id / 3) * 7) % voices);
    const start = at + 0.2,
      step = perWord * 0.85;
    segments.push({
      id,
      start,
      end: start + list.length * step,
      text,
      speaker,
      words: list.map((word, i) => ({
        word,
        start: start + i * step,
        end: start + (i + 0.9) * step,
        probability: (id * 13 + i * 7) % 17 ? 0.93 : 0.31,
      })),
    });
    at += list.length * perWord;
    count += list.length;
  }
  const end = segments.at(-1).end + 1;
  for (let i = 0; i * 45 < end; i++)
    events.push({
      start: i * 45,
      end: Math.min(end, i * 45 + 3 + (i % 5) * 4),
      class: ['Music', 'Applause', 'Telephone bell ringing', 'Laughter', 'Door', 'Typing', 'Dog'][i % 7],
      confidence: 0.4 + (i % 6) / 10,
    });
  const intervals = segments.map(({ start, end }) => ({ start, end }));
  return {
    audio_duration: end,
    audio_md5: '0'.repeat(32),
    language: 'en',
    language_probability: 0.99,
    segments,
    vad_segments: intervals,
    num_speakers: voices,
    speaker_embeddings: Array.from({ length: voices }, (_, i) => ({
      speaker_id: 'SPEAKER_' + i,
      embedding,
      segment_count: 10,
    })),
    diarize_segments: segments.map(({ start, end, speaker }) => ({ start, end, speaker })),
    audio_events: events,
    billing: { mode: 'standard', billable_minutes: Math.ceil(end / 60), amount: 4, balance: 900, detail: {} },
  };
}
