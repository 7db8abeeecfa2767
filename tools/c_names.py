# SPDX-License-Identifier: MIT
"""c_names - which names a C file declares, and which it uses, for tools/check_includes and tools/house.

A reader of this tree's C, not of all C: comments and literals are blanked, directives are looked at
one by one, and declarations at file scope are taken apart by their braces and parentheses. Nothing
is preprocessed, so both sides of an #if count. What an X-macro makes inside an enum is worked out.
"""
import re
from collections import defaultdict

from c_sources import INCLUDE, without_comments

TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.]*|->|\+\+|--|##|\.\.\.|\"\"|[^\s\w]")
DIRECTIVE = re.compile(r"^[ \t]*#((?:[^\n\\]|\\\n|\\.)*)", re.MULTILINE)
DEFINE = re.compile(r"\s*define\s+(\w+)(\([^)]*\))?(.*)", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*\Z")
KEYWORDS = frozenset("""auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while _Alignas _Alignof _Atomic _Bool _Static_assert _Thread_local __thread __typeof__ typeof
    __attribute__ __asm__ __extension__ __int128 bool""".split())
WITH_PARENTHESES = ("__attribute__", "__asm__", "__typeof__", "typeof", "_Alignas", "_Static_assert", "_Atomic",
                    "ElfW")
TAGGED = ("struct", "union", "enum")
CLOSING = {"(": ")", "[": "]", "{": "}"}


def is_name(token):
    return NAME.match(token) is not None and token not in KEYWORDS


def closing(tokens, i):
    """Where the bracket that opens at i is closed."""
    depth = 0
    while i < len(tokens):
        depth += (tokens[i] in "([{") - (tokens[i] in ")]}")
        if depth == 0:
            return i
        i += 1
    return len(tokens) - 1


def opening(tokens, i):
    """Where the bracket that is closed at i opens."""
    depth = 0
    while i >= 0:
        depth += (tokens[i] in ")]}") - (tokens[i] in "([{")
        if depth == 0:
            return i
        i -= 1
    return 0


def split_at(tokens, mark):
    """The parts between marks that lie in no bracket."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class Macro:
    def __init__(self, parameters, body, line):
        self.parameters, self.body, self.line = parameters, body, line


class Struct:
    """Members of a struct or union: {name: tag of its type, or None}."""

    def __init__(self):
        self.members = {}


class CFile:
    """What is known of one file; `text` is its source."""

    def __init__(self, path, text):
        self.path = path
        self.lines = text.split("\n")
        self.includes = []    # (line, '<' or '"', what, is it under no #if)
        self.macros = {}      # all that it defines
        self.macro_lists = []  # every definition, of X too: (name, Macro)
        self.undefined = set()
        self.functions = {}   # name: (line, is it static, is it defined here)
        self.bodies = []      # of functions: (name, line, last line, tokens)
        self.variables = {}   # name: (line, is it static)
        self.constants = {}   # of enums, name: line
        self.typedefs = {}    # name: line
        self.structs = {}     # tag: Struct, of those that are defined here
        self.enums = {}       # tag: line
        self.forward = set()  # tags that are declared here
        self.types = defaultdict(set)  # name of a variable, parameter or function: {(tag, stars)}
        self.read_code(without_comments(text))

    # ---- directives

    def read_code(self, code):
        self.depth, self.code_lines = 0, []
        rest = DIRECTIVE.sub(self.take_directive, code)
        # Line numbers go with the tokens of file scope; inside a macro they do not matter.
        self.tokens, self.at_line = [], []
        for number, line in enumerate(rest.split("\n"), 1):
            for token in TOKEN.findall(line):
                self.tokens.append(token)
                self.at_line.append(number)
        self.read_scope()
        for _, macro in self.macro_lists:
            self.find_types(macro.body)
        self.find_types(self.tokens)

    def take_directive(self, match):
        what, number = match[1], match.string.count("\n", 0, match.start()) + 1
        kind = re.match(r"\s*(\w*)", what)[1]
        include = INCLUDE.match(match[0])
        define = DEFINE.match(what)
        if kind in ("if", "ifdef", "ifndef"):
            guard = kind == "ifndef" and what.rstrip().endswith("_H") and self.depth == 0
            self.depth += 0 if guard else 1
        elif kind == "endif":
            self.depth = max(0, self.depth - 1)
        elif include:
            self.includes.append((number, include[1], include[2], self.depth == 0))
        elif kind == "undef":
            self.undefined.add(what.split()[1])
        elif define:
            parameters = None if define[2] is None else TOKEN.findall(define[2][1:-1].replace(",", " "))
            macro = Macro(parameters, TOKEN.findall(define[3].replace("\\\n", " ")), number)
            self.macros[define[1]] = macro
            self.macro_lists.append((define[1], macro))
        return "\n" * match[0].count("\n")

    # ---- file scope

    def read_scope(self):
        """Cut the file's tokens into declarations."""
        i, start, tokens = 0, 0, self.tokens
        while i < len(tokens):
            token = tokens[i]
            if token == "{" and tokens[start:i] == ["extern", '""'] or token == "}" and i == start:
                start = i + 1  # of extern "C", under #ifdef __cplusplus
            elif token in CLOSING:
                end = closing(tokens, i)
                if token == "{" and self.is_body(start, i):
                    name = self.declare(start, i, True)
                    if name:
                        self.bodies.append((name, self.at_line[start], self.at_line[end], tokens[i:end + 1]))
                    start = end + 1
                i = end
            elif token == ";":
                self.declare(start, i, False)
                start = i + 1
            i += 1

    def is_body(self, start, brace):
        """Is the brace that of a function, not that of a struct or an initialiser?"""
        before = self.tokens[start:brace]
        return "(" in before and "=" not in before and before[-1] in (")",) + tuple(self.macros) and \
            not (len(before) > 1 and before[-2] in TAGGED)

    def declare(self, start, end, is_defined):
        """Note what is declared; the name of a function."""
        tokens = self.tokens[start:end]
        if not tokens or tokens[0] == "_Static_assert":
            return None
        line = self.at_line[start]
        is_static = "static" in tokens
        tokens = self.take_types(tokens, line)
        if not tokens:
            return None
        if tokens[0] == "typedef":
            self.declare_typedef(tokens, line)
            return None
        for n, part in enumerate(split_at(tokens, ",")):
            name, is_function = self.declarator(part, n == 0)
            if name is None:
                continue
            if is_function:
                before = self.functions.get(name)
                self.functions[name] = (line, is_static, is_defined or bool(before and before[2]))
                return name
            self.variables[name] = (line, is_static)
        return None

    def declare_typedef(self, tokens, line):
        open_at = tokens.index("(") if "(" in tokens else len(tokens)
        pointers = [tokens[i + 2] for i in range(len(tokens) - 2) if tokens[i:i + 2] == ["(", "*"]]
        for name in (pointers or [token for token in tokens[:open_at] if is_name(token)][-1:])[:1]:
            self.typedefs[name] = line

    def declarator(self, part, is_first):
        """(name, is it a function) of a declaration without bodies of types; (None, False) if none."""
        names, i = [], 0
        while i < len(part):
            token = part[i]
            if token == "=":
                break
            if token in WITH_PARENTHESES:
                i = closing(part, i + 1) if i + 1 < len(part) and part[i + 1] == "(" else i
            elif token in TAGGED:
                i += 1
            elif token == "(":
                if names:
                    is_known_macro = names[-1] in self.macros or names[-1].isupper()
                    return (None, False) if is_known_macro else (names[-1], True)
                inner = [t for t in part[i:closing(part, i)] if is_name(t)]  # int (*f)(...)
                return (inner[0], False) if inner else (None, False)
            elif token == "[":
                i = closing(part, i)
            elif is_name(token) and not (names and token.isupper()):  # a macro behind: attributes
                names.append(token)
            i += 1
        is_variable = names and (len(names) > 1 or self.has_type(part) or not is_first)
        return (names[-1] if is_variable else None), False

    @staticmethod
    def has_type(part):
        return any(token in KEYWORDS and token not in ("extern", "static", "const") for token in part)

    def take_types(self, tokens, line):
        """Note what types a declaration defines or declares; the tokens without the bodies."""
        if len(tokens) == 2 and tokens[0] in TAGGED:
            self.forward.add(tokens[1])
            return []
        out, i = [], 0
        while i < len(tokens):
            if tokens[i] in TAGGED:
                brace = next((k for k in range(i + 1, min(i + 8, len(tokens))) if tokens[k] == "{"), None)
                tag = next((t for t in tokens[i + 1:brace] if is_name(t)), None)
                between = tokens[i + 1:brace] if brace else []
                if brace and all(t == tag or t in "()" or t in WITH_PARENTHESES or t == "packed" or t == "aligned"
                                 or t.isdigit() for t in between):
                    end = closing(tokens, brace)
                    self.define_type(tokens[i], tag, tokens[brace + 1:end], line)
                    out += [tokens[i], tag or "anonymous_"]
                    i = end + 1
                    continue
            if tokens[i] == "{":
                i = closing(tokens, i)
            else:
                out.append(tokens[i])
            i += 1
        return [] if len(out) <= 2 and out and out[0] in TAGGED else out

    def define_type(self, kind, tag, body, line):
        if kind == "enum":
            if tag:
                self.enums[tag] = line
            for part in split_at(self.expand(body), ","):
                if part and is_name(part[0]) and part[1:2] in ([], ["="]):
                    self.constants[part[0]] = line
            return
        struct = Struct()
        self.add_members(struct, body)
        if tag:
            self.structs[tag] = struct

    def add_members(self, struct, body):
        for part in split_at(self.expand(body), ";"):
            while "{" in part:  # a struct, union or enum inside
                brace = part.index("{")
                end = closing(part, brace)
                if "enum" in part[:brace]:
                    for constant in split_at(part[brace + 1:end], ","):
                        if constant and is_name(constant[0]):
                            self.constants[constant[0]] = 0
                else:
                    inner = Struct()
                    self.add_members(inner, part[brace + 1:end])
                    struct.members.update(inner.members)
                    if is_name(part[brace - 1]):
                        self.structs[part[brace - 1]] = inner
                part = part[:brace] + part[end + 1:]
            tag = next((part[i + 1] for i in range(len(part) - 1) if part[i] in ("struct", "union")), None)
            for name in self.member_names(part):
                struct.members[name] = tag

    @staticmethod
    def member_names(part):
        for piece in split_at(part, ","):
            colon = piece.index(":") if ":" in piece else len(piece)
            piece, i, names = piece[:colon], 0, []
            while i < len(piece):
                if piece[i] == "(" and i + 1 < len(piece) and piece[i + 1] == "*":
                    names = [t for t in piece[i:closing(piece, i)] if is_name(t)][:1]
                    break
                if piece[i] in WITH_PARENTHESES and i + 1 < len(piece) and piece[i + 1] == "(":
                    i = closing(piece, i + 1)
                elif piece[i] in TAGGED:
                    i += 1
                elif piece[i] in CLOSING:
                    i = closing(piece, i)
                elif is_name(piece[i]):
                    names = [piece[i]]
                i += 1
            yield from names

    # ---- X-macros

    def expand(self, tokens, depth=0):
        """With the calls of this file's own macros replaced."""
        out, i = [], 0
        while i < len(tokens):
            macro = self.macros.get(tokens[i])
            if macro and macro.parameters and depth < 8 and i + 1 < len(tokens) and tokens[i + 1] == "(":
                end = closing(tokens, i + 1)
                for each in self.definitions_of(tokens[i], len(split_at(tokens[i + 2:end], ","))):
                    out += self.expand(replaced(each, tokens[i + 2:end]), depth + 1)
                i = end
            else:
                out.append(tokens[i])
            i += 1
        return out

    def definitions_of(self, name, n_arguments):
        """The macros of that name that take so many arguments: an X is defined anew for each list
        that is made, and which one holds at a place is not worked out."""
        every = [macro for each, macro in self.macro_lists if each == name and macro.parameters]
        return [macro for macro in every if len(macro.parameters) == n_arguments] or every[-1:]

    # ---- types of variables

    def find_types(self, tokens):
        """Of `struct tag *name`, wherever it stands: parameters, variables, functions, casts."""
        for i, token in enumerate(tokens):
            if token not in ("struct", "union") or i + 2 >= len(tokens) or not is_name(tokens[i + 1]):
                continue
            tag, k = tokens[i + 1], i + 2
            in_parentheses = False
            while k < len(tokens):
                stars = 0
                while k < len(tokens) and tokens[k] in ("*", "const", "restrict", "volatile"):
                    stars += tokens[k] == "*"
                    k += 1
                if k >= len(tokens) or not is_name(tokens[k]):
                    break
                self.types[tokens[k]].add((tag, stars))
                k, in_parentheses = self.next_declarator(tokens, k + 1)
                if in_parentheses or k is None:
                    break

    @staticmethod
    def next_declarator(tokens, k):
        """Behind the comma that ends a declarator; None when there is no further one."""
        while k < len(tokens):
            if tokens[k] in CLOSING:
                k = closing(tokens, k)
            elif tokens[k] == ",":
                after = k + 1
                while after < len(tokens) and tokens[after] == "*":
                    after += 1
                single = after + 1 < len(tokens) and is_name(tokens[after]) and tokens[after + 1] in ";,=["
                return (k + 1, False) if single else (None, False)
            elif tokens[k] in ";)}" or tokens[k] == ":":
                return None, True
            k += 1
        return None, False

    # ---- answers

    def exports(self):
        """{name: kind} of what another file can use of this header; tags are "struct x"."""
        out = {}
        for kind, names in (("macro", self.macros.keys() - self.undefined),
                            ("function", self.functions), ("variable", self.variables),
                            ("constant", self.constants), ("typedef", self.typedefs)):
            out.update({name: kind for name in names})
        out.update({f"struct {tag}": "struct" for tag in self.structs})
        out.update({f"enum {tag}": "enum" for tag in self.enums})
        return out


def replaced(macro, arguments):
    """A macro's body with these arguments, its ## done."""
    values = dict(zip(macro.parameters, split_at(arguments, ",")))
    if macro.parameters[-1] == "...":
        rest = split_at(arguments, ",")[len(macro.parameters) - 1:]
        values["__VA_ARGS__"] = [t for part in rest for t in part + [","]][:-1]
    out = []
    for token in macro.body:
        out += values.get(token, [token])
    while "##" in out:
        at = out.index("##")
        if not 0 < at < len(out) - 1:
            del out[at]
            continue
        out[at - 1:at + 2] = [out[at - 1] + out[at + 1]]
    return out
