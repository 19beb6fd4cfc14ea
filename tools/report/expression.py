"""The language of a manifest's shapes, rules and costs (include/kiln/author/family.h): unsigned numbers of 64 bits, and words that
are compared with words."""
import re

TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|[-+*/%<>!(),]))")
LEVELS = [("||",), ("&&",), ("==", "!="), ("<=", ">=", "<", ">"), ("+", "-"), ("*", "/", "%")]
OPERANDS = {"ceil_div": 2, "min": 2, "max": 2, "select": 3, "aligned": 2, "given": 1, "negative": 1, "finite": 1}
MOST_DEPTH, MOST_NUMBER = 64, 2 ** 64 - 1


class Wrong(Exception):
    """The text is not of the language, or has no value."""


# ---- parsing: a number, a name, or a tuple of an operator and its operands --------------------------------------------------

class Parser:
    def __init__(self, text):
        self.tokens, at = [], 0
        while text[at:].strip():
            found = TOKEN.match(text, at)
            if not found:
                raise Wrong(f"'{text}': nothing begins with '{text[at:].strip()[0]}'")
            self.tokens.append(found)
            at = found.end()
        self.text, self.at, self.depth = text, 0, 0

    def next(self):
        return self.tokens[self.at][0].strip() if self.at < len(self.tokens) else None

    def accept(self, token):
        found = self.next() == token
        self.at += found
        return found

    def expect(self, token):
        if not self.accept(token):
            raise Wrong(f"'{self.text}': expected '{token}', found '{self.next() or 'the end'}'")

    def parse(self):
        node = self.level(0)
        if self.next() is not None:
            raise Wrong(f"'{self.text}': expected an operator or the end, found '{self.next()}'")
        return node

    def level(self, level):
        self.depth += 1
        if self.depth > MOST_DEPTH * (len(LEVELS) + 1):
            raise Wrong(f"'{self.text[:40]}...': nested too deeply")
        if level == len(LEVELS):
            node = self.unary()
        else:
            node = self.level(level + 1)
            while self.next() in LEVELS[level]:
                operator = self.next()
                self.at += 1
                node = operator, node, self.level(level + 1)
        self.depth -= 1
        return node

    def unary(self):
        if self.accept("!"):
            return "!", self.level(len(LEVELS))
        if self.accept("("):
            node = self.level(0)
            self.expect(")")
            return node
        if self.at == len(self.tokens) or self.tokens[self.at][3]:
            raise Wrong(f"'{self.text}': expected a number, a name or '(', found '{self.next() or 'the end'}'")
        number, name, _ = self.tokens[self.at].groups()
        if number and len(number) > 20:
            raise Wrong(f"'{self.text[:40]}...': a number passes 64 bits")
        self.at += 1
        if number:
            return int(number, 0) if number[:2] in ("0x", "0X") else int(number)
        return self.call(name) if self.accept("(") else name

    def call(self, name):
        if name not in OPERANDS:
            raise Wrong(f"'{self.text}': there is no function '{name}'")
        operands = [self.level(0)]
        while self.accept(","):
            operands.append(self.level(0))
        self.expect(")")
        if len(operands) != OPERANDS[name]:
            raise Wrong(f"'{self.text}': {name} takes {OPERANDS[name]}")
        return name, *operands


def parse(text):
    return Parser(text).parse()


def names(node):
    if isinstance(node, str):
        return {node}
    if isinstance(node, tuple) and node[0] == "given":
        return set()  # no pointer is given here
    return set().union(*map(names, node[1:])) if isinstance(node, tuple) else set()


# ---- values -----------------------------------------------------------------------------------------------------------------

def divide(a, b):
    if b == 0:
        raise Wrong("division by zero")
    return a // b


def remainder(a, b):
    return a - b * divide(a, b)


ARITHMETIC = {
    "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b), ">=": lambda a, b: int(a >= b),
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide, "%": remainder,
    "ceil_div": lambda a, b: divide(a + b - 1 if b else a, b), "min": min, "max": max,
    "aligned": lambda a, b: int(remainder(a, b) == 0),
}


def evaluate(node, values):
    """Where a name has no value it stands for itself, as a word."""
    result = value(node, values)
    if isinstance(result, str):
        raise Wrong(f"'{result}' is no number")
    return result


def value(node, values):
    if isinstance(node, str):
        return values.get(node, node)
    if isinstance(node, int):
        return node
    operator, *operands = node
    if operator in ("==", "!="):
        return int((value(operands[0], values) == value(operands[1], values)) == (operator == "=="))
    if operator in ("negative", "finite"):
        raise Wrong("a float has no value here")
    if operator == "given":
        return 0
    first = evaluate(operands[0], values)
    if operator == "!":
        return int(not first)
    if operator == "select":
        return evaluate(operands[1 if first else 2], values)
    if operator in ("&&", "||"):
        return int(bool(evaluate(operands[1], values))) if bool(first) == (operator == "&&") else int(bool(first))
    result = ARITHMETIC[operator](first, evaluate(operands[1], values))
    if not 0 <= result <= MOST_NUMBER:
        raise Wrong("below zero, or beyond 64 bits")
    return result
