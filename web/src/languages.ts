/** The number of languages that come first. */
const common = 13;

/** The languages that can be named, as the codes of the service; the first ones are the most common. */
const languages = (
  'zh en ja ko fr de es ru ar pt th vi hi ' +
  'af am as az ba be bg bn bo br bs ca cs cy da el et eu fa fi fo gl gu ha haw he hr ht hu hy id is it jw ka kk km kn la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps ro sa sd si sk sl sn so sq sr su sv sw ta te tg tk tl tr tt uk ur uz yi yo'
).split(' ');

/** Names that some browsers do not have. */
const missing: Record<string, Record<string, string>> = {
  en: { ba: 'Bashkir', bo: 'Tibetan' },
  zh: { ba: '巴什基尔语', bo: '藏语' },
};

/** languageName returns a language's name in the reader's language. */
export function languageName(code: string, reader: string): string {
  try {
    const name = new Intl.DisplayNames([reader], { type: 'language' }).of(code);
    if (name && name !== code) return name;
  } catch {
    /* the browser does not know the code */
  }
  return missing[reader]?.[code] ?? code;
}

/** languageChoices lists the languages with their names: the most common ones, then the others by name. */
export function languageChoices(reader: string): { code: string; name: string }[] {
  const all = languages.map((code) => ({ code, name: languageName(code, reader) }));
  return [...all.slice(0, common), ...all.slice(common).sort((a, b) => a.name.localeCompare(b.name, reader))];
}
