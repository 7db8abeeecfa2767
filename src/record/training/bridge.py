# SPDX-License-Identifier: MIT
"""The Python half of record/training/bridge.c: names. Runs in the watched process, seldom and with the
interpreter's lock: when a module is called that has no name yet, when an optimizer is met, and at
steps 1, 2, 4, 8 ... to see what has changed meanwhile.

The C half has put into this namespace: instances, named, later, text, forget, expect, tag, parameter, gradients,
begin, end, await_turn, skip, hush, calm, workspaces, tensors, holder, slots, is_cache_name, caches, categories.
Nothing here keeps anything alive, nor changes an object of the program's but for one thing: the step() of
optimizer classes, GradScaler's update() and before 2.0 zero_grad() are wrapped, and restored by disarm().
"""
import atexit
import collections
import functools
import gc
import itertools
import os
import sys
import time
import types
import weakref

torch = sys.modules["torch"]
Module = torch.nn.Module
Optimizer = torch.optim.Optimizer
PARAMETER, OPTIMIZER_STATE, BUFFER = 1, 3, 8
REQUIRES_GRAD, IS_BUFFER, IS_TRAINED, IS_TIED = 1, 2, 4, 8
DEVICES = {"cpu": 0, "cuda": 1, "hip": 6, "xpu": 12}
FREE_SECONDS, SHARE = 0.3, 0.01  # of the time: for looking around, see may_look()
OPTIMIZED = 1  # of a code's flags: a function's, with its variables in slots
MOST_FRAMES, MOST_NAMES, MOST_ITEMS = 64, 2048, 256  # of a search for variables
ASK_SECONDS, EXIT_SECONDS = 0.05, 0.2  # for finding what holds tensors, see inquire()
ASK_AFTER = {16, 64, 256, 1024, 4096}  # updates of an optimizer
MOST_CELLS = 1024  # of a notebook, that get their numbers
MOST_INSIDE = 100_000  # of a container, looked through for a tensor
CONTAINERS = {list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict,
              collections.defaultdict}
CLOSED = (type, torch.Tensor, types.ModuleType, types.FrameType, types.CodeType)  # is not looked into

# Modules that only wrap another: the class that has the child by that name, None: any.
SHELLS = {("_orig_mod", None), ("_fsdp_wrapped_module", None), ("_checkpoint_wrapped_module", None),
          ("module", "DistributedDataParallel"), ("module", "DataParallel"),
          ("module", "FullyShardedDataParallel"), ("module", "DeepSpeedEngine"),
          ("_module", "GradSampleModule")}

references = {}  # id: weak reference, of modules and optimizers that C knows by address
roots = []       # (weak reference, prefix of its names)
parameters = {}  # name: (address, bytes, flags), as it was last said
names = {}       # id of a parameter: (weak reference to its module, key, name)
own_roots = set()  # ids of roots that were called, themselves or in part: see note_parameters()
updates = {}     # id of an optimizer: how often it has stepped, of those that C does not count
rounds = {}      # id of an optimizer: updates after which it was looked at last
wrapped = []     # (class, name of the method, theirs, ours)
cells = {}       # file of a notebook's cell: its number, as it was last said
own_steps = []   # weak references to an optimizer, to the function we put into it, to the one before
n_parameters = 0
armed_in = None  # the process
looked = armed_at = 0.0  # seconds: how long in all, of this thread's processor time; since when


def ended(reference):
    references.pop(reference.key, None)
    updates.pop(reference.key, None)
    rounds.pop(reference.key, None)
    own_roots.discard(reference.key)
    forget(reference.key)


def hold(thing):
    references[id(thing)] = weakref.KeyedRef(thing, ended, id(thing))


# ---- modules ----

def walk(module, name, seen):
    """The module and those in it with their names, as named_modules(), but without the shells'."""
    if id(module) in seen:
        return
    seen.add(id(module))
    yield module, name
    for key, child in list(module._modules.items()):
        if child is None:
            continue
        shell = (key, None) in SHELLS or (key, type(module).__name__) in SHELLS
        path = name if shell else f"{name}.{key}" if name else key
        yield from walk(child, path, seen)


def name_module(module, name):
    cls = type(module)
    if id(module) not in references:
        hold(module)
    named(id(module), name, f"{cls.__module__}.{cls.__qualname__}")


def live_roots():
    roots[:] = [(reference, prefix) for reference, prefix in roots if reference() is not None]
    return [(reference(), prefix) for reference, prefix in roots]


def name_roots():
    for root, prefix in live_roots():
        for module, path in walk(root, prefix, set()):
            name_module(module, path or type(module).__name__)


def has_parameters(root):
    return any(part._parameters for part, _ in walk(root, "", set()))


def chosen(candidates):
    """The first name that no other model has, and no part of the one without a prefix."""
    taken = {prefix for _, prefix in live_roots()}
    for root, prefix in live_roots():
        taken.update(root._modules if prefix == "" else ())
    for name in candidates:
        if name not in taken:
            return name
    serial = 2
    while f"{candidates[0]}#{serial}" in taken:
        serial += 1
    return f"{candidates[0]}#{serial}"


def add_root(root, prefix):
    inside = {id(module) for module, _ in walk(root, "", set())}
    before = [old_prefix for old, old_prefix in live_roots() if id(old) in inside]
    roots[:] = [pair for pair in roots if id(pair[0]()) not in inside]
    roots.append((weakref.ref(root), before[0] if before else prefix))


def main_one(models):
    """The model that gives names without a prefix: the only one, or the only one that is trained."""
    if any(prefix == "" for _, prefix in live_roots()):
        return None
    lists = trained()
    mine = [model for model in models if len(models) == 1 or not lists.isdisjoint(
        id(tensor) for part, _ in walk(model, "", set()) for tensor in part._parameters.values())]
    return mine[0] if len(mine) == 1 else None


def distinct(models):
    """Without those whose parameters are all another's, as a trace of a model."""
    seen, found = set(), []
    for model in models:
        own = {id(tensor) for part, _ in walk(model, "", set()) for tensor in part._parameters.values()} - {id(None)}
        if own - seen:
            found.append(model)
        seen |= own
    return found


def add_roots(models):
    """All but the main one have the name of the variable that holds them before their modules' names, or else
    their class's. A model that is gone leaves its name to the next."""
    main = main_one(distinct(models) or models)
    others = [model for model in models if model is not main]
    names_of = holders(others) if others or len(live_roots()) > 0 else {}
    for model in models:
        candidates = names_of.get(id(model)) or [type(model).__name__]
        add_root(model, "" if model is main else chosen(candidates))


# ---- variables ----

def variables(frame):
    """Names and values. A function's are read by C: what Python itself returns before 3.13 keeps them alive."""
    code = frame.f_code
    if not code.co_flags & OPTIMIZED or sys.version_info >= (3, 13):
        return list(frame.f_locals.items())[:MOST_NAMES]
    if sys.version_info < (3, 11):
        return []
    names_of = code.co_varnames + tuple(n for n in code.co_cellvars if n not in code.co_varnames) + code.co_freevars
    return [(name, contents(value)) for name, value in zip(names_of, slots(frame, code, len(names_of)))]


def contents(value):
    """Of a cell: a variable that functions share."""
    try:
        return value.cell_contents if type(value) is types.CellType else value
    except ValueError:
        return None


def frames_of_program():
    """Those of the calling thread that are not torch's, outermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None and len(found) < MOST_FRAMES:
        if frame.f_globals is not globals() and str(frame.f_globals.get("__name__")).split(".")[0] != "torch":
            found.append(frame)
        frame = frame.f_back
    return found[::-1]


def inside_of(name, value):
    """What a list, a dict or a plain object has, with names."""
    if type(value) in (list, tuple):
        return [(f"{name}.{i}", part) for i, part in enumerate(value[:MOST_ITEMS])]
    if type(value) is dict:
        return [(f"{name}.{key}", part) for key, part in list(value.items())[:MOST_ITEMS] if type(key) is str]
    try:
        fields = object.__getattribute__(value, "__dict__")
    except Exception:  # there is none, or a property that does not like to be asked
        return []
    others = (Module, type, types.ModuleType, types.FunctionType)
    is_plain = type(fields) is dict and not issubclass(type(value), others)
    return list(fields.items())[:MOST_ITEMS] if is_plain else []


def holders(models):
    """By id of a model: the names of variables that hold it, best first. Outer functions' variables come before
    inner ones', and variables before what is in lists and objects, unless that holds several models of which some
    have no variable: then the variable is a loop's."""
    found, parts, seen = {id(model): [] for model in models}, [], set()
    for frame in frames_of_program():
        for name, value in variables(frame) + list(frame.f_globals.items())[:MOST_NAMES]:
            if id(value) in found and not name.startswith("_") and name != "self":
                found[id(value)].append(name)
            elif (name, id(value)) not in seen:
                seen.add((name, id(value)))
                parts.append((name, value))
    have_variable = {key for key, names_of in found.items() if names_of}
    for name, value in parts:
        inside = [(path, id(part)) for path, part in inside_of(name, value) if id(part) in found]
        is_looped = len(inside) > 1 and any(key not in have_variable for _, key in inside)
        for path, key in inside:
            if not path.startswith("_"):
                found[key].insert(0 if is_looped else len(found[key]), path)
    return found


def is_being_made():
    """A module's __init__() is under way: what is called in it will be a part of that module."""
    for frame in frames_of_program():
        if frame.f_code.co_name == "__init__":
            own = variables(frame)[:1]
            if own and issubclass(type(own[0][1]), Module):  # isinstance() may ask a proxy
                return True
    return False


# ---- models ----


def is_replica(module):
    return bool(module.__dict__.get("_is_replica"))  # DataParallel's, made anew for each forward


def search(module):
    """The outermost module around this one, and other outermost ones that have parameters: a copy
    with averaged weights is never called. Takes note of optimizers on the way."""
    parents, modules = {}, []
    for thing in instances():
        if isinstance(thing, Optimizer):
            meet(thing)
        elif not is_replica(thing):
            modules.append(thing)
            for child in (thing.__dict__.get("_modules") or {}).values():
                parents.setdefault(id(child), thing)
    seen = set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module = parents[id(module)]
    return module, [other for other in modules if id(other) not in parents and other is not module and
                    has_parameters(other)]


def may_look():
    """A program that makes modules and optimizers all the time shall not wait for us all the time."""
    return looked <= FREE_SECONDS + SHARE * (time.monotonic() - armed_at)


def learn(module, is_root):
    """C has met a module that it has no name for. When we have looked around for long, it has its
    class's name."""
    global looked
    began = time.thread_time()
    if is_replica(module) and is_root:
        for part, path in walk(module, "", set()):
            name_module(part, path or type(part).__name__)
    elif may_look() and is_being_made():
        later()
    elif not may_look() or not look_around(module):
        for part, path in walk(module, type(module).__name__, set()):
            name_module(part, path)
    looked += time.thread_time() - began


def look_around(module):
    """Name the module by the model that it is in. False when it is in none, as a loss is."""
    if not module._modules and not module._parameters:
        return False  # made on the spot, as in nn.Softmax(-1)(x)
    for root, _ in live_roots():  # it may have been put into one
        if any(part is module for part, _ in walk(root, "", set())):
            name_roots()
            note_parameters()
            return True
    top, others = search(module)
    known = {id(part) for root, _ in live_roots() for part, _ in walk(root, "", set())}
    add_roots([top, *(other for other in others if id(other) not in known)])
    name_roots()
    note_parameters()
    wrap_steps()
    return True


def called(module):
    """The program has called it, for the first time."""
    if not module._modules and not module._parameters:
        return  # a loss, made anew for each batch maybe
    for root, _ in live_roots():
        if id(root) not in own_roots and any(part is module for part, _ in walk(root, "", set())):
            own_roots.add(id(root))
            note_parameters()


def find_caches(root):
    """Tell C where the caches of a model in inference are, by the names they have."""
    global looked
    if not may_look():
        return
    began = time.thread_time()
    code = getattr(getattr(type(root), "forward", None), "__code__", None)
    arguments = () if code is None else code.co_varnames[1:code.co_argcount][:64]
    places = [(weakref.ref(module), key) for module, _ in walk(root, "", set())
              for key in list(module.__dict__) if is_cache_name(key)]
    caches(id(root), sum(1 << i for i, name in enumerate(arguments) if is_cache_name(name)), places[:MOST_NAMES])
    looked += time.thread_time() - began


def watch(thing):
    """tidemark.watch(): what cannot be found by itself."""
    if isinstance(thing, Module):
        add_roots([thing])
        own_roots.add(id(thing))
        name_roots()
    elif isinstance(thing, Optimizer):
        wrap_steps()
        meet(thing)
    note_parameters()
    if isinstance(thing, Optimizer) and categories and calm():
        note_state(thing)


# ---- tensors ----

def only_devices():
    """The function modes that are on are those of torch.set_default_device(), which do not mind."""
    modes = torch.overrides._get_current_function_mode_stack()
    return all(type(mode).__module__ == "torch.utils._device" for mode in modes)


def place(tensor):
    """Device and address of its storage; (None, 0) when it has no memory of its own."""
    tensor = getattr(tensor, "_local_tensor", tensor)  # a DTensor's
    device = DEVICES.get(tensor.device.type)
    if device is None:
        return None, 0
    try:
        address = getattr(tensor, "untyped_storage", None) or tensor.storage
        return device << 8 | (tensor.device.index or 0) if device else 0, address().data_ptr()
    except (RuntimeError, ValueError, NotImplementedError, AttributeError):
        return None, 0


def say(tensor, category, name):
    device, address = place(tensor)
    if device is not None and address:
        tag(device, address, category, name)


def note_tensor(tensor, name, flags, category):
    """Without a category: another name of one that has been noted."""
    global n_parameters
    device, address = place(tensor)
    if device is None:
        return
    size = tensor.numel() * tensor.element_size()
    if parameters.get(name) == (address, size, flags):
        return
    parameters[name] = address, size, flags
    n_parameters += 1
    dtype = str(tensor.dtype).replace("torch.", "")
    parameter(n_parameters, name, flags, device, address, size, f"{dtype} {list(tensor.shape)}")
    if address and category is not None:
        tag(device, address, category, name)


def trained():
    """Ids of what optimizers have on their lists."""
    found = set()
    for reference in list(references.values()):
        thing = reference()
        if isinstance(thing, Optimizer):
            for group in thing.param_groups:
                found.update(map(id, group["params"]))
    return found


def parameter_of(module, key):
    """By a weak reference to the module: torch does not get on with those to tensors."""
    module = module()
    return None if module is None else module._parameters.get(key)


def name_of(tensor):
    """A parameter's, None: it is none that we know."""
    module, key, name = names.get(id(tensor), (None, None, None))
    return name if module is not None and parameter_of(module, key) is tensor else None


def note_parameters():
    if not categories or not calm():
        return
    lists = trained()
    names.clear()
    others = set()  # models that are not called, by another thread maybe: their gradients are let alone
    for root, prefix in live_roots():
        mine = set()  # ids of the tensors that this model has given names to
        for module, path in walk(root, prefix, set()):
            start = path + "." if path else ""
            for key, tensor in list(module._parameters.items()):
                if tensor is None:
                    continue
                flags = tensor.requires_grad * REQUIRES_GRAD | (id(tensor) in lists) * IS_TRAINED
                if id(tensor) in names:  # the block has the first name; another model's is none
                    if id(tensor) in mine:
                        note_tensor(tensor, start + key, flags | IS_TIED, None)
                    continue
                mine.add(id(tensor))
                names[id(tensor)] = weakref.ref(module), key, start + key
                if id(root) not in own_roots:
                    others.add(start + key)
                note_tensor(tensor, start + key, flags, PARAMETER)
            for key, tensor in list(module._buffers.items()):
                if tensor is not None:
                    is_tied = id(tensor) in mine
                    mine.add(id(tensor))
                    note_tensor(tensor, start + key, IS_BUFFER | is_tied * IS_TIED, None if is_tied else BUFFER)
    found = [(*entry, parameter_of(*entry[:2])) for entry in names.values()]
    gradients([(module, key, name, place(tensor)[0] or 0)
               for module, key, name, tensor in found
               if tensor is not None and tensor.requires_grad and name not in others])


def note_masters(optimizer):
    """Parameters that are in no module: an optimizer's own copies in full precision, or tensors that
    are trained themselves."""
    is_mixed = any(getattr(parameter_of(module, key), "dtype", None) in (torch.float16, torch.bfloat16)
                   for module, key, _ in names.values())
    for i, group in enumerate(optimizer.param_groups):
        for k, tensor in enumerate(group["params"]):
            if name_of(tensor) is not None:
                continue
            name = f"{type(optimizer).__name__}.{i}.{k}"
            is_master = is_mixed and tensor.dtype is torch.float32
            say(tensor, OPTIMIZER_STATE if is_master else PARAMETER, name)


def note_state(optimizer):
    for tensor, state in list(optimizer.state.items()):
        if not isinstance(state, dict):
            continue
        name = name_of(tensor) or "?"
        for key, value in list(state.items()):
            for part in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(part, torch.Tensor):
                    say(part, OPTIMIZER_STATE, f"{name}.{key}")
    note_masters(optimizer)


# ---- who holds tensors ----

def inquire(seconds):
    """Put on record which blocks Python's tensors have, and for kinds of which there are many, what holds
    them. Longer than this it takes only by what one look at all objects takes."""
    end = time.monotonic() + seconds
    if not categories or not calm():
        return
    samples = tensors()
    for tensor, text in name_holders(samples, end) if samples else ():
        device, address = place(tensor)
        if device is not None and address:
            holder(device, address, text)


def name_holders(samples, end):
    """Go from the program's variables through what they refer to, the nearest first, until the tensors are
    found. No code of the program's runs meanwhile."""
    wanted, seen, found, direct = {id(tensor) for tensor in samples}, set(), {}, {}
    queue, n = collections.deque(), 0
    for thing, name in all_variables():
        if id(thing) in wanted:
            direct[id(thing)] = f"{type(thing).__name__} {name}"
        elif may_hold(thing, seen):
            queue.append((thing, f"{type(thing).__name__} {name}"))
    while queue and len(found) < len(wanted):
        for thing, name in referents(*queue.popleft()):
            n += 1
            if n % 1024 == 0 and time.monotonic() > end:
                queue.clear()
                break
            if id(thing) in wanted:
                found.setdefault(id(thing), name)
            elif may_hold(thing, seen):
                queue.append((thing, name))
    # the last counts of those that one line of code made
    return [(tensor, names[id(tensor)]) for names in (direct, found) for tensor in samples if id(tensor) in names]


def may_hold(thing, seen):
    """Whether to look into it. `seen` has what was looked into."""
    if not gc.is_tracked(thing) or id(thing) in seen or issubclass(type(thing), CLOSED):
        return False
    seen.add(id(thing))
    return True


def referents(thing, name):
    """What a thing refers to, and what is said of that: attributes have names of their own."""
    if type(thing) in CONTAINERS:
        things = thing.values() if issubclass(type(thing), dict) else thing
        return [(child, name) for child in list(itertools.islice(things, MOST_INSIDE))]
    if type(thing) is types.FunctionType:
        return [(child, name) for child in (thing.__defaults__, thing.__kwdefaults__, thing.__closure__)]
    try:
        attributes = object.__getattribute__(thing, "__dict__")
    except Exception:  # there is none, or a property that does not like to be asked
        attributes = None
    if type(attributes) is dict and type(thing).__module__ not in ("builtins", "functools"):
        return [(child, f"{type(child).__name__} `{key}` of {type(thing).__name__}")
                for key, child in list(attributes.items())]
    return [(child, name) for child in gc.get_referents(thing)]


def all_variables():
    """The program's own variables: [(value, "`name` in function(), file:line")]."""
    places = []
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if type(module) is types.ModuleType else None
        if module is sys.modules.get("__main__"):
            file = file or os.path.join("/", sys.argv[0])  # Python takes it away before the end
        if is_users(file):
            for name, value in list(vars(module).items()):
                places.append((value, f"`{name}` in {os.path.basename(file)}"))
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            code = frame.f_code
            if code.co_flags & OPTIMIZED and is_users(code.co_filename):
                where = f"{code.co_name}(), {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
                for name, value in variables(frame):
                    places.append((value, f"`{name}` in {where}"))
            frame = frame.f_back
    return places


def is_users(file):
    return bool(file) and not file.startswith(("<", os.path.dirname(os.__file__))) and "-packages" + os.sep not in file


def at_exit():
    try:
        if os.getpid() == armed_in:
            inquire(EXIT_SECONDS)
    except Exception:  # the program has ended well, whatever we could not find out
        pass


# ---- optimizers ----

def meet(optimizer):
    if id(optimizer) not in references and not is_shell(optimizer) and hasattr(optimizer, "state"):
        hold(optimizer)
        expect(id(optimizer))
        wrap_own(optimizer)


def is_shell(optimizer):
    return isinstance(optimizer.__dict__.get("optimizer"), Optimizer)  # accelerate's, for one


def refresh(optimizer):
    """It has stepped once, twice, four, eight ... times."""
    global looked
    began = time.thread_time()
    rounds[id(optimizer)] = n = 2 * rounds.get(id(optimizer), 0) or 1
    wrap_steps()
    if categories and calm() and may_look():
        note_parameters()
        note_state(optimizer)
        workspaces()
        if n in ASK_AFTER and may_ask:
            inquire(ASK_SECONDS)
        looked += time.thread_time() - began


def updated(optimizer):
    """It has stepped, and is one of more than C counts."""
    n = updates[id(optimizer)] = updates.get(id(optimizer), 0) + 1
    if n & (n - 1) == 0:
        refresh(optimizer)


def thing_at(address):
    reference = references.get(address)
    return None if reference is None else reference()


def find_turns(addresses, roots):
    """Of these optimizers, tell C those that train a model that this step has called (`roots`) and that has had
    no gradient yet."""
    called_ones = set()
    for root in filter(None, map(thing_at, roots)):
        for module, _ in walk(root, "", set()):
            called_ones.update(map(id, module._parameters.values()))
    for address in addresses:
        optimizer = thing_at(address)
        tensors = [t for group in getattr(optimizer, "param_groups", ()) for t in group["params"]]
        plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors)
        if plain and any(id(t) in called_ones for t in tensors) and all(t.grad is None for t in tensors):
            await_turn(address)


def wrap(step):
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        if compiling is not None and compiling() or is_shell(self):
            return step(self, *args, **kwargs)
        if id(self) not in references:
            meet(self)
        token, returned = begin(self), False
        if token is None:
            return step(self, *args, **kwargs)
        try:
            result = step(self, *args, **kwargs)
            returned = True
            return result
        finally:
            end(self, token, returned)

    return wrapper


def wrap_own(optimizer):
    """A schedule puts a step() into the optimizer itself. When that was before our time, the class's is
    called from inside of it, and it is not ours."""
    step = optimizer.__dict__.get("step")
    if step is None or is_ours(step):
        return
    reference = weakref.ref(optimizer)
    if type(step) is types.MethodType:
        ours = types.MethodType(wrap(step.__func__), step.__self__)
    else:
        wrapped_step = wrap(lambda self, *args, **kwargs: step(*args, **kwargs))

        @functools.wraps(step)
        def ours(*args, **kwargs):
            return wrapped_step(reference(), *args, **kwargs)

    own_steps.append((reference, weakref.ref(getattr(ours, "__func__", ours)), weakref.ref(
        getattr(step, "__func__", step))))
    optimizer.step = ours


def unwrap_own():
    for reference, ours, theirs in own_steps:
        optimizer, before = reference(), theirs()
        step = None if optimizer is None else optimizer.__dict__.get("step")
        if before is None or step is None or getattr(step, "__func__", step) is not ours():
            continue
        optimizer.step = types.MethodType(before, optimizer) if type(step) is types.MethodType else before
    own_steps.clear()


def is_ours(step):
    ours = [one[3] for one in wrapped] + [one[1]() for one in own_steps]
    step = getattr(step, "__func__", step)
    while step is not None:
        if any(step is one for one in ours):
            return True
        step = getattr(step, "__wrapped__", None)
    return False


def wrap_steps():
    classes = [Optimizer]
    while classes:
        cls = classes.pop()
        classes.extend(cls.__subclasses__())
        step = cls.__dict__.get("step")
        if type(step) is not type(wrap) or is_ours(step):
            continue
        wrapped.append((cls, "step", step, wrap(step)))
        cls.step = wrapped[-1][3]


def wrap_update(update):
    """GradScaler.update(): a step whose gradients were not finite ends without the optimizer."""
    @functools.wraps(update)
    def wrapper(self, *args, **kwargs):
        try:
            return update(self, *args, **kwargs)
        finally:
            if self.is_enabled():
                skip()

    return wrapper


def wrap_zero_grad(zero_grad):
    """Before 2.0 it makes tensors, for the profiler. The next step does not begin with those."""
    @functools.wraps(zero_grad)
    def wrapper(self, *args, **kwargs):
        hush(1)
        try:
            return zero_grad(self, *args, **kwargs)
        finally:
            hush(0)

    return wrapper


def wrap_old():
    zero_grad = Optimizer.__dict__.get("zero_grad")
    if torch.__version__.startswith("1.") and type(zero_grad) is type(wrap) and not is_ours(zero_grad):
        wrapped.append((Optimizer, "zero_grad", zero_grad, wrap_zero_grad(zero_grad)))
        Optimizer.zero_grad = wrapped[-1][3]


def wrap_scaler():
    module = sys.modules.get("torch.amp.grad_scaler") or sys.modules.get("torch.cuda.amp.grad_scaler")
    cls = getattr(module, "GradScaler", None)
    update = None if cls is None else cls.__dict__.get("update")
    if type(update) is type(wrap) and not is_ours(update):
        wrapped.append((cls, "update", update, wrap_update(update)))
        cls.update = wrapped[-1][3]


def reset():
    global looked, armed_at
    looked, armed_at = 0.0, time.monotonic()
    for things in (references, roots, parameters, names, own_roots, updates, rounds, cells):
        things.clear()


# ---- notebooks ----

def shell():
    """IPython's, where the program runs in one."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return ask() if ask else None


def note_cells(*_):
    """Jupyter names a cell's code by a hash of its text. Tell the trace the cells' numbers."""
    try:
        for file, number in list(shell().compile._filename_map.items()):
            if len(cells) < MOST_CELLS and cells.get(file) != number and "/ipykernel_" in file:
                cells[file] = number
                text(f"In [{number}]\t{file}")
    except Exception:  # another IPython than those that we know: a cell has the name of its file
        pass


def watch_cells(watches):
    try:
        events = shell().events
        (events.register if watches else events.unregister)("post_run_cell", note_cells)
    except Exception:  # none, or it knows nothing of our function
        pass


def arm():
    """The function, the method and the classes that C is to watch."""
    global armed_in, may_ask
    reset()
    may_ask = os.environ.get("TIDEMARK_ASK", "1") != "0"
    if armed_in is None and may_ask:
        atexit.register(at_exit)
    armed_in = os.getpid()
    watch_cells(True)
    wrap_steps()
    wrap_scaler()
    wrap_old()
    engine = torch._C._ImperativeEngine
    # By its own name: __call__ may be another's for a while, torch.fx's when it traces.
    call = Module.__dict__.get("_wrapped_call_impl") or Module.__dict__["_call_impl"]
    return call, engine.__dict__["run_backward"], torch.Tensor, getattr(torch._C, "_set_grad_enabled", None)


def disarm():
    global armed_in
    atexit.unregister(at_exit)
    armed_in = None
    watch_cells(False)
    unwrap_own()
    for cls, name, theirs, ours in wrapped:
        if cls.__dict__.get(name) is ours:
            setattr(cls, name, theirs)
    wrapped[:] = [one for one in wrapped if one[0].__dict__.get(one[1]) is not one[2]]
    reset()
