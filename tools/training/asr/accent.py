"""One accent's phonemes for another accent's voice: espeak-ng transcribes a sentence in IPA, and
the tables here convert it for Pico (X-SAMPA, one tag for each word) and flite (phone names)."""

import ctypes
import re

XSAMPA = {
    "ɒ": "Q",
    "ɑː": "A:",
    "ɑ": "A:",
    "ɔː": "O:",
    "ɔ": "O:",
    "ɜː": "3:",
    "ɜ": "3:",
    "iː": "i:",
    "i": "I",
    "uː": "u:",
    "u": "U",
    "əʊ": "@U",
    "oʊ": "@U",
    "o": "O:",
    "oː": "O:",
    "eɪ": "eI",
    "aɪ": "aI",
    "ɔɪ": "OI",
    "aʊ": "aU",
    "ɪ": "I",
    "ʊ": "U",
    "ʌ": "V",
    "æ": "{",
    "a": "{",
    "aː": "A:",
    "ɛ": "E",
    "e": "E",
    "ɛː": "E",
    "eː": "eI",
    "ə": "@",
    "ɐ": "@",
    "ᵻ": "I",
    "ɚ": "@",
    "ɹ": "r\\",
    "r": "r\\",
    "ɾ": "t",
    "ɡ": "g",
    "ŋ": "N",
    "ʃ": "S",
    "ʒ": "Z",
    "tʃ": "tS",
    "dʒ": "dZ",
    "θ": "T",
    "ð": "D",
    "ʔ": "t",
    "ɫ": "l",
    **{c: c for c in "bdfhjklmnpstvwz"},
}
# Pico's German voice lacks these sounds: a German speaker's substitutes
GERMAN = {
    "Q": "O",
    "{": "E",
    "V": "a",
    "A:": "a:",
    "3:": "9",
    "O:": "o:",
    "T": "s",
    "D": "d",
    "w": "v",
    "r\\": "R",
    "@U": "o:",
    "eI": "e:",
    "U": "U",
}
FLITE = {
    "Q": "aa",
    "A:": "aa",
    "O:": "ao",
    "3:": "ah",
    "i:": "iy",
    "I": "ih",
    "u:": "uw",
    "U": "uh",
    "@U": "ow",
    "eI": "ey",
    "aI": "ay",
    "OI": "oy",
    "aU": "aw",
    "V": "ah",
    "{": "ae",
    "E": "eh",
    "@": "ax",
    "r\\": "r",
    "g": "g",
    "N": "ng",
    "S": "sh",
    "Z": "zh",
    "tS": "ch",
    "dZ": "jh",
    "T": "th",
    "D": "dh",
    "h": "hh",
    "j": "y",
    **{c: c for c in "bdfklmnpstvwz"},
}


def words(lib: ctypes.CDLL, text: str, accent: str) -> list[list[str]]:
    """[(phones in X-SAMPA, stressed vowels marked with a leading quote mark), …] of each word; lib is espeak-ng's
    library."""
    lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
    if lib.espeak_SetVoiceByName(accent.encode()) != 0:
        raise RuntimeError("voice " + accent)
    p, ipa = ctypes.c_char_p(text.encode()), []
    while p.value:
        r = lib.espeak_TextToPhonemes(ctypes.byref(p), 1, 2)
        if r:
            ipa.append(r.decode())
    out = []
    for w in " ".join(ipa).split():
        phones, stress, i = [], "", 0
        while i < len(w):
            if w[i] in "ˈˌ":
                stress = '"' if w[i] == "ˈ" else "%"
            else:
                for n in (2, 1):
                    x = XSAMPA.get(w[i : i + n])
                    if x:
                        phones.append(stress + x)
                        stress = ""
                        i += n - 1
                        break
            i += 1
        if phones:
            out.append(phones)
    return out


def pico(ws: list[list[str]], stop: str, voice: str) -> str:
    """Text for pico2wave with the sounds of every word spelled out."""
    m = GERMAN if voice == "de-DE" else {}
    say = lambda p: ((p[0] if p[0] in '"%' else "") + m.get(p.lstrip('"%'), p.lstrip('"%'))).replace(
        "\\", "\\\\"
    )  # Pico reads a backslash twice
    tag = lambda w: "<phoneme ph='" + " ".join(map(say, w)) + " '/>"
    return " ".join(map(tag, ws)) + stop


def flite(ws: list[list[str]]) -> str:
    return "pau " + " ".join(FLITE[re.sub('["%]', "", p)] for w in ws for p in w) + " pau"
