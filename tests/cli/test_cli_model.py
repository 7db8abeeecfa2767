# SPDX-License-Identifier: MIT
"""`tidemark model`: files of weights against numpy's and torch's own numbers, and files that are
none.

The safetensors files are written here, byte by byte, from the format's description.
"""
import json
import math
import os
import pickle
import re
import resource
import struct
import subprocess
import zipfile
from collections import OrderedDict

import pytest
from test_golden import BUILD, ROOT, environment

np = pytest.importorskip("numpy")
TIDEMARK = os.path.join(BUILD, "tidemark")


def model(*args, level=None):
    env = dict(environment(), **({"TIDEMARK_SCAN": level} if level else {}))
    return subprocess.run([TIDEMARK, "model", *map(str, args)], capture_output=True, text=True,
                          timeout=240, check=False, env=env)


def answer(*args, exit_status=0, level=None):
    done = model(*args, "--json", level=level)
    assert done.returncode == exit_status, done.stderr
    return json.loads(done.stdout)


def by_name(found):
    return {tensor["name"]: tensor for tensor in found["tensors_by_name"]}


def write_safetensors(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- every type, every build of the loops

def small_float(code, exponent_bits, mantissa_bits, has_inf):
    """The value of a float's bits, from the definition of its format."""
    bias = (1 << (exponent_bits - 1)) - 1
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    if has_inf and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if not has_inf and exponent == (1 << exponent_bits) - 1 and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa * 2.0 ** -mantissa_bits) * 2.0 ** (exponent - bias)


def table(exponent_bits, mantissa_bits, has_inf=True):
    return np.array([small_float(code, exponent_bits, mantissa_bits, has_inf)
                     for code in range(1 << (1 + exponent_bits + mantissa_bits))])


def one_sided(rng):
    """Floats of 8 and 16 bits, none of them zero: of one sign each, and both with a few that are not finite far apart; as
    cases()."""
    every16 = np.arange(65536, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # NaNs
        bf16 = (every16.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    for name, dtype, kind, values, least, top in (
            ("bf16", "BF16", np.uint16, bf16, 2.0 ** -126, 0x4200),
            ("f16", "F16", np.uint16, every16.view(np.float16).astype(np.float64), 2.0 ** -14, 0x7c00),
            ("e4m3", "F8_E4M3", np.uint8, table(4, 3, False), 2.0 ** -6, 0x7f),
            ("e5m2", "F8_E5M2", np.uint8, table(5, 2), 2.0 ** -14, 0x7c)):
        sign = 1 << (8 * np.dtype(kind).itemsize - 1)
        positive = rng.integers(top // 2, top, 30_007).astype(kind)
        negative, broken = positive | kind(sign), positive.copy()
        broken[::3] |= kind(sign)
        broken[[9_000, 29_999]] = sign - 1, 2 * sign - 1  # a NaN of either sign
        for which, codes in (("positive", positive), ("negative", negative), ("broken", broken)):
            yield f"{name}_{which}", (dtype, codes.tobytes(), values[codes], least)


def cases():
    """{name: (dtype, bytes, values as float64, least normal)}"""
    rng = np.random.default_rng(7)
    out = {}
    f32 = (rng.standard_normal(100_003) * 0.02).astype(np.float32)
    f32[[5, 70_000]] = 0
    f32[11] = 1e-40
    out["f32"] = "F32", f32.tobytes(), f32.astype(np.float64), 2.0 ** -126
    broken = f32.copy()
    broken[[1234, 99_999]] = np.nan
    broken[[77, 100_002]] = [np.inf, -np.inf]
    out["f32_broken"] = "F32", broken.tobytes(), broken.astype(np.float64), 2.0 ** -126
    f64 = rng.standard_normal(10_001) + 100
    f64[3], f64[10_000] = 0, np.nan
    out["f64"] = "F64", f64.tobytes(), f64, 2.0 ** -1022
    codes = rng.integers(0, 0x7f80, 50_001).astype(np.uint16) % 0x4200
    out["bf16"] = ("BF16", codes.tobytes(),
                   (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64), 2.0 ** -126)
    for name, scale in (("bf16_tiny", 1e-30), ("bf16_huge", 1e30)):  # squares: not in float32
        wide = (rng.standard_normal(9_001) * scale).astype(np.float32).view(np.uint32) >> 16
        out[name] = ("BF16", wide.astype(np.uint16).tobytes(),
                     (wide << 16).view(np.float32).astype(np.float64), 2.0 ** -126)
    every16 = np.arange(65536, dtype=np.uint16)
    out["f16_every"] = ("F16", every16.tobytes(), every16.view(np.float16).astype(np.float64),
                        2.0 ** -14)
    finite = every16[np.isfinite(every16.view(np.float16))]
    out["f16_finite"] = ("F16", finite.tobytes(), finite.view(np.float16).astype(np.float64),
                         2.0 ** -14)
    every8 = np.arange(256, dtype=np.uint8)
    for name, dtype, values, least in (("e4m3", "F8_E4M3", table(4, 3, False), 2.0 ** -6),
                                       ("e5m2", "F8_E5M2", table(5, 2), 2.0 ** -14)):
        out[name + "_every"] = dtype, every8.tobytes(), values, least
        some = every8[np.isfinite(values)]
        some = np.tile(some, 37)
        out[name + "_finite"] = dtype, some.tobytes(), values[some], least
    for name, dtype, kind in (("i8", "I8", np.int8), ("u8", "U8", np.uint8), ("i16", "I16", np.int16),
                              ("u16", "U16", np.uint16), ("i32", "I32", np.int32),
                              ("u32", "U32", np.uint32), ("i64", "I64", np.int64),
                              ("u64", "U64", np.uint64)):
        info = np.iinfo(kind)
        whole = rng.integers(info.min, info.max, 20_003, dtype=kind, endpoint=True)
        whole[17] = 0
        out[name] = dtype, whole.tobytes(), whole.astype(np.float64), 0.0
    truth = rng.integers(0, 2, 9_999).astype(np.uint8)
    out["bool"] = "BOOL", truth.tobytes(), truth.astype(np.float64), 0.0
    out["empty"] = "F32", b"", np.zeros(0), 2.0 ** -126
    out.update(one_sided(rng))
    return out


def first(mask):
    return int(np.argmax(mask)) if mask.any() else None


def check_stats(name, stats, values, least_normal):
    nan, inf = np.isnan(values), np.isinf(values)
    finite = values[~nan & ~inf]
    assert stats["nan"] == nan.sum(), name
    assert stats["inf"] == inf.sum(), name
    assert stats["first_nan"] == first(nan), name
    assert stats["first_inf"] == first(inf), name
    assert stats["zero"] == (finite == 0).sum(), name
    assert stats["denormal"] == ((finite != 0) & (np.abs(finite) < least_normal)).sum(), name
    if len(finite) == 0:
        assert stats["min"] is stats["max"] is stats["mean"] is stats["std"] is None, name
        return
    assert stats["min"] == finite.min() and stats["max"] == finite.max(), name
    spread = np.abs(finite).max()
    assert abs(stats["mean"] - finite.mean()) <= 2.0 ** -24 * spread, name
    if len(finite) == 1:
        assert stats["std"] is None, name
        return
    assert math.isclose(stats["std"], finite.std(ddof=1), rel_tol=2.0 ** -23), name


@pytest.mark.parametrize("level", ["plain", "avx2", None])
def test_every_type(tmp_path, level):
    wanted = cases()
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {name: (dtype, [len(values)], raw)
                             for name, (dtype, raw, values, _) in wanted.items()}, {"format": "pt"})
    found = answer(path, exit_status=1, level=level)  # there are NaNs
    tensors = by_name(found)
    assert list(tensors) == list(wanted)
    for name, (_, raw, values, least) in wanted.items():
        assert tensors[name]["bytes"] == len(raw)
        assert tensors[name]["parameters"] == len(values)
        check_stats(name, tensors[name]["stats"], values, least)
    assert found["bytes"] == sum(len(raw) for _, raw, _, _ in wanted.values())
    assert found["tensors_with_nan"] == 9 and found["tensors_with_inf"] == 3


# ---- layers, estimates

def llama(n_layers=3, dim=16, ff=40, vocab=100):
    def half(*shape):
        return "BF16", shape, b"\x80\x3f" * int(np.prod(shape))
    out = {"model.embed_tokens.weight": half(vocab, dim)}
    for i in range(n_layers):
        at = f"model.layers.{i}."
        for part in "qkvo":
            out[f"{at}self_attn.{part}_proj.weight"] = half(dim, dim)
        out[at + "mlp.gate_proj.weight"] = half(ff, dim)
        out[at + "mlp.up_proj.weight"] = half(ff, dim)
        out[at + "mlp.down_proj.weight"] = half(dim, ff)
        out[at + "input_layernorm.weight"] = half(dim)
    out["lm_head.weight"] = half(vocab, dim)
    return out


def test_groups_and_estimate(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, llama())
    found = answer(path, "--lora-rank", "4", "8")
    layer = 4 * 16 * 16 + 3 * 40 * 16 + 16
    total = 2 * 100 * 16 + 3 * layer
    assert found["parameters"] == total and found["bytes"] == 2 * total
    assert {g["layer"]: g["parameters"] for g in found["layers"]} == {
        "model.embed_tokens": 1600, "model.layers.0": layer, "model.layers.1": layer,
        "model.layers.2": layer, "lm_head": 1600}
    assert {g["component"]: g["parameters"] for g in found["components"]} == {
        "embedding": 1600, "attention": 3 * 1024, "mlp": 3 * 1920, "normalization": 48, "head": 1600}
    full = {row["precision"]: row["total"] for row in found["training_estimate"]["full"]}
    assert full == {"fp32": 16 * total, "bf16_mixed": 16 * total, "bf16": 8 * total,
                    "bf16_8bit_optimizer": 6 * total + 8 * (total // 256 + 1)}
    sides = 3 * (4 * 32 + 3 * 56)
    assert found["training_estimate"]["lora_matrices"] == 21
    assert [(row["rank"], row["trained_parameters"], row["total"])
            for row in found["training_estimate"]["lora"]] == [
        (rank, rank * sides, 2 * total + 16 * rank * sides) for rank in (4, 8)]
    text = model(path).stdout
    assert "model.layers.0 to 2, each" in text and "an estimate" in text
    header_only = answer(path, "--no-scan")
    assert header_only["tensors_with_nan"] is None
    assert header_only["tensors_by_name"][0]["stats"] is None


def test_shards(tmp_path):
    tensors = llama()
    names = list(tensors)
    shards = {"model-1-of-2.safetensors": names[:9], "model-2-of-2.safetensors": names[9:]}
    for file, inside in shards.items():
        write_safetensors(tmp_path / file, {name: tensors[name] for name in inside})
    index = tmp_path / "model.safetensors.index.json"
    weight_map = {name: file for file, inside in shards.items() for name in inside}
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    whole = answer(index)
    assert list(by_name(whole)) == names and len(whole["files"]) == 2
    assert answer(tmp_path)["parameters"] == whole["parameters"]
    twice = answer(tmp_path / "model-1-of-2.safetensors", tmp_path / "model-1-of-2.safetensors")
    assert twice["in_several_files"] == names[:9]

    index.write_text(json.dumps({"weight_map": {**weight_map, "gone": "model-1-of-2.safetensors"}}))
    done = model(index)
    assert done.returncode == 3 and "gone is in model-1-of-2.safetensors, and it is not" in done.stderr
    index.write_text(json.dumps({"weight_map": {"x": "../../etc/passwd"}}))
    done = model(index)
    assert done.returncode == 3 and "not beside it" in done.stderr


# ---- torch

def test_types_that_are_not_scanned(tmp_path):
    """Of the format's newer types, and of those still to come: bytes and names."""
    path = tmp_path / "mx.safetensors"
    write_safetensors(path, {"blocks": ("F4", (6, 32), bytes(96)), "scales": ("F8_E8M0", (6, 1), bytes(6)),
                             "six": ("F6_E2M3", (4,), bytes(3)), "six2": ("F6_E3M2", (2, 4), bytes(6)),
                             "fn": ("F8_E4M3FNUZ", (5,), bytes(5)), "fn2": ("F8_E5M2FNUZ", (5,), bytes(5)),
                             "new": ("F3_X", (8, 2), bytes(6)), "usual": ("F32", (2,), bytes(8))})
    found = answer(path)
    rows = {name: (t["dtype"], t["parameters"], t["bytes"], t["stats"] is None) for name, t in by_name(found).items()}
    assert rows == {"blocks": ("float4", 192, 96, True), "scales": ("float8_e8m0", 6, 6, True),
                    "six": ("float6_e2m3", 4, 3, True), "six2": ("float6_e3m2", 8, 6, True),
                    "fn": ("float8_e4m3fnuz", 5, 5, True), "fn2": ("float8_e5m2fnuz", 5, 5, True),
                    "new": ("F3_X", 16, 6, True), "usual": ("float32", 2, 8, False)}
    assert found["parameters"] == 238 and found["bytes"] == 135
    assert {t["dtype"]: t["bytes"] for t in found["dtypes"]}["F3_X"] == 6
    assert found["trainable_parameters"] is None and found["frozen_parameters"] is None
    assert found["training_estimate"]["full"][0]["trained_parameters"] == 192 + 12 + 10 + 2  # neither scales nor F3_X
    said = " ".join(model(path).stdout.split())
    assert "F3_X (unknown)" in said
    assert "Not checked, since the type is not scanned: float4, float8_e8m0, float6_e2m3, " \
           "float6_e3m2, float8_e4m3fnuz, float8_e5m2fnuz, F3_X." in said
    write_safetensors(path, {"odd": ("F4", (3,), bytes(2))})
    done = model(path)
    assert done.returncode == 3 and "odd has 3 elements of 4 bits: no whole bytes" in done.stderr


def test_torch_agrees(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    net = torch.nn.Sequential(OrderedDict(
        embed=torch.nn.Embedding(50, 8), fc1=torch.nn.Linear(8, 8), norm=torch.nn.BatchNorm1d(8),
        head=torch.nn.Linear(8, 50, bias=False)))
    net.head.weight = net.embed.weight  # tied
    net.fc1.bias.requires_grad_(False)  # frozen
    big = torch.randn(64, 48)
    big[3, 5] = math.nan
    extra = OrderedDict(
        view=big[10:20], transposed=big.t(), strided=big[::2, 1::3], expanded=torch.ones(1).expand(7),
        half=torch.randn(1000).half(), bfloat=torch.randn(1001).bfloat16(), scalar=torch.tensor(2.5),
        long=torch.arange(-5, 100), byte=torch.arange(200, dtype=torch.uint8),
        yes=torch.tensor([True, False]), nothing=torch.zeros(0, 4),
        complex=torch.ones(3, dtype=torch.complex64))
    state = OrderedDict(net.state_dict(), **extra)
    torch.save(state, tmp_path / "a.pt")
    found = answer(tmp_path / "a.pt", exit_status=1)
    tensors = by_name(found)
    assert list(tensors) == list(state) and found["not_read"] == []
    for name, tensor in state.items():
        row = tensors[name]
        assert row["shape"] == list(tensor.shape), name
        assert row["parameters"] == tensor.numel(), name
        assert row["bytes"] == tensor.numel() * tensor.element_size(), name
        assert row["dtype"] == str(tensor.dtype).removeprefix("torch."), name
        if name in ("complex", "expanded"):
            assert row["stats"] is None
            continue
        check_stats(name, row["stats"], tensor.double().reshape(-1).numpy(),
                    {torch.half: 2.0 ** -14}.get(tensor.dtype, 2.0 ** -126)
                    if tensor.is_floating_point() else 0.0)
    assert tensors["head.weight"]["same_as"] == "embed.weight" and found["tied"] == 1
    assert found["parameters"] == sum(t.numel() for t in state.values()) - net.embed.weight.numel()

    # A training's checkpoint, and a whole module: names of classes are text to us.
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
    net(torch.randint(50, (4,))).sum().backward()
    optimizer.step()
    torch.save({"epoch": 3, "model": net.state_dict(), "optimizer": optimizer.state_dict()},
               tmp_path / "b.pt")
    found = answer(tmp_path / "b.pt")
    assert found["trainable_parameters"] is None and found["frozen_parameters"] is None  # a state dict does not say
    moments = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
    assert found["extra"]["tensors"] == len(moments)
    assert found["extra"]["bytes"] == sum(m.numel() * m.element_size() for m in moments)
    assert found["tensors"] == len(net.state_dict())
    torch.save(net, tmp_path / "c.pt")
    found = answer(tmp_path / "c.pt")
    assert "torch.nn.modules.linear.Linear" in found["classes"] and found["not_read"] == []
    said = " ".join(model(tmp_path / "c.pt").stdout.split())
    assert "Tensors were read from the saved state of objects of these classes: " in said and "left out" not in said
    grads = {name: p.requires_grad for name, p in net.named_parameters(remove_duplicate=False)} \
        if hasattr(torch, "compile") else \
        {**{n: p.requires_grad for n, p in net.named_parameters()}, "head.weight": True}
    assert {n: t["requires_grad"] for n, t in by_name(found).items()
            if t["requires_grad"] is not None} == grads
    assert found["frozen_parameters"] == 8
    assert found["trainable_parameters"] == sum(p.numel() for p in net.parameters() if p.requires_grad)

    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    done = model(tmp_path / "old.pt")
    assert done.returncode == 3 and "torch.save(torch.load(" in done.stderr


def test_pickle_is_not_run(tmp_path):
    class Bad:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/run",)
    path = tmp_path / "bad.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad/data.pkl", pickle.dumps({"a": Bad(), "n": 1}, protocol=2))
    done = model(path)
    assert done.returncode == 1 and "no tensor" in done.stderr
    assert not (tmp_path / "run").exists()
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("hello", "world")
    done = model(tmp_path / "plain.zip")
    assert done.returncode == 3 and "no data.pkl" in done.stderr


# ---- files that are none

def entry(begin, end, shape=(2,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


HOSTILE = {
    "empty": (b"", "neither a safetensors"),
    "text": (b"hello, this is just some text", "neither a safetensors"),
    "huge header": (struct.pack("<Q", 1 << 63) + b"{}", "header would have 9223372036854775808"),
    "header cut": (struct.pack("<Q", 1000) + b"{}", "cut off"),
    "no json": (struct.pack("<Q", 8) + b"{nothing", "a text should begin here"),
    "deep": (struct.pack("<Q", 60_010) + b'{"__metadata__":' + b"[" * 59_994, "nested deeper"),
    "twice": (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
              b'"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "names a twice"),
    "overlap": ({"a": entry(0, 8), "b": entry(4, 12)}, "overlap"),
    "same range": ({"a": entry(0, 12, [3]), "b": entry(0, 12, [3])}, "overlap"),
    "gap": ({"a": entry(0, 4, [1]), "b": entry(8, 12, [1])}, "belong to no tensor"),
    "behind the end": ({"a": entry(0, 16, [4])}, "cut off or damaged"),
    "backwards": ({"a": entry(8, 0)}, "cut off or damaged"),
    "shape too large": ({"a": entry(0, 12, [1 << 32, 1 << 32])}, "larger than any memory"),
    "shape does not fit": ({"a": entry(0, 12, [4])}, "its shape needs 16"),
    "2^64": (b'{"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,12]}}',
             "larger than 64 bits"),
    "negative": ({"a": entry(0, 12, [-3])}, "not negative"),
    "type, cut off": ({"a": entry(0, 13, [3], "F3")}, "are not in the file"),
    "type, shape": ({"a": entry(0, 12, [1 << 33, 1 << 33], "F3")}, "larger than any memory"),
    "zip cut": (b"PK\3\4" + bytes(100), "cut off"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(tmp_path, name):
    what, reason = HOSTILE[name]
    if isinstance(what, dict):
        what = json.dumps(what).encode()
    if what.startswith(b"{"):
        what = struct.pack("<Q", len(what)) + what + bytes(12)
    path = tmp_path / "x.safetensors"
    path.write_bytes(what)
    done = model(path)
    assert done.returncode == 3 and reason in done.stderr, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_cannot_open(tmp_path):
    assert model(tmp_path / "none.pt").returncode == 3
    assert model(tmp_path).returncode == 3


def test_docs(tmp_path):
    """The commands of docs/model.md run as they stand there."""
    write_safetensors(tmp_path / "model.safetensors", llama())
    with open(os.path.join(ROOT, "docs", "model.md"), encoding="utf-8") as docs:
        blocks = re.findall(r"```sh\n(.*?)```", docs.read(), re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True,
                              timeout=240, check=False, env=environment())
        assert done.returncode == 0 and done.stdout, done.stderr


def test_bench_says_what_to_build(tmp_path):
    """As docs/model.md names it, after `./dev build` alone."""
    done = subprocess.run([os.path.join(ROOT, "bench", "run"), "--only", "model", "--build", str(tmp_path)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"bench: \S+ is not built: `[.]/dev bench` builds what is measured, .*\n", done.stderr)


def test_deep_names(tmp_path):
    """14 MB of names with 200 parts: a file that small should not take long, whatever it says."""
    path = tmp_path / "deep.safetensors"
    write_safetensors(path, {"l." * 200 + str(i): ("F32", [1], bytes(4)) for i in range(30_000)})
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = answer(path)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 5
    assert found["tensors"] == 30_000
