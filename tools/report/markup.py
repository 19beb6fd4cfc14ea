"""Elements of HTML and SVG, as text. Everything that is not markup is escaped, so that a name from a file cannot become markup."""
import html


class Markup(str):
    pass


EMPTY = {"meta", "input", "br", "wbr"}


def escape(value):
    """Shows unprintable characters (controls, direction marks, lone surrogates) as their numbers."""
    if isinstance(value, Markup):
        return value
    shown = "".join(c if c.isprintable() or c == "\u00a0" else f"\\u{ord(c):04x}" for c in str(value))
    return Markup(html.escape(shown))


def join(*children):
    """Joins the parts: omits None, and flattens lists."""
    return Markup("".join(join(*c) if isinstance(c, (list, tuple)) else escape(c) for c in children if c is not None))


def el(name, /, *children, **attributes):
    """el("td", "x", class_="number", data_v=3): an attribute that is None is left out."""
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
                    for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{shown}>" if name in EMPTY else f"<{name}{shown}>{join(*children)}</{name}>")
