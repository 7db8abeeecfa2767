# SPDX-License-Identifier: MIT
"""Run scripts, not watched by tidemark, and write down between their blocks who is at work.

    LD_PRELOAD=counter.so python3 owners_oracle.py

Reads lines of JSON: {"program": [SCRIPT, ARGS...], "log": FILE, "out": FILE, "nodes": false}, runs
each in a child (torch is imported only once) and answers with the child's status.

The truth for the tests of owners, found in another way than ours: Python functions put around
Module.__call__, the autograd engine and optimizers write notes into the counter's log (counter.c),
so that the log has blocks and ranges in order. With nodes, the end of every autograd node is noted
too, with the module whose forward made it; the graph is walked for that from each module's result.
Hooks of nodes make gradients live a moment longer, so moments of frees count only without them.

Notes: "tail": the program has ended; what came after the last update is no step; "due N": the next step begins with the next block, or the next stage; "hush 1" and "hush 0": not
with blocks between these, which torch 1's zero_grad() makes for the profiler; "push stage|module NAME" and "pop stage|module"; "tag CATEGORY ADDRESS NAME"; "node
MODULE" at a node's end, "node =MODULE" when that node puts a gradient into a parameter of the module.
"""
import ctypes
import gc
import json
import os
import runpy
import sys
import traceback
import weakref

import torch

counter = ctypes.CDLL(None)
PREFIXES = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def note(*words):
    counter.counter_note(" ".join(map(str, words)).encode())


def plain_name(name):
    parts = name.split(".")
    return ".".join(part for part in parts if part + "." not in PREFIXES)


class Owners:
    """What is open now, and what modules are called."""

    def __init__(self, with_nodes):
        self.with_nodes = with_nodes
        self.names = weakref.WeakKeyDictionary()  # of modules
        self.parameters = {}     # id(parameter) -> (name, weak reference)
        self.modules = []        # open module calls, outermost first
        self.stages = []         # open stages
        self.n_steps = 0
        self.has_main = self.is_updated = self.has_failed = False

    # ---- steps and stages

    def begin(self):
        if self.n_steps == 0:
            self.new_step()

    def new_step(self):
        note("due", self.n_steps)
        self.n_steps += 1
        self.has_failed = False

    def open_stage(self, name):
        note("push stage", name)
        self.stages.append(name)

    def close_stage(self):
        note("pop stage")
        self.stages.pop()

    def close_forward(self):
        """A training forward stays open behind its call, for the loss."""
        if not self.modules and self.stages and self.stages[-1] == "forward":
            self.close_stage()

    # ---- modules

    def learn(self, root):
        """Names of a root's modules and parameters."""
        if root in self.names:
            return
        prefix = self.prefix_of(root)
        n_known = len(self.parameters)
        for name, module in root.named_modules():
            name = plain_name(name)
            self.names[module] = prefix + name if name else prefix[:-1] or type(module).__name__
        for name, parameter in root.named_parameters():
            self.parameters[id(parameter)] = (prefix + plain_name(name), weakref.ref(parameter))
        self.tag_parameters(root, prefix)
        if len(self.parameters) > n_known:
            self.learn_others()

    def prefix_of(self, root):
        """The only model, or the only one that is trained, has none; others that of the script's variable."""
        models = self.models()
        lists = {id(tensor) for thing in gc.get_objects() if issubclass(type(thing), torch.optim.Optimizer)
                 for group in thing.param_groups for tensor in group["params"]}
        mine = models if len(models) == 1 else \
            [model for model in models if any(id(tensor) in lists for tensor in model.parameters())]
        if not any(root is model for model in models):  # it has no parameters
            return "" if not models else type(root).__name__ + "."
        if not self.has_main and len(mine) == 1 and mine[0] is root:
            self.has_main = True
            return ""
        variables = [name for name, value in vars(sys.modules["__main__"]).items() if value is root]
        return (variables or [type(root).__name__])[0] + "."

    @staticmethod
    def models():
        modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
        inside = {id(child) for module in modules for child in module.children()}
        return [module for module in modules
                if id(module) not in inside and next(module.parameters(), None) is not None]

    def learn_others(self):
        """Models that are there, but have not been called."""
        for module in self.models():
            if module not in self.names:
                self.learn(module)

    def tag_parameters(self, root, prefix):
        for name, buffer in root.named_buffers():
            self.tag("buffer", buffer, prefix + plain_name(name))
        for name, parameter in root.named_parameters():
            self.tag("parameter", parameter, prefix + plain_name(name))

    @staticmethod
    def tag(category, tensor, name):
        note("tag", category, tensor.storage().data_ptr(), name)

    def call(self, original, module, args, kwargs):
        is_root = not self.modules
        mine = is_root and self.enter_root(module, args, kwargs)
        name = self.names.get(module, type(module).__name__)
        if self.with_nodes:
            self.own_nodes((args, tuple(kwargs.values())), "" if is_root else self.modules[-1])
        note("push module", name)
        self.modules.append(name)
        try:
            result = original(module, *args, **kwargs)
            if self.with_nodes:
                self.own_nodes(result, name)
            return result
        except BaseException:
            mine = is_root
            self.has_failed |= is_root
            raise
        finally:
            note("pop module")
            self.modules.pop()
            if mine:
                self.close_stage()

    def enter_root(self, module, args, kwargs):
        """Open the stage of a call that is in no other; True: it ends with the call."""
        self.learn(module)
        if self.stages and self.stages[-1] == "backward":
            self.open_stage("forward")
            return True
        self.close_forward()
        self.begin()
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                self.tag("input", value, f"input[{i}]")
        for name, value in kwargs.items():
            if isinstance(value, torch.Tensor):
                self.tag("input", value, name)
        is_eval = not torch.is_grad_enabled() or not module.training
        self.open_stage("eval" if is_eval else "forward")
        return is_eval

    # ---- backward

    def backward(self, original, args, kwargs):
        self.close_forward()
        self.begin()
        outside, self.modules = self.modules, []
        if self.with_nodes:
            self.own_nodes(args[0], "")
        self.open_stage("backward")
        try:
            return original(*args, **kwargs)
        finally:
            self.close_stage()
            self.modules = outside
            self.tag_gradients()

    def tag_gradients(self):
        for name, reference in self.parameters.values():
            parameter = reference()
            if parameter is not None and parameter.grad is not None:
                self.tag("gradient", parameter.grad, name)

    def name_of(self, parameter):
        name, reference = self.parameters.get(id(parameter), ("?", lambda: parameter))
        return name if reference() is parameter else "?"

    def own_nodes(self, value, name):
        """Nodes that nobody has yet, from these tensors on, are this module's."""
        nodes = []
        if isinstance(value, torch.Tensor):
            nodes = [value.grad_fn]
        elif isinstance(value, (tuple, list)):
            for part in value:
                self.own_nodes(part, name)
        while nodes:
            node = nodes.pop()
            if node is None or "owner" in node.metadata:
                continue
            node.metadata["owner"] = name
            owner = name
            if hasattr(node, "variable"):
                owner = "=" + self.name_of(node.variable).rpartition(".")[0]
            node.register_hook(lambda *_, owner=owner: note("node", owner))
            nodes.extend(following for following, _ in node.next_functions)

    # ---- optimizers

    def optimize(self, original, optimizer, args, kwargs):
        self.close_forward()
        self.begin()
        name = type(optimizer).__name__
        outside, self.modules = self.modules, []
        self.open_stage("optimizer")
        note("push module", name)
        try:
            result = original(optimizer, *args, **kwargs)
        except BaseException:
            self.end_optimizer(optimizer, outside)
            raise
        self.end_optimizer(optimizer, outside)
        self.is_updated = True
        self.new_step()
        return result

    def end_optimizer(self, optimizer, outside):
        self.close_forward()
        note("pop module")
        self.close_stage()
        self.modules = outside
        self.tag_state(optimizer)

    def tag_state(self, optimizer):
        for parameter, state in optimizer.state.items():
            name = self.name_of(parameter)
            for key, value in state.items():
                for part in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(part, torch.Tensor):
                        self.tag("optimizer_state", part, f"{name}.{key}")


class Engine:
    """Stands for torch's engine."""

    def __init__(self, owners, engine):
        self.owners, self.engine = owners, engine

    def run_backward(self, *args, **kwargs):
        return self.owners.backward(self.engine.run_backward, args, kwargs)

    def __getattr__(self, name):
        return getattr(self.engine, name)


def put_in(owners):
    call = torch.nn.Module.__call__
    torch.nn.Module.__call__ = lambda module, *args, **kwargs: owners.call(call, module, args, kwargs)
    torch.autograd.Variable._execution_engine = Engine(owners, torch.autograd.Variable._execution_engine)
    init = torch.optim.Optimizer.__init__

    def of_class(optimizer, *args, **kwargs):
        step = type(optimizer).step  # torch puts a function of its own around it
        if not hasattr(step, "hooked"):
            type(optimizer).step = lambda self, *args, **kwargs: owners.optimize(step, self, args, kwargs)
        init(optimizer, *args, **kwargs)

    torch.optim.Optimizer.__init__ = of_class
    zero_grad = torch.optim.Optimizer.zero_grad

    def quiet(self, *args, **kwargs):
        note("hush", 1)
        zero_grad(self, *args, **kwargs)
        note("hush", 0)

    torch.optim.Optimizer.zero_grad = quiet


def run(task):
    """In the child."""
    output = os.open(task["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.argv = os.fdopen(1, "w", closefd=False), task["program"]
    counter.counter_open(os.fsencode(task["log"]))
    owners = Owners(task["nodes"])
    put_in(owners)
    runpy.run_path(sys.argv[0], run_name="__main__")
    if owners.is_updated and not owners.has_failed:
        note("tail")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(json.loads(line))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


main()
