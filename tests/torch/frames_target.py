# SPDX-License-Identifier: MIT
"""Called by test_frames.py: reports blocks from many kinds of call sites through the hook that torch
would call, and prints what its own traceback was at each."""
import _thread
import asyncio
import ctypes
import functools
import itertools
import json
import random
import sys
import threading
import time
import weakref

from frames_site import hook, process, site, stacks


class Kläße:
    def method(self):
        site(1)

    @staticmethod
    def static():
        site(2)

    @classmethod
    def of_class(cls):
        site(3)

    @property
    def value(self):
        site(4)
        return 1

    def __enter__(self):
        site(5)
        return self

    def __exit__(self, *unused):
        site(6)


def generator():
    site(10)
    yield 1
    (
        site(11)
    )
    yield 2


def delegating():
    yield from generator()


async def coroutine():
    site(20)
    await asyncio.sleep(0)
    site(21)


async def asynchronous():
    async with Context():
        async for _ in ticks():
            await coroutine()


class Context:
    async def __aenter__(self):
        site(22)

    async def __aexit__(self, *unused):
        site(23)


async def ticks():
    site(24)
    yield 1


def decorated(function):
    def wrapper(*args):
        return function(*args)
    return wrapper


@decorated
def spread_over(
        size):
    return site(
        size

    )


def 函数():
    site(31)


def with_exception():
    try:
        raise ValueError
    except ValueError:
        site(32)
    finally:
        site(33)


def long_code():
    exec(compile("\n" * 5 + "x = 0\n" + "x += 1\n" * 3000 + "site(34)\n", "<long>", "exec"), globals())


def every_site():
    exec(compile("site(40)\n", "", "exec"), globals())
    Kläße().method()
    Kläße.static()
    Kläße.of_class()
    assert Kläße().value == 1
    with Kläße():
        site(7)
    list(delegating())
    asyncio.run(asynchronous())
    spread_over(30)
    函数()
    with_exception()
    (lambda: site(35))()
    [site(36) for _ in range(1)]
    sorted([1], key=lambda _: site(37) or 0)
    long_code()
    exec("def inner():\n    site(38)\n\n\ninner()")
    thread = threading.Thread(target=lambda: site(39))
    thread.start()
    thread.join()
    print(json.dumps({"stacks": stacks, "has_qualname": sys.version_info >= (3, 11)}))


def wanderers():
    """Functions with frames of many sizes, each of which goes on to others from three of its lines, or from a
    generator's."""
    source = "def f{i}(plan):\n    {locals} = {i}\n    if not plan:\n        return site(take())\n" \
             "    go, rest = functions[plan[0] % len(functions)], plan[1:]\n" \
             "    if plan[0] % 3 == 0:\n        return go(rest)\n    if plan[0] % 3 == 1:\n        return go(rest)\n" \
             "    return {last}\n"
    functions, numbers, lock = [], itertools.count(100), threading.Lock()

    def take():
        with lock:
            return next(numbers)

    space = {"functions": functions, "site": site, "take": take}
    for i in range(15):
        several = " = ".join(f"v{k}" for k in range(1 + i * i % 23))
        last = {4: "next(go(rest) for _ in (1,))", 9: "sorted([1], key=lambda _: go(rest) or 0)"}.get(i, "go(rest)")
        exec(compile(source.format(i=i, locals=several, last=last), f"<f{i}>", "exec"), space)
        functions.append(space[f"f{i}"])
    return functions


def wander():
    """Stacks that grow and shrink at random, to within each other's places, in more threads than share what is known of
    the last ones."""
    functions = wanderers()
    until_watched()

    def go(seed):
        chance = random.Random(seed)
        plan = []
        for _ in range(80):
            del plan[chance.randrange(len(plan) + 1):]
            plan += [chance.randrange(1000) for _ in range(chance.choice([0, 1, 2, 5, 20, 90]))][:110 - len(plan)]
            functions[seed % len(functions)](list(plan))

    threads = [threading.Thread(target=go, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    go(12)
    for thread in threads:
        thread.join()
    print(json.dumps({"stacks": stacks, "has_qualname": sys.version_info >= (3, 11)}))


def reuse_watched():
    """And so many that they are looked at again."""
    until_watched()
    reuse()


def ending():
    """C asks for a block while a thread's last function goes: none is left that has asked."""
    class Thing:
        pass

    class Reference(weakref.ref):
        _as_parameter_ = 0  # that the function of C's can be called with one

    def last(size):
        thing = Thing()
        things.append(Reference(thing, functools.partial(hook, None, 4096 * size, size)))

    things = []
    until_watched()
    for size in (11, 12, 13):
        _thread.start_new_thread(last, (size,))
        while len(things) < size - 10 or things[-1]() is not None:
            time.sleep(0.001)
    time.sleep(0.05)
    print("{}")


def reuse(n=2000):
    functions = {}
    for size in range(1, n + 1):
        space = {"hook": hook}
        name = f"f{size}"
        exec(f"def {name}():\n    hook(None, {4096 * size}, {size})\n", space)
        call(space[name])
        functions[size] = name
        del space
    print(json.dumps({"functions": functions}))


def reuse_seldom():
    """So few that Python goes on telling of codes that go."""
    until_watched()
    reuse(6)


def reuse_unwatched():
    """Others watch codes already, as many as can."""
    for _ in range(8 if n_watchers() is not None else 0):
        assert ctypes.pythonapi.PyCode_AddWatcher(WATCHER) >= 0
    reuse()


WATCHER = ctypes.cast(process.abs, ctypes.c_void_p)  # a function of C's that takes the event and is content


def until_watched():
    """The first block has stacks looked for; then Python is asked to tell of codes that go, where it can."""
    hook(None, 4096 * 5000, 5000)
    deadline = time.monotonic() + 10
    while sys.version_info[:2] in ((3, 12), (3, 13)) and n_watchers() == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def n_watchers():
    """Of codes; None: this Python has none."""
    if not hasattr(ctypes.pythonapi, "PyCode_AddWatcher"):
        return None
    number = ctypes.pythonapi.PyCode_AddWatcher(WATCHER)
    assert ctypes.pythonapi.PyCode_ClearWatcher(number) == 0
    return number


def anew():
    """One function, made anew 30,000 times: to CPython each is another."""
    source = "def same():\n    hook(None, 4096, 21)\n"
    for _ in range(30000):
        space = {"hook": hook}
        exec(source, space)
        space["same"]()
    print("{}")


def call(function):
    def around():
        function()
    around()


def deep(n):
    if n == 0:
        hook(None, 4096, 7)
    else:
        deep(n - 1)


def native():
    """A thread made by C alone, with a name of its own, calls the hook."""
    helper = ctypes.CDLL(sys.argv[2])
    helper.call_in_thread(ctypes.cast(hook, ctypes.c_void_p), 4096, 9, b"of-c-alone")


def backward():
    """As torch on CUDA does it: this thread calls the engine, whose own threads do the work."""
    helper = ctypes.CDLL(sys.argv[2])
    helper.run_backward.restype = ctypes.c_long
    assert helper.run_backward() == 255
    inner = threading.Thread(target=checkpointed, args=(helper,))
    inner.start()
    inner.join()
    for name, size in ((b"pt_autograd_0", 13), (b"another", 15)):
        helper.call_in_thread(ctypes.cast(hook, ctypes.c_void_p), 4096, size, name)
    print("{}")


def checkpointed(helper):
    """What checkpointing does on autograd's own thread: an inner backward()."""
    ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)
    assert helper.run_backward() == 255


def subinterpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    code = """
import ctypes
def inside():
    hook = ctypes.CDLL(None)._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm
    hook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    hook(None, 4096, 11)
inside()
"""
    ran = "yes"
    try:
        number = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
        problem = interpreters.run_string(number, code)
        ran = "yes" if problem is None else str(problem)
    except Exception as reason:
        ran = repr(reason)
    print(json.dumps({"ran": ran}))


def many_keys():
    """Other libraries have more keys of threads' values than glibc keeps near."""
    for _ in range(40):
        assert process.pthread_key_create(ctypes.byref(ctypes.c_uint()), None) == 0
    every_site()


mode = sys.argv[1] if len(sys.argv) > 1 else "every_site"
if mode == "deep":
    sys.setrecursionlimit(10000)
    deep(300)
    print("{}")
elif mode == "native":
    native()
    print("{}")
else:
    globals()[mode]()
