"""test_palette.py - the colours of series can be told apart by people who see colours differently.

Reads the palettes of src/report/page.css, simulates protanopia, deuteranopia and tritanopia (the
matrices of Machado, Oliveira and Fernandes 2009, in linear light), and asks for a distance in CIE
L*a*b* between any two series, and for a contrast of each to its background."""
import itertools
import pathlib
import re
import unittest

CSS = (pathlib.Path(__file__).parent.parent.parent / "src/report/page.css").read_text()
SEEN = {
    "everyone": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                   (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750),
       (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)
N_SERIES = 8
APART = 10.0  # in L*a*b*; 2.3 is the least that is noticed side by side
CONTRAST = 1.9  # to the background, of areas and bars


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(colour):
    """#rrggbb as light from 0 to 1."""
    values = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def seen_as(colour, matrix):
    return [min(1.0, max(0.0, v)) for v in times(matrix, linear(colour))]


def lab(light):
    def f(t):
        return t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
    x, y, z = (f(v / w) for v, w in zip(times(XYZ, light), WHITE))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def luminance(colour):
    return times(XYZ, linear(colour))[1]


def palettes():
    """Of each block that sets them: the series' colours and the card they are drawn on."""
    found = []
    for block in re.findall(r"\{([^{}]*--s0:[^{}]*)\}", CSS):
        value = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", block))
        card = value["card"]
        found.append(([value[f"s{i}"] for i in range(N_SERIES)],
                      card if len(card) == 7 else "#" + "".join(2 * c for c in card[1:])))
    return found


class Palette(unittest.TestCase):
    def test_light_dark_and_print_have_one(self):
        self.assertEqual(len(palettes()), 4)  # light, dark by preference, dark by choice, print
        self.assertEqual(palettes()[1], palettes()[2])

    def test_any_two_series_can_be_told_apart(self):
        for colours, _ in palettes():
            for kind, matrix in SEEN.items():
                seen = [lab(seen_as(c, matrix)) for c in colours]
                for a, b in itertools.combinations(range(N_SERIES), 2):
                    far = sum((x - y) ** 2 for x, y in zip(seen[a], seen[b])) ** 0.5
                    with self.subTest(kind=kind, colours=(colours[a], colours[b])):
                        self.assertGreater(far, APART)

    def test_series_stand_out_from_the_page(self):
        for colours, card in palettes():
            for colour in colours:
                dim, bright = sorted((luminance(colour), luminance(card)))
                self.assertGreater((bright + 0.05) / (dim + 0.05), CONTRAST, colour)


if __name__ == "__main__":
    unittest.main()
