"""Small pictures of a page at several widths in both themes, which can be compared.

Text is drawn with a font whose every character is a box, so that pictures are the same on every
machine, and five by five pixels become one, so that they are small.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, Route

FONT: Final = Path(__file__).parent / "boxes.woff2"
WIDTHS: Final = (360, 768, 1180, 1600)
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

HEIGHT: Final = 900
MAX_HEIGHT: Final = 1200
"""Of a page that is longer, only the beginning is in the picture."""

STYLE: Final = """
@font-face { font-family: Boxes; src: url(data:font/woff2;base64,FONT); }
* { font-family: Boxes !important; animation: none !important; caret-color: transparent !important; }
footer { display: none !important; }
"""
"""Is added to the style of the console; its footer names the version and the user."""

SHEET: Final = """async ({shots, side}) => {
  const load = async (url) => { const one = new Image(); one.src = url; await one.decode(); return one; };
  const images = [];
  for (const url of shots) images.push(await load(url));
  const sizes = images.map((one) => [Math.ceil(one.width / side), Math.ceil(one.height / side)]);
  const half = shots.length / 2;
  const sum = (list) => list.reduce((total, one) => total + one, 0);
  const heights = [0, 1].map((row) => Math.max(...sizes.slice(row * half, (row + 1) * half).map((one) => one[1])));
  const sheet = new OffscreenCanvas(sum(sizes.slice(0, half).map((one) => one[0])), sum(heights));
  const drawing = sheet.getContext("2d");
  images.forEach((image, number) => {
    const canvas = new OffscreenCanvas(image.width, image.height);
    const from = canvas.getContext("2d", {willReadFrequently: true});
    from.drawImage(image, 0, 0);
    const {data} = from.getImageData(0, 0, image.width, image.height);
    const [width, height] = sizes[number];
    const small = new ImageData(width, height);
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
      const total = [0, 0, 0];
      let count = 0;
      for (let v = y * side; v < Math.min(image.height, (y + 1) * side); v++)
        for (let u = x * side; u < Math.min(image.width, (x + 1) * side); u++, count++)
          for (let part = 0; part < 3; part++) total[part] += data[4 * (v * image.width + u) + part];
      // Sixteen levels are enough to compare, and make a small file.
      total.forEach((one, part) => { small.data[4 * (y * width + x) + part] = Math.round(one / count / 17) * 17; });
      small.data[4 * (y * width + x) + 3] = 255;
    }
    const left = sum(sizes.slice(number < half ? 0 : half, number).map((one) => one[0]));
    drawing.putImageData(small, left, number < half ? 0 : heights[0]);
  });
  const bytes = new Uint8Array(await (await sheet.convertToBlob({type: "image/png"})).arrayBuffer());
  return btoa(bytes.reduce((text, one) => text + String.fromCharCode(one), ""));
}"""
"""Makes one picture of several: the first half of them above the second."""

COMPARE: Final = """async ([one, other]) => {
  const pixels = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    return drawing.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  if (a.width !== b.width || a.height !== b.height) return {sizes: [[a.width, a.height], [b.width, b.height]], different: 0};
  let different = 0;
  for (let at = 0; at < a.data.length; at += 4)
    different += [0, 1, 2, 3].some((part) => Math.abs(a.data[at + part] - b.data[at + part]) > 17);
  return {sizes: null, different};
}"""
"""Counts the pixels that differ by more than one of sixteen levels."""

SIDE: Final = 5
"""Of ten by ten pixels, text is so small a part that another colour of it would not be noticed."""


class Difference(NamedTuple):
    """How two sheets differ."""

    sizes: list[list[int]] | None
    """Both sizes, if they are not the same."""
    pixels: int


def picture_context(browser: Browser) -> BrowserContext:
    """Return a context in which pages stay as they were served: no clock runs, nothing is live."""
    context = browser.new_context(bypass_csp=True)
    font = base64.b64encode(FONT.read_bytes()).decode()

    def add_style(route: Route) -> None:
        fetched = route.fetch()
        route.fulfill(response=fetched, body=fetched.text() + STYLE.replace("FONT", font))

    context.route("**/static/console.css", add_style)
    context.route("**/live*", lambda route: route.abort())
    context.add_init_script("window.setInterval = () => 0")
    return context


def take_sheet(page: Page, address: str, style: str = "") -> bytes:
    """Return one picture of a page at all widths, light above dark; ``style`` is added to it."""
    shots = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.goto(address)
            page.add_style_tag(content=style or "/* none */")
            page.evaluate("document.fonts.ready")
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": min(height, MAX_HEIGHT)})
            shots.append(_url(page.screenshot()))
    return base64.b64decode(_on_blank_page(page, SHEET, {"shots": shots, "side": SIDE}))


def compare_sheets(page: Page, one: bytes, other: bytes) -> Difference:
    """Return how two sheets differ."""
    found = _on_blank_page(page, COMPARE, [_url(one), _url(other)])
    return Difference(found["sizes"], int(found["different"]))


def _on_blank_page(page: Page, script: str, given: dict[str, Any] | Sequence[str]) -> Any:
    blank = page.context.new_page()
    try:
        return blank.evaluate(script, given)
    finally:
        blank.close()


def _url(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()
