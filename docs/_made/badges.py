"""Draws docs/figures/badges.svg, which needs no other host: python docs/_made/badges.py docs/figures/badges.svg"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def badges() -> str:
    """Python, license, types and coverage, from the project's own settings."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shown = (
        ("python", settings["project"]["requires-python"].replace(">=", "≥ ")),
        ("license", settings["project"]["license"]),
        ("types", "mypy strict" if settings["tool"]["mypy"]["strict"] else "some"),
        ("coverage", f"≥ {settings['tool']['coverage']['report']['fail_under']} %"),
    )
    parts, x = [], 0
    for name, value in shown:
        left, right = 9 + 6.6 * len(name), 9 + 6.6 * len(value)
        parts.append(
            f'<rect x="{x:.0f}" width="{left:.0f}" height="20" fill="#55606b"/>'
            f'<rect x="{x + left:.0f}" width="{right:.0f}" height="20" fill="#0b6e99"/>'
            f'<text x="{x + left / 2:.0f}" y="14" text-anchor="middle">{name}</text>'
            f'<text x="{x + left + right / 2:.0f}" y="14" text-anchor="middle">{value}</text>'
        )
        x += int(left + right) + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="20" font-family="sans-serif" font-size="11" '
        f'fill="#fff" role="img" aria-label="badges">{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(badges(), encoding="utf-8")
