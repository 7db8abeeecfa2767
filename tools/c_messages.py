# SPDX-License-Identifier: MIT
"""c_messages - the texts in C sources: which ones are translated, and which ones are not.

It reads tokens, as xgettext does, and knows three things more: the functions that translate what
they are given (KEYWORDS), the tables of which every text is translated where it is used (TABLES),
and both sides of `c ? "a" : "b"`."""
import os
import re

import po_file

# Functions that translate: which arguments (from 1). A new one here needs a word in its header.
KEYWORDS = {
    "_": (1,), "P_": (1,), "N_": (1,), "tmk_plural": (1, 2), "in_language": (1,), "tmk_translated_for_people": (1,),
    "tmk_say": (1,), "tmk_die": (1,), "tmk_fail": (3,), "tmk_fail_os": (4,),
    "tmk_sheet_heading": (2,), "tmk_sheet_text": (2,), "tmk_sheet_verdict": (3,),
    "tmk_summary_line": (2, 3), "tmk_fixing_add": (3,),
    "tmk_monitoring_say": (2, 3), "tmk_doctor_add": (2,), "tmk_doctor_say": (3,), "tmk_doctor_fix": (2,),
    "tmk_progress_init": (3,), "tmk_heartbeat_start": (2,),
}
# Formats of these are expanded by base/text.c, which knows neither widths nor positions.
PLAIN = ("tmk_fail", "tmk_fail_os")
# Those of one file: static functions, of which the names occur elsewhere too.
FILE_KEYWORDS = {
    "src/passes/imbalance/imbalance_line.c": {"add_words": (2,)},
    "src/passes/imbalance/imbalance_tell.c": {"tell_ranks": (2,)},
    "src/passes/verify.c": {"find": (3,), "note": (2,), "find_difference": (3,)},
    "src/cli/run/run_content.c": {"tell_content": (2,), "tell_recorded": (2,)},
    "src/cli/answers/diff_text.c": {"add_total": (2,)},
    "src/interop/weights/checkpoint_pickle.c": {"fail_machine": (3,)},
    "src/interop/weights/checkpoint_zip.c": {"fail_damaged_zip": (3,)},
    "src/cli/answers/leak_text.c": {"say_wrapped": (1, 2)},
    "src/cli/answers/process_answer.c": {"tell_doubt": (2,)},
    "src/passes/leak/leak_words.c": {"append": (2,)},
    "src/cli/cmd/cmd_doctor.c": {"say_no_proc": (3,)},
    "src/cli/fleet/fleet_text.c": {"say_rest": (3,)},
    "src/cli/query/dot_commands.c": {"refuse": (1,)},
    "src/cli/sweep/sweep_same.c": {"compare_text_lists": (2,), "say_differs": (2,)},
    "src/cli/weights/weights_text.c": {"say_weight_names": (2,)},
    "src/device/nvml.c": {"explain_driver_state": (3,)},
    "src/fleet/cluster/prometheus.c": {"fail_reader": (2,)},
    "src/inject/inject.c": {"report_refused_call": (2,)},
    "src/kit/json_in.c": {"note_json_problem": (2,), "open_level": (3,), "take_json_byte": (3,)},
    "src/sweep/results_in.c": {"complain_about_json": (2,)},
    "src/sweep/where.c": {"fail_at": (4,), "complain_about_node": (4,)},
}
# Texts at `X(TMK_ENOMEM, -1, "out of memory")` and in arrays: (file, how the array begins).
LISTS = (("src/base/error.h", "#define TMK_ERRORS(X)"), ("src/base/error.c", "os_texts[]"),
         ("src/forecast/oom_forecast_text.c", "texts[] = {"), ("src/forecast/oom_forecast_text.c", "} causes[] = {"),
         ("src/model/run.c", "names[] = {\n        [TIDEMARK_UNKNOWN]"), ("src/trace/layout.h", "#define TMK_STOPS(X)"),
         ("src/cli/cmd/cmd_ps.c", "ps_columns[PS_N_CELLS]"),
         ("src/passes/oom/oom_causes.c", "names[] = {\n        [TMK_CAUSE_DEMAND]"))
# Arrays of these types, wherever they are: every text in them is translated by who prints it.
TABLES = ("struct tmk_column",)

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|\\\n|\n|[^\s\w]',
                   re.DOTALL)
PRI = re.compile(r"PRI[diouxX](8|16|32|64|MAX|PTR)$")
DEFINED = re.compile(r'^#define\s+(\w+)\s+((?:"(?:\\.|[^"\\\n])*"\s*)+)$', re.MULTILINE)
ESCAPE = re.compile(r'\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)', re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\033"}


class Text:
    """A string as the compiler joins it: where it begins, and the calls that it is in."""

    def __init__(self, line, value, begin, end):
        self.line, self.value, self.begin, self.end = line, value, begin, end
        self.calls = ()  # [(name, number of the argument)], the innermost last
        self.before = ""  # the token before it


def unescape(literal):
    def one(match):
        what = match[1]
        if what[0] == "x":
            return chr(int(what[1:], 16))
        return chr(int(what, 8)) if what[0] in "01234567" else LETTERS.get(what, what)

    return ESCAPE.sub(one, literal[1:-1])


def defined_texts(sources):
    """{macro: text} of macros that are nothing but strings."""
    out = {}
    for text in sources.values():
        for name, value in DEFINED.findall(text.replace("\\\n", " ")):
            out[name] = "".join(unescape(part) for part in re.findall(r'"(?:\\.|[^"\\\n])*"', value))
    return out


def tokens_of(source):
    """[(token, begin, end, line)] without comments, line ends and #include."""
    out, line = [], 1
    for match in TOKEN.finditer(source):
        token = match[0]
        if token[0] not in "\n\\" and not token.startswith(("/*", "//")):
            out.append((token, match.start(), match.end(), line))
        line += token.count("\n")
    return out


def joined(tokens, i, macros):
    """The string that begins at token i: (value, number of the token behind it); None: there is none."""
    value, first = "", i
    while i < len(tokens):
        token = tokens[i][0]
        if token[0] == '"':
            value += unescape(token)
        elif PRI.match(token) and i > first:
            value += f"<{token}>"
        elif token in macros and (i == 0 or tokens[i - 1][0] != "define"):
            value += macros[token]
        else:
            break
        i += 1
    return (value, i) if i > first else None


def texts_of(source, macros=None):
    """[Text] of a source."""
    tokens, out, stack, i = tokens_of(source), [], [], 0
    while i < len(tokens):
        token, begin, _, line = tokens[i]
        found = joined(tokens, i, macros or {})
        before = tokens[i - 1][0] if i else ""
        if found and before != "include":
            value, behind = found
            text = Text(line, value, begin, tokens[behind - 1][2])
            text.calls = tuple((name, number) for name, number in stack)
            text.before = before
            out.append(text)
            i = behind
            continue
        if token in "([{":
            is_call = token == "(" and re.match(r"[A-Za-z_]", before) and before not in (
                "return", "if", "while", "sizeof", "switch", "for")
            stack.append([before if is_call else token, 1])
        elif token in ")]}" and stack:
            stack.pop()
        elif token == "," and stack:
            stack[-1][1] += 1
        elif token == ";" and stack and stack[-1][0] == "{":
            stack[-1][1] = 1
        i += 1
    return out


def is_translated(text, path=""):
    """Whether it is what a function of KEYWORDS translates. Parentheses around it change nothing."""
    here = FILE_KEYWORDS.get(path, {})
    for name, number in reversed(text.calls):
        if name == "(":
            continue
        return number in here.get(name, KEYWORDS.get(name, ()))
    return False


def region_of(source, begin):
    """(begin, end) of the list that begins so: up to the first line that does not go on."""
    at = source.index(begin)
    if begin.startswith("#define"):
        end = re.compile(r"[^\\]\n").search(source, at).end()
    else:
        end = source.index("};", at)
    return at, end


def table_regions(path, source):
    """[(begin, end)] of what is a table of texts."""
    out = [region_of(source, begin) for where, begin in LISTS if where == path]
    for kind in TABLES:
        for match in re.finditer(re.escape(kind) + r"\s+\w+(\[\w*\])*\s*=\s*\{", source):
            out.append((match.start(), source.index("};", match.start())))
    return out


def says_something(value):
    """Whether there is a word in it, conversions and macros aside."""
    bare = re.sub(r"%[-+ #0-9.*$l]*(<PRI\w+>|[a-zA-Z%])", "", value)
    return bool(re.search(r"[A-Za-z]", bare))


# Functions that are given what no one reads as a sentence: keys, names, commands, SQL, other programs' words.
MACHINE = re.compile(
    r"(tmk_tree_|tmk_json_|tmk_csv_|tmk_html_|tmk_args_|tmk_lines_|tmk_reader_info|tmk_kernel_file_read|sqlite3_|"
    r"str(n?case)?cmp|strn?cmp|strn?casecmp|str(case)?str|strpbrk|strchr|str(c?)spn|strftime|getenv|setenv|f?open$|popen|"
    r"assert|_Static_assert|static_assert|__attribute__|__asm__|el_set)")
PROSE = re.compile(r"[A-Za-z]{2,}[,.:;]? +[A-Za-z(]{2,}")


def untranslated_prose(sources, allowed=()):
    """["path:line: text"] of texts of two words or more that nothing translates. `allowed`: patterns of
    "path: text"."""
    out = []
    for path, texts in messages_of(sources)[1].items():
        for text in texts:
            bare = re.sub(r"%[-+ #0-9.*$l]*(<PRI\w+>|[a-zA-Z%])", "", text.value)
            is_prose = PROSE.search(bare) and not any(MACHINE.match(name) for name, _ in text.calls)
            if is_prose and not any(pattern.match(f"{path}: {text.value}") for pattern in allowed):
                out.append(f"{path}:{text.line}: {text.value!r}")
    return out


def sources_under(root, folders):
    out = {}
    for folder in folders:
        for path, names, files in os.walk(os.path.join(root, folder)):
            names.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    full = os.path.join(path, name)
                    with open(full, encoding="utf-8") as file:
                        out[os.path.relpath(full, root)] = file.read()
    return out


def messages_of(sources):
    """({msgid: Entry}, {path: [Text]} of what is not translated)."""
    macros, found, rest = defined_texts(sources), {}, {}
    for path, source in sources.items():
        regions = table_regions(path, source)
        one = None
        for text in texts_of(source, macros):
            in_table = any(begin <= text.begin < end for begin, end in regions)
            if not is_translated(text, path) and not in_table:
                rest.setdefault(path, []).append(text)
                continue
            if not says_something(text.value) and not re.search(r"[.:;]", text.value) and not (text.calls and text.calls[-1][0] in ("_", "P_")):
                continue
            if one and text.calls and text.calls[-1] == ("tmk_plural", 2):
                one.several = text.value
                continue
            entry = found.setdefault(text.value, po_file.Entry())
            entry.msgid = text.value
            entry.places.append(path)
            if "%" in text.value:
                entry.flags.add("c-format")
            if any(name in PLAIN for name, _ in text.calls[-1:]):
                entry.is_plain = True
            one = entry
    return found, rest
