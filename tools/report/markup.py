"""Elements of HTML and SVG, as text. Whatever is not markup already is escaped, so that a name from a file cannot become any."""
import html


class Markup(str):
    pass


EMPTY = {"meta", "input", "br", "wbr"}


def escape(value):
    """What does not print (controls, marks that turn the direction of text, halves of characters) is shown as its number."""
    if isinstance(value, Markup):
        return value
    shown = "".join(c if c.isprintable() or c == "\u00a0" else f"\\u{ord(c):04x}" for c in str(value))
    return Markup(html.escape(shown))


def join(*children):
    """None is left out; a list's members stand in its place."""
    return Markup("".join(join(*c) if isinstance(c, (list, tuple)) else escape(c) for c in children if c is not None))


def el(name, /, *children, **attributes):
    """el("td", "x", class_="number", data_v=3): an attribute that is None is left out."""
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
                    for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{shown}>" if name in EMPTY else f"<{name}{shown}>{join(*children)}</{name}>")
