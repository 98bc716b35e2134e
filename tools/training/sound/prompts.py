"""Recordings of people in Debian's packages, in a folder for each person, as people.py reads them.

usage: python3 -m training.sound.prompts ROOT OUT
ROOT holds the unpacked packages (dpkg -x PACKAGE.deb ROOT): klettres-data, ktuberling-data,
asterisk-core-sounds-{en,es,fr,it,ru}-g722, asterisk-prompt-{it-menardi-wav,es-co,fr-armelle} and
fillets-ng-data-{cs,nl}. A person is a language of a program or a name in the path;
in klettres-data's da, de and tn the letters and the syllables are two, in fillets-ng the two fish.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

SECONDS = 240.0  # of each person
# path in ROOT of a recording -> the person who speaks in it, by the groups of the expression
SOURCES = {
    r"usr/share/klettres/(da|de|tn)/(\w+)/.*\.ogg": "klettres_{0}_{1}",
    r"usr/share/klettres/(\w+)/(?:alpha|syllab)/.*\.ogg": "klettres_{0}",
    r"usr/share/ktuberling/sounds/(\w+)(?:@\w+)?/.*\.(?:ogg|wav)": "ktuberling_{0}",
    r"usr/share/asterisk/sounds/\w+_[fm]_(\w+)/(?!silence).*\.g722": "asterisk_{0}",
    r"usr/share/asterisk/sounds/it_IT_f_Menardi/.*\.wav": "asterisk_menardi",
    r"usr/share/asterisk/sounds/es/.*\.gsm": "asterisk_esco",
    r"usr/share/asterisk/sounds/fr/.*\.gsm": "asterisk_armelle",
    r"usr/share/games/fillets-ng/sound/.*/(\w+)/[^/]*-([mv])-[^/]*\.ogg": "fillets_{0}_{1}",
}


def speaker(path: str) -> str | None:
    """Who speaks in a file of the packages; None if it is none of these recordings."""
    for pattern, person in SOURCES.items():
        if found := re.fullmatch(pattern, path):
            return person.format(*found.groups())
    return None


def main() -> None:
    root, out = Path(sys.argv[1]), Path(sys.argv[2])
    persons: dict[str, list[Path]] = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        if person := speaker(str(path.relative_to(root))):
            persons.setdefault(person, []).append(path)
    for person, files in persons.items():
        folder, seconds = out / person, 0.0
        folder.mkdir(parents=True, exist_ok=True)
        for i, path in enumerate(random.Random(5).sample(files, len(files))):
            if seconds > SECONDS:
                break
            wav = folder / f"{i:03}.wav"
            rate = ["-f", "g722"] if path.suffix == ".g722" else []
            command = ["ffmpeg", "-v", "error", "-y", *rate, "-i", path, "-ar", "16000", "-ac", "1", wav]
            done = subprocess.run(command, check=False)
            if done.returncode:  # Speex in a file called .ogg
                print("left out:", path)
            elif wav.exists():
                seconds += (wav.stat().st_size - 44) / 32000


if __name__ == "__main__":
    main()
