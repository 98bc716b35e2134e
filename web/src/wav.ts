// A recording as a WAV file.

/** wavOf returns 16-bit samples of one channel as a WAV file. */
export function wavOf(pieces: Int16Array<ArrayBuffer>[], rate: number, name: string): File {
  const bytes = pieces.reduce((n, p) => n + p.byteLength, 0),
    head = new DataView(new ArrayBuffer(44));
  const text = (at: number, s: string) => {
    for (let i = 0; i < s.length; i++) head.setUint8(at + i, s.charCodeAt(i));
  };
  text(0, 'RIFF');
  head.setUint32(4, 36 + bytes, true);
  text(8, 'WAVEfmt ');
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true);
  head.setUint16(22, 1, true);
  head.setUint32(24, rate, true);
  head.setUint32(28, 2 * rate, true);
  head.setUint16(32, 2, true);
  head.setUint16(34, 16, true);
  text(36, 'data');
  head.setUint32(40, bytes, true);
  return new File([head.buffer, ...pieces], name, { type: 'audio/wav' });
}
