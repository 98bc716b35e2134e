"""The contents of settings files, and the errors for invalid ones."""

import dataclasses
import unittest

from ..settings import SettingsError, load


@dataclasses.dataclass(frozen=True)
class Border:
    """The settings of config/border.toml."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    out: str
    seed: int
    epochs: int
    batch: int
    rate: float


class SettingsTest(unittest.TestCase):
    """config/border.toml with changes."""

    def test_changes_of_the_command_line(self) -> None:
        """A change of the command line is a TOML value or plain text; an integer is accepted for a float."""
        s = load(Border, "border", "border", ["out=x.f32", 'train=["a", "b"]', "rate=1"])
        self.assertEqual(("x.f32", ("a", "b"), 1.0), (s.out, s.train, s.rate))
        self.assertIsInstance(s.rate, float)

    def test_invalid_settings(self) -> None:
        """Each fault is named with its file and setting."""
        for round_name, change, says in [
            ("border", "epoch=3", "border.toml, round border: epoch is unknown"),
            ("border", "epochs=1.5", "border.toml, round border: epochs is 1.5, expected int"),
            ("border", "train=a", "border.toml, round border: train is 'a', expected a list"),
            ("border", "epochs", "'epochs': expected NAME=VALUE"),
            ("second", "epochs=1", "border.toml: no round 'second', there are border"),
        ]:
            with self.subTest(says), self.assertRaises(SettingsError) as e:
                load(Border, "border", round_name, [change])
            self.assertEqual(says, str(e.exception))

    def test_missing_setting(self) -> None:
        """A setting that is in no table is reported as missing."""
        more = dataclasses.make_dataclass("More", [("depth", int)], bases=(Border,), frozen=True)
        with self.assertRaisesRegex(SettingsError, "depth is missing"):
            load(more, "border", "border")


if __name__ == "__main__":
    unittest.main()
