# SPDX-License-Identifier: MIT
"""Run by each Python that test_python_lines.py finds: compiles odd source and prints, for every code
object in it, what line_at wants to know, and beside it the line of each instruction as the
interpreter itself says (PyCode_Addr2Line, for long ones from 3.10 on co_lines; 0 for none). Needs CPython 3.9 or later."""
import argparse
import ctypes
import sys
import types

LAYOUT = 39 if sys.version_info < (3, 10) else 310 if sys.version_info < (3, 11) else 311

ODD = '''
def plain(a, b):
    return (a +

            b) * [
        x for x in range(a)
        if x
    ][0]

@staticmethod
@property
def decorated(): pass

class Odd(
    object
):
    """text"""
    field: int = (
        1
    )
    def method(self, *, key=lambda:
               3):
        try:
            with open(key) as one, \\
                 open(self) as two:
                yield from one
        except (ValueError,
                KeyError) as problem:
            raise RuntimeError(
                problem
            ) from None
        finally:
            del self
        while True:
            if key: continue
            else: break

async def later(things):
    async for thing in things:
        await thing(
            [await y async for y in thing],
            *things,
            **{'a':
               1})
    async with things as t: return t

def far(x):
GAP
    y = x
GAP
    return y

def backwards(f, a):
    return f(
        1,
GAP
        a(),
    )(
        2
    )
''' + "wide = " + " + \\\n".join(f"a{i}" for i in range(300)) + "\n" + "long = [" + ", ".join(
    f"f({i})" for i in range(300)) + "]\n"
if sys.version_info >= (3, 10):
    ODD += '''
def match_it(x):
    match x:
        case {"a": [1,
                    2, *rest]}:
            return rest
        case int() | str(): return (
            x)
'''


def sources():
    yield ODD.replace("GAP", "\n" * 3)
    yield ODD.replace("GAP", "\n" * 300)
    yield ODD.replace("GAP", "\n" * 40000)
    with open(argparse.__file__, encoding="utf-8") as file:
        yield file.read()


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.argtypes = [ctypes.py_object, ctypes.c_int]
line_of.restype = ctypes.c_int


def lines_in(code):
    size = len(code.co_code)
    if size < 800 or LAYOUT == 39:  # it searches from the start for each
        return [max(0, line_of(code, at)) for at in range(0, size, 2)]
    lines = []
    for start, end, line in code.co_lines():
        lines += [line or 0] * ((end - start) // 2)
    return lines


def main():
    for source in sources():
        for code in codes_in(compile(source, "odd.py", "exec")):
            table = code.co_lnotab if LAYOUT == 39 else code.co_linetable
            size = len(code.co_code)
            print(LAYOUT, code.co_firstlineno, size, table.hex() or "-", "|", *lines_in(code))


main()
