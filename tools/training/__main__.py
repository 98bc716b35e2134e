"""Runs one round of a stage.  usage: python3 -m training STAGE ROUND [NAME=VALUE …]

Stages: border; clips (sentences), ctc, lm, whisper, transducer.  Rounds and their settings are in
config/STAGE.toml; NAME=VALUE changes one setting.  Paths are relative to the working folder.
"""

import importlib
import sys

from .settings import SettingsError, load

STAGES = {
    "border": "border",
    "clips": "asr.synth",
    "ctc": "asr.ctc",
    "lm": "asr.lm",
    "transducer": "asr.transducer",
    "whisper": "asr.whisp",
}


def main(args: list[str]) -> None:
    """Runs the stage that the arguments name."""
    if len(args) < 2 or args[0] not in STAGES:
        raise SystemExit(__doc__)
    stage, round_name, *changes = args
    module = importlib.import_module(f".{STAGES[stage]}", __package__)
    try:
        settings = load(module.Settings, stage, round_name, changes)
    except SettingsError as e:
        raise SystemExit(str(e)) from None
    module.run(settings)


if __name__ == "__main__":
    main(sys.argv[1:])
