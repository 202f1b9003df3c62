"""Makes docs/images/NAME.png of the screenshots, small, unless the picture already shows what NAME.txt says; draws the
terminal in NAME.svg; and writes src/pictures.md, with which rustdoc has all pictures."""
import base64
import hashlib
import html
import pathlib
import re

from PIL import Image, PngImagePlugin

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs/images"
# Of the colors in a picture: so many that are frequent, and so many for all others.
FREQUENT, OTHERS = 12, 4
# Texts of a terminal, and the titles of their pictures.
TERMINALS = {"agent": "Claude Code at a terminal: it asks whether it may call a tool, and then shows the call"}
# Of a character and a line, in pixels.
WIDTH, HEIGHT = 8.4, 20
# Characters that many fonts lack, as paths.
SYMBOLS = {"❯": "M2 5l4 5-4 5", "●": "M4 7a3 3 0 1 0 .1 0z", "│": "M4 0v20", "⎿": "M4 2v8h5"}


def distance(one, other):
    return sum((left - right) ** 2 for left, right in zip(one, other))


def with_few_colors(image):
    """Returns the image with a palette."""
    colors = [color for _, color in sorted(image.getcolors(1 << 24), reverse=True)]
    # Each of the other colors counts once, so that a small part of the picture keeps its own.
    others = Image.new("RGB", (len(colors), 1))
    others.putdata(colors)
    channels = others.quantize(OTHERS, method=Image.Quantize.MEDIANCUT).getpalette()[: 3 * OTHERS]
    palette = colors[:FREQUENT] + list(zip(*[iter(channels)] * 3))
    # Pillow's own search for the nearest color is not exact: it would change the white of the page.
    nearest = {color: min(range(len(palette)), key=lambda index: distance(color, palette[index])) for color in colors}
    reduced = Image.new("P", image.size)
    reduced.putpalette([channel for color in palette for channel in color])
    reduced.putdata([nearest[color] for color in image.get_flattened_data()])
    return reduced


def terminal(title, text, shows):
    """Returns a drawing of these lines. It has the same width in every font, and needs none for symbols."""
    lines = text.rstrip("\n").split("\n")
    width, height = WIDTH * max(map(len, lines)) + 40, HEIGHT * len(lines) + 40
    drawn = []
    for row, line in enumerate(lines):
        for run in re.finditer("╌+|" + "|".join(SYMBOLS), line):
            path = SYMBOLS.get(run[0], f'M0 10h{WIDTH * len(run[0]):.1f}" stroke-dasharray="5 3.4')
            drawn.append(f'<path transform="translate({20 + WIDTH * run.start():.1f} {20 + HEIGHT * row})" d="{path}"/>')
        words = re.sub("|".join(["╌", *SYMBOLS]), " ", line)
        start = len(words) - len(words.lstrip())
        if words.strip():
            place = f'x="{20 + WIDTH * start:.1f}" y="{34 + HEIGHT * row}"'
            drawn.append(f'<text {place} textLength="{WIDTH * len(words.strip()):.1f}">{html.escape(words.strip(), False)}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
        f"<!-- Shows {shows} -->",
        f"<title>{title}</title>",
        "<desc>The text of the terminal.</desc>",
        "<style>",
        "text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #e4e6e8; white-space: pre }",
        "path { stroke: #7fcb9d; stroke-width: 1.5; fill: none }",
        "</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#1c1f21"/>',
        *drawn,
        "</svg>\n",
    ])


def definition(path):
    """Returns the line that defines a picture for the pages."""
    kind = {".png": "image/png", ".svg": "image/svg+xml"}[path.suffix]
    return f"[picture-{path.stem}]: data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}\n"


for text in FOLDER.glob("*.txt"):
    shows = hashlib.sha256(text.read_bytes()).hexdigest()
    if text.stem in TERMINALS:
        text.with_suffix(".svg").write_text(terminal(TERMINALS[text.stem], text.read_text(), shows))
        continue
    picture = text.with_suffix(".png")
    if picture.exists() and Image.open(picture).text.get("Shows") == shows:
        continue
    about = PngImagePlugin.PngInfo()
    about.add_text("Shows", shows)
    screenshot = Image.open(ROOT / f"target/artifacts/picture.{text.stem}.png").convert("RGB")
    with_few_colors(screenshot).save(picture, optimize=True, pnginfo=about)
    print(f"made {picture.relative_to(ROOT)}: {picture.stat().st_size} bytes")
pictures = [path for path in sorted(FOLDER.iterdir()) if path.suffix != ".txt"]
(ROOT / "src/pictures.md").write_text("".join(map(definition, pictures)))
