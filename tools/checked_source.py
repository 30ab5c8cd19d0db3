# SPDX-License-Identifier: Apache-2.0
"""What check_size, check_words and check_tests_beside share: a reader of C++ as clang-format writes
it, and baselines.

The reader knows no types. It takes out comments and literals, follows braces, and finds classes,
their members, and functions. A baseline lists faults that are allowed for now: it may shrink and
never grow.
"""

import bisect
import collections
import dataclasses
import pathlib
import re
import sys
import unittest

CPP = {".hpp", ".cpp", ".h", ".ipp"}

PIECE = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<number>\b\d[\w.']*)
  | (?P<char>'(?:[^'\\\n]|\\.)+')
""", re.DOTALL | re.VERBOSE)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|[^\s\w]")
NAME = re.compile(r"[A-Za-z_]\w*")
# A parenthesis behind one of these opens no list of parameters.
NO_FUNCTION = {"alignas", "decltype", "explicit", "noexcept", "requires", "operator", "if", "while", "for", "switch",
               "static_assert", "throw"}


def blank(text):
    """As many spaces, with the line breaks where they were."""
    return re.sub(r"[^\n]", " ", text)


@dataclasses.dataclass
class Class:
    name: str
    line: int
    # Without those that are defaulted or deleted.
    functions: list = dataclasses.field(default_factory=list)
    members: list = dataclasses.field(default_factory=list)  # data that each object has
    pure: int = 0


@dataclasses.dataclass
class Function:
    name: str
    line: int
    lines: int


class Source:
    """One file of C++: `code` has spaces for comments and directives, and "" for literals."""

    def __init__(self, text):
        self.text = text
        self.comments = []  # (line, text)
        self.strings = []  # (line, text), without quotes
        self.classes = []
        self.functions = []  # with a body, those of classes too
        self.types = []  # (line, name): classes, enumerations, aliases
        self._starts = [0] + [found.end() for found in re.finditer("\n", text)]
        self.code = DIRECTIVE.sub(lambda found: blank(found.group()), PIECE.sub(self._piece, text))
        self._tokens = [(found.group(), found.start()) for found in TOKEN.finditer(self.code)]
        self._at = 0
        self.is_balanced = True  # each brace has its other; else what is behind it may not be found
        while self._at < len(self._tokens):
            if self._scope("", None):
                self.is_balanced = False

    def line_at(self, offset):
        return bisect.bisect_right(self._starts, offset)

    def identifiers(self):
        """Yields (line, identifier)."""
        for token, offset in self._tokens:
            if NAME.match(token):
                yield self.line_at(offset), token

    def _piece(self, found):
        text = found.group()
        line = self.line_at(found.start())
        if found["comment"]:
            self.comments.append((line, text))
            return blank(text)
        if found["number"]:
            return text
        if found["raw"]:
            mark = len(found["mark"]) + 1
            self.strings.append((line, text[text.index('"') + 1 + mark:-1 - mark]))
        elif found["string"]:
            self.strings.append((line, text[1:-1]))
        return '"' + blank(text[1:-1]) + '"'

    def _skip_braces(self):
        """From behind a `{` to behind its `}`; returns the offset of that."""
        depth = 1
        while self._at < len(self._tokens):
            token, offset = self._tokens[self._at]
            self._at += 1
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return offset
        self.is_balanced = False
        return len(self.text)

    def _scope(self, prefix, inside):
        """Reads up to the `}` of this namespace, or of the class `inside`; false without one."""
        head = []
        while self._at < len(self._tokens):
            token, offset = self._tokens[self._at]
            self._at += 1
            if token == "}":
                return True
            if token == ";":
                self._declaration(head, inside)
                head = []
            elif token == ":" and inside and len(head) == 1 and head[0][0] in ("public", "private", "protected"):
                head = []
            elif token == "{":
                head = self._brace(head, prefix, inside)
            else:
                head.append((token, offset))
        return False

    def _brace(self, head, prefix, inside):
        """What a `{` behind `head` opens is read; returns what is left of the declaration."""
        if sum((token == "(") - (token == ")") for token, _ in head) > 0:
            self._skip_braces()  # a default argument
            return head
        words = outline(head)
        plain = [word for word, _ in words]
        if "namespace" in plain or plain[:1] == ["extern"] and len(plain) <= 3 and "(" not in plain:
            self.is_balanced &= self._scope(prefix, None)
            return []
        place = parameters_at(words)
        if place is None and "=" not in plain:
            kind = next((at for at, word in enumerate(plain) if word in ("class", "struct", "union", "enum")), None)
            if kind is not None:
                return self._type(words[kind:], prefix, head)
        if place is None:
            self._skip_braces()  # an initializer
            return head
        # `: first_{1}, second_(2) {` of a constructor: only what follows a bracket is the body.
        if ":" in plain[place:] and plain[-1] not in (")", "}", "try"):
            self._skip_braces()
            return head + [("}", head[-1][1])]
        first = head[0][1]
        last = self._skip_braces()
        name = function_name(plain, place)
        line = self.line_at(first)
        self.functions.append(Function(prefix + name, line, self.line_at(last) - line + 1))
        if inside:
            inside.functions.append((name, line))
        return []

    def _type(self, words, prefix, head):
        plain = [word for word, _ in words]
        names = [at for at, word in enumerate(plain) if NAME.match(word)
                 and word not in ("class", "struct", "union", "enum", "final", "alignas")]
        end = plain.index(":") if ":" in plain else len(plain)
        names = [at for at in names if at < end]
        # `namespace_name::type` is one name; of others the first counts.
        at = names[0] if names else 0
        while at + 2 < len(plain) and plain[at + 1] == "::":
            at += 2
        name = plain[at] if names else "(unnamed)"
        line = self.line_at(words[0][1])
        if names:
            self.types.append((line, name))
        if plain[0] == "enum":
            self._skip_braces()
        else:
            found = Class(prefix + name, line)
            self.is_balanced &= self._scope(prefix + name + "::", found)
            self.classes.append(found)
        return [("(type)", head[0][1])]

    def _declaration(self, head, inside):
        words = outline(head)
        plain = [word for word, _ in words]
        if not plain or plain == ["(type)"]:
            return
        line = self.line_at(words[0][1])
        if plain[0] == "using" and "=" in plain and NAME.match(plain[1]):
            self.types.append((line, plain[1]))
        if not inside or plain[0] in ("using", "friend", "static_assert", "typedef", "enum", "class", "struct"):
            return
        place = parameters_at(words)
        if place is not None:
            if plain[-2:] in (["=", "default"], ["=", "delete"]):
                return
            inside.functions.append((function_name(plain, place), line))
            inside.pure += plain[-2:] == ["=", "0"]
        elif "static" not in plain:
            end = next((at for at, word in enumerate(plain) if word in ("=", "[", ":", "}")), len(plain))
            names = [word for word in plain[:end] if NAME.match(word)]
            for at, word in enumerate(plain[:end]):
                if word == "," and at:
                    inside.members.append((plain[at - 1], line))
            if names:
                inside.members.append((names[-1], line))


def outline(head):
    """The tokens of a declaration without attributes, template arguments, and parameters."""
    out = []
    at = 0
    angles = 0
    parentheses = 0
    brackets = 0
    assigned = False
    while at < len(head):
        token, offset = head[at]
        before = head[at - 1][0] if at else ""
        if token == "[" and (brackets or at + 1 < len(head) and head[at + 1][0] == "["):
            brackets += 1
        elif token == "]" and brackets:
            brackets -= 1
        elif brackets:
            pass
        elif token == "<" and not parentheses and not assigned and (angles or NAME.match(before)) \
                and before != "operator":
            angles += 1
        elif token == ">" and angles and not parentheses:
            angles -= 1
        elif token == "(":
            parentheses += 1
            if parentheses == 1 and not angles:
                out.append(head[at])
                if at + 1 < len(head) and head[at + 1][0] in ("*", "&"):
                    out.append(("(pointer)", offset))
        elif token == ")":
            parentheses -= 1
            if parentheses == 0 and not angles:
                out.append(head[at])
        elif not parentheses and not angles:
            assigned = assigned or token == "=" and before != "operator"
            out.append(head[at])
        at += 1
    if out and out[0][0] == "template":
        out = out[1:]
    return out


def parameters_at(words):
    """Where in an outline the parameters of a function begin, or None."""
    plain = [word for word, _ in words]
    for at, word in enumerate(plain):
        if word in ("=", ":") and "operator" not in plain[:at]:
            return None
        if word == "(" and at:
            if plain[at + 1:at + 2] == ["(pointer)"] and plain[at + 2:at + 4] == [")", "("]:
                return None  # a pointer to a function
            if "operator" in plain[max(0, at - 4):at]:
                # operator() has a pair of its own before its parameters.
                return at + 2 if plain[at - 1] == "operator" and plain[at + 1:at + 3] == [")", "("] else at
            if (NAME.match(plain[at - 1]) and plain[at - 1] not in NO_FUNCTION) or plain[at - 1] == '"':
                return at
    return None


def function_name(plain, place):
    """`a::b` before the parameters; `operator…` as it is written."""
    if "operator" in plain[max(0, place - 4):place]:
        at = max(at for at in range(place) if plain[at] == "operator")
        return "".join(plain[at:place])
    name = plain[place - 1]
    at = place - 1
    if at and plain[at - 1] == "~":
        name = "~" + name
        at -= 1
    while at >= 2 and plain[at - 1] == "::" and NAME.match(plain[at - 2]):
        name = plain[at - 2] + "::" + name
        at -= 2
    return name


class Baseline:
    """Lines `KEY NUMBER`; the same key may stand in several lines."""

    def __init__(self, file):
        self.file = file
        self.lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.allowed = collections.defaultdict(list)
        for line in self.lines:
            if line and not line.startswith("#"):
                key, number = line.rsplit(" ", 1)
                self.allowed[key].append(int(number))

    def compare(self, faults):
        """`faults` is [(key, number, what is said)]; returns what is wrong, in words."""
        out = []
        found = collections.defaultdict(list)
        for key, number, words in faults:
            found[key].append((number, words))
        for key, present in found.items():
            present.sort(reverse=True)
            allowed = sorted(self.allowed.get(key, []), reverse=True)
            allowed += [0] * (len(present) - len(allowed))
            out += [words for (number, words), bound in zip(present, allowed) if number > bound]
        if any(allowed != kept for allowed, kept in self.kept(faults)):
            out.append(f"{self.file.name} lists more than there is. It may shrink and never grow: run with "
                       "--update-baseline")
        return out

    def text(self):
        return "".join(line + "\n" for line in self.lines)

    def kept(self, faults):
        """For each key, the numbers listed and those that may stay: none is added or raised."""
        found = collections.defaultdict(list)
        for key, number, _ in faults:
            found[key].append(number)
        for key, allowed in self.allowed.items():
            allowed.sort(reverse=True)
            yield allowed, [min(pair) for pair in zip(allowed, sorted(found[key], reverse=True))]

    def update(self, faults):
        left = {key: kept for key, (_, kept) in zip(self.allowed, list(self.kept(faults)))}
        out = ""
        for line in self.lines:
            key = line.rsplit(" ", 1)[0]
            if not line or line.startswith("#"):
                out += line + "\n"
            elif left[key]:
                out += f"{key} {left[key].pop(0)}\n"
        self.file.write_text(out, encoding="utf-8")


def main(doc, checker_of):
    """The command line of a check; `checker_of(root)` has faults, baseline, run, summary."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    update = arguments[:1] == ["--update-baseline"]
    arguments = arguments[update:]
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        sys.exit(doc)
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    checker = checker_of(root.resolve())
    if update:
        checker.baseline().update(checker.faults)
    found = checker.run()
    for fault in found:
        print(fault)
    print(f"{pathlib.Path(sys.argv[0]).name}: {checker.summary()}, {len(found)} faults")
    sys.exit(1 if found else 0)
