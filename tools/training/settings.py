"""Settings of a stage: config/STAGE.toml, whose top level applies to all rounds and whose tables
apply to one round each."""

import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

FOLDER = Path(__file__).parent / "config"
T = TypeVar("T")


class SettingsError(ValueError):
    """A setting that is missing, unknown or of the wrong kind; names the file and the setting."""


def _fits(value: Any, kind: Any) -> Any:
    """The value as the field's declared type; TypeError if it does not fit."""
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise TypeError("a list")
        return tuple(_fits(v, get_args(kind)[0]) for v in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def _change(text: str) -> tuple[str, Any]:
    """NAME=VALUE from the command line: a TOML value, or a string that needs no quotes."""
    name, sign, value = text.partition("=")
    if not sign:
        raise SettingsError(f"{text!r}: expected NAME=VALUE")
    try:
        return name, tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return name, value


def load(kind: type[T], stage: str, round_name: str, changes: Sequence[str] = ()) -> T:
    """The settings of one round of a stage as the dataclass `kind`, with changes NAME=VALUE."""
    path = FOLDER / f"{stage}.toml"
    with open(path, "rb") as f:
        file = tomllib.load(f)
    rounds = {k: v for k, v in file.items() if isinstance(v, dict)}
    if round_name not in rounds:
        raise SettingsError(f"{path.name}: no round {round_name!r}, there are {', '.join(rounds)}")
    shared = {k: v for k, v in file.items() if k not in rounds}
    values = shared | rounds[round_name] | dict(map(_change, changes))
    fields = {f.name: f.type for f in dataclasses.fields(kind)}
    for name in fields.keys() ^ values.keys():
        what = "is missing" if name in fields else "is unknown"
        raise SettingsError(f"{path.name}, round {round_name}: {name} {what}")
    for name, want in fields.items():
        try:
            values[name] = _fits(values[name], want)
        except TypeError as e:
            raise SettingsError(f"{path.name}, round {round_name}: {name} is {values[name]!r}, expected {e}") from None
    return kind(**values)
