"""Draws a screen for a matrix of 64x32 lamps, page by page. It shows nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import assert_never
from urllib.parse import urlsplit

from PIL import Image

from carrick_device.displays import font
from carrick_device.displays.qr import Modules, modules_of
from carrick_device.screen import WHITE, Board, Colour, Line, Notice, Screen, SignIn

WIDTH, HEIGHT = 64, 32
LINES = 4
"""Patrols, or lines of text, on a page."""
LINE_HEIGHT = HEIGHT // LINES

BLACK: Colour = (0, 0, 0)
RED: Colour = (255, 0, 0)
GREY: Colour = (110, 110, 110)
DIM: Colour = (60, 60, 60)
YELLOW: Colour = (255, 210, 0)
SOFT: Colour = (190, 190, 190)

DOT = 2
SCORE_ENDS = WIDTH - DOT - 1
"""The last columns are for dots, whether there is one or not: nothing moves when a score is on its way."""

Draw = Callable[[Image.Image], None]


def pages_of(screen: Screen) -> list[Draw]:
    """The pages of a screen, at least one, each as what draws it."""
    match screen:
        case Board():
            return _board(screen)
        case SignIn():
            return _sign_in(screen)
        case Notice():
            return [_title(screen.title), *_text_pages(screen.text)]
        case _:
            assert_never(screen)


def picture_of(draw: Draw) -> Image.Image:
    """The page as a picture of 64x32 points."""
    image = Image.new("RGB", (WIDTH, HEIGHT), BLACK)
    draw(image)
    return image


def score_text(total: int) -> str:
    """A score in at most seven signs; more than six digits are told in millions."""
    return str(total) if abs(total) < 1_000_000 else f"{'-' if total < 0 else ''}{abs(total) // 1_000_000}M"


def _board(board: Board) -> list[Draw]:
    pages = shared_out(board.lines)
    most = max(len(page) for page in pages)
    return [partial(_board_page, board=board, pages=pages, at=at, most=most) for at in range(len(pages))]


def shared_out(lines: tuple[Line, ...]) -> list[tuple[Line, ...]]:
    """Four patrols fill a page. More are on pages of three or less, which leaves room for the dots of the pages."""
    if len(lines) <= LINES:
        return [lines]
    count = -(-len(lines) // (LINES - 1))
    least, more = divmod(len(lines), count)
    starts = [at * least + min(at, more) for at in range(count + 1)]
    return [lines[start:end] for start, end in pairwise(starts)]


def _board_page(image: Image.Image, board: Board, pages: list[tuple[Line, ...]], at: int, most: int) -> None:
    step = min(LINE_HEIGHT + 2, HEIGHT // max(1, most))
    top = (HEIGHT - step * most) // 2 + (step - LINE_HEIGHT) // 2
    for number, line in enumerate(pages[at]):
        _patrol(image, line, top + number * step)
    if len(pages) > 1:
        _page_dots(image, at, len(pages))
    if board.stale:
        _block(image, WIDTH - DOT, HEIGHT - DOT, GREY)


def _patrol(image: Image.Image, line: Line, y: int) -> None:
    score = score_text(line.total)
    starts = SCORE_ENDS - font.width_of(score)
    _text(image, font.cut(font.spelled(line.name), starts - 3), 0, y, line.colour)
    _text(image, score, starts, y, WHITE)
    if line.pending:
        _block(image, WIDTH - DOT, y, RED)


def _page_dots(image: Image.Image, at: int, count: int) -> None:
    """One point for each page in the last row, that of this page bright."""
    step = 3 if count * 3 < WIDTH - 2 * DOT else 1
    left = (WIDTH - count * step) // 2
    for number in range(min(count, WIDTH - 2 * DOT)):
        image.putpixel((max(0, left) + number * step, HEIGHT - 1), WHITE if number == at else DIM)


def _sign_in(screen: SignIn) -> list[Draw]:
    uri = urlsplit(screen.uri)
    address = f"{uri.netloc}{uri.path}".rstrip("/")
    pages = [*_typed(address, screen.user_code), *_text_pages(screen.note)]
    modules = modules_of(screen.link)
    if len(modules) + 2 <= HEIGHT:
        pages.insert(0, partial(_scanned, modules=modules, code=screen.user_code))
    return pages


def _scanned(image: Image.Image, modules: Modules, code: str) -> None:
    """The QR code on lit ground at the left, the code to compare at the right."""
    ground = HEIGHT
    zone = (HEIGHT - len(modules)) // 2
    image.paste(WHITE, (0, 0, ground, HEIGHT))
    for y, row in enumerate(modules, start=zone):
        for x, dark in enumerate(row, start=zone):
            if dark:
                image.putpixel((x, y), BLACK)
    parts = font.spelled(code).split("-") if code.count("-") == 1 else [font.spelled(code)]
    top = (HEIGHT - len(parts) * (LINE_HEIGHT + 1)) // 2
    for number, part in enumerate(parts):
        shown = font.cut(part, WIDTH - ground - 2)
        left = ground + (WIDTH - ground - font.width_of(shown) + 1) // 2
        _text(image, shown, left, top + number * (LINE_HEIGHT + 1), YELLOW)


def _typed(address: str, code: str) -> list[Draw]:
    """The address to go to, and the code to type there: on one page when they fit."""
    typed = font.cut(font.spelled(code), WIDTH)
    lines = font.wrapped(font.spelled(address), WIDTH)
    if len(lines) < LINES:
        return [partial(_lines, lines=[*((line, SOFT) for line in lines), (typed, YELLOW)])]
    return [*_text_pages(address), partial(_lines, lines=[(typed, YELLOW)])]


def _text_pages(text: str) -> list[Draw]:
    lines = font.wrapped(font.spelled(text), WIDTH) if text else []
    pages = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]
    return [partial(_lines, lines=[(line, SOFT) for line in page]) for page in pages]


def _title(text: str) -> Draw:
    lines = font.wrapped(font.spelled(text), WIDTH)[:LINES]
    return partial(_lines, lines=[(line, YELLOW) for line in lines])


def _lines(image: Image.Image, lines: list[tuple[str, Colour]]) -> None:
    """Lines of text in the middle of the page."""
    top = (HEIGHT - len(lines) * LINE_HEIGHT + 1) // 2
    for number, (line, colour) in enumerate(lines):
        _text(image, line, (WIDTH - font.width_of(line)) // 2, top + number * LINE_HEIGHT, colour)


def _text(image: Image.Image, text: str, x: int, y: int, colour: Colour) -> None:
    for right, down in font.points_of(text):
        image.putpixel((x + right, y + down), colour)


def _block(image: Image.Image, x: int, y: int, colour: Colour) -> None:
    image.paste(colour, (x, y, x + DOT, y + DOT))
