"""Print sentences of six languages as whisper-normalizer writes them, one JSON object a line.

sentences.py FOLDER COUNT    FOLDER holds texts_en.txt, texts_de.txt …, one sentence a line
"""

import json
import pathlib
import random
import sys

from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

LANGUAGES = ["en", "de", "es", "fr", "pt", "zh"]
NUMBERS = (
    "one two three oh zero nine ten eleven nineteen twenty thirty ninety hundred thousand million decillion "
    "first second third "
    "twelfth twentieth hundredth thousandths twos forties minus plus dollars cents euro pound percent per "
    "cent and double triple "
    "point half a 1 2 7 10 21 100 1,000 3.5 $5 £2.50 ¢7 €0.07 20% 2nd 1960s 1s 1 . , - B2B 192.168.1.1 ٣ 5é o 007"
).split()
SHORT = (
    "won't can't let's ain't y'all wanna kinda sorta dunno gotta gonna i'ma imma woulda coulda shoulda cause "
    "ma'am Mr. Mrs St. Dr "
    "prof capt gov sen col. jr sr esq he'd been she's gone it's got n't don't we're John's I'd you'll 't I've "
    "I'm uh um hmm mhm mm "
    "[laughs] (unclear) <noise> colour organise grey catalogue naïve façade Œuvre straße Ελλάς İstanbul don’t "
    "e.g. U.S.A. A.B.C.s "
    "... 'cause uh-huh well-known ½ x² C++ 50/50 🙂 don't, _under_ ok"
).split()


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(1)
    texts = {c: (folder / f"texts_{c}.txt").read_text().splitlines() for c in LANGUAGES}
    english, basic = EnglishTextNormalizer(), BasicTextNormalizer()
    for i in range(count):
        language = LANGUAGES[i % len(LANGUAGES)]
        words = rng.choice(texts[language]).split()
        for _ in range(rng.choice([0, 0, 2, 5])):
            words.insert(rng.randint(0, len(words)), rng.choice(SHORT))
        for _ in range(rng.choice([0, 0, 1, 3])):
            at = rng.randint(0, len(words))
            words[at:at] = rng.choices(NUMBERS, k=rng.randint(1, 6))
        text = rng.choice([" ", " ", " ", "  ", "\t"]).join(words)
        print(json.dumps({"text": text, "whisper": english(text), "basic": basic(text)}, ensure_ascii=False))


main()
