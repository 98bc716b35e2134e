/** The languages that can be named, as the codes of the service; the first ones are the most common. */
export const languages = ('zh en ja ko fr de es ru ar pt th vi hi ' +
  'af am as az ba be bg bn bo br bs ca cs cy da el et eu fa fi fo gl gu ha haw he hr ht hu hy id is it jw ka kk km kn la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps ro sa sd si sk sl sn so sq sr su sv sw ta te tg tk tl tr tt uk ur uz yi yo').split(' ');
