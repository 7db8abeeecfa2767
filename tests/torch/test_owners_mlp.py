# SPDX-License-Identifier: MIT
"""A two-layer perceptron, by hand: 64 -> 128 -> 10, batches of 32, Adam, three steps (owners/mlp.py)."""
import pytest
from owners_kit import blocks_of, peak_by, rows_of, script, watched
from torch_kit import query

W0, B0, W2, B2 = 64 * 128 * 4, 128 * 4, 128 * 10 * 4, 10 * 4
ALL = W0 + B0 + W2 + B2
HIDDEN, OUT, IN = 32 * 128 * 4, 32 * 10 * 4, 32 * 64 * 4
SIZES = {"0.weight": W0, "0.bias": B0, "2.weight": W2, "2.bias": B2}


@pytest.fixture(scope="module")
def run(tmp_path_factory, counter):
    return watched(tmp_path_factory.mktemp("mlp"), counter, script("mlp.py"))[1]


def of(run, category):
    return query(run, f"SELECT tensor, size FROM allocations WHERE category = '{category}' ORDER BY id")


def test_parameters(run):
    assert of(run, "parameter") == [[name, str(size)] for name, size in SIZES.items()]
    rows = query(run, "SELECT count(*), count(step) FROM allocations WHERE category = 'parameter'")
    assert rows == [["4", "0"]], "made before the first step"


def test_gradients(run):
    """Made anew in each step, from the last layer to the first."""
    expected = [["2.weight", str(W2)], ["2.bias", str(B2)], ["0.weight", str(W0)], ["0.bias", str(B0)]]
    assert of(run, "gradient") == expected * 3
    assert query(run, "SELECT step, stage, module, count(*) FROM allocations WHERE category = 'gradient' "
                      "GROUP BY step, module ORDER BY min(id)") == \
        [[str(step), "backward", module, "2"] for step in range(3) for module in ("2", "0")]


def test_optimizer_state(run):
    expected = [[f"{name}.{state}", str(size)] for name, bytes_ in SIZES.items()
                for state, size in (("step", 4), ("exp_avg", bytes_), ("exp_avg_sq", bytes_))]
    assert of(run, "optimizer_state") == expected
    assert query(run, "SELECT DISTINCT step, stage, module FROM allocations WHERE category = 'optimizer_state'") \
        == [["0", "optimizer", "Adam"]]


def test_forward_and_loss(run):
    """y - target, pow, mean; what mean makes on its way; the gradient of the loss, 1."""
    found = [(b.size, b.module, b.category) for b in blocks_of(run) if (b.step, b.stage) == (1, "forward")]
    large = [block for block in found if block[0] > 8]
    assert large == [(HIDDEN, "0", "temporary"), (HIDDEN, "1", "activation"), (OUT, "2", "activation"),
                     (OUT, "", "activation"), (OUT, "", "temporary")]
    assert all(module == "" for size, module, _ in found if size <= 8)


def test_backward(run):
    found = [(b.size, b.module, b.category) for b in blocks_of(run) if (b.step, b.stage) == (1, "backward")]
    assert [block for block in found if block[0] > 8] == [
        (OUT, "", "autograd_detail"),  # of mean
        (OUT, "", "autograd_detail"), (OUT, "", "autograd_detail"), (OUT, "", "autograd_detail"),  # of pow
        (HIDDEN, "2", "autograd_detail"), (W2, "2", "gradient"), (B2, "2", "gradient"),
        (HIDDEN, "1", "autograd_detail"), (W0, "0", "gradient"), (B0, "0", "gradient")]
    assert all(block[1:] == ("", "autograd_detail") for block in found if block[0] <= 8)


def test_inputs(run):
    assert of(run, "input") == [["input[0]", str(IN)]] * 3


def test_peak(run):
    """In the optimizer, at the largest parameter: the root of exp_avg_sq and the same divided, with
    two numbers. Of the forward only y and the loss are left, and the target, which is nobody's."""
    said, bytes_ = peak_by(run, "category")
    assert bytes_.pop("unknown", 0) + bytes_.pop("other", 0) == OUT
    assert bytes_ == {"parameter": ALL, "gradient": ALL, "optimizer_state": 2 * ALL + 4 * 4, "input": IN,
                      "activation": OUT + 4, "temporary": 2 * W0 + 8 + 4}
    assert said["allocated"] == 4 * ALL + 16 + IN + 2 * OUT + 4 + 2 * W0 + 12
    assert said["step"] == 0, "all states are there before the first parameter is changed"


def test_torch_trace(run):
    """Calls in forward, then the modules of backward, then the optimizer."""
    forward = [("Sequential", "pre"), ("0", "pre"), ("0", "post"), ("1", "pre"), ("1", "post"), ("2", "pre"),
               ("2", "post"), ("Sequential", "post")]
    backward = [(name, side) for name in "210" for side in ("pre", "post")]
    rows = [(module, side + " forward") for module, side in forward]
    rows += [(module, side + " backward") for module, side in backward]
    rows += [("Adam", "pre step"), ("Adam", "post step")]
    assert [row[:3] for row in rows_of(run)] == [(step, *row) for step in range(3) for row in rows]
    assert query(run, "SELECT step, seq, local_step FROM python.torch_trace") == \
        [[str(step), str(i), str(step)] for step in range(3) for i in range(len(rows))]
    before, after = (dict(query(run, "SELECT module, allocated * 1048576 FROM python.torch_trace WHERE step = 1 "
                                     f"AND stage = '{side} forward'")) for side in ("pre", "post"))
    made = {name: round(float(after[name]) - float(before[name])) for name in before}
    assert made["0"] == HIDDEN and made["1"] == HIDDEN and made["2"] == OUT
    assert made["Sequential"] == HIDDEN + OUT, "what went into relu is gone, what came out is kept for backward"


def test_steps(run):
    """Three; nothing is made behind the last."""
    assert query(run, "SELECT DISTINCT step, finished FROM steps ORDER BY step") == \
        [["", "1"], ["0", "1"], ["1", "1"], ["2", "0"]]
    assert query(run, "SELECT step, name FROM ranges WHERE kind = 'stage' ORDER BY start_ns") == \
        [[str(step), stage] for step in range(3) for stage in ("forward", "backward", "optimizer")]


def test_modules_and_parameters(run):
    assert query(run, "SELECT module, class FROM modules WHERE class IS NOT NULL AND class <> '' ORDER BY module") == \
        [["0", "torch.nn.modules.linear.Linear"], ["1", "torch.nn.modules.activation.ReLU"],
         ["2", "torch.nn.modules.linear.Linear"], ["Sequential", "torch.nn.modules.container.Sequential"]]
    assert query(run, "SELECT name, module, kind, shape, dtype, bytes, requires_grad, trained FROM parameters "
                      "ORDER BY block_id") == \
        [[name, name[0], "parameter", shape, "float32", str(SIZES[name]), "1", "1"] for name, shape in
         (("0.weight", "[128, 64]"), ("0.bias", "[128]"), ("2.weight", "[10, 128]"), ("2.bias", "[10]"))]
    assert query(run, "SELECT p.name, a.size, a.category FROM parameters p JOIN allocations a ON a.id = p.block_id "
                      "ORDER BY a.id") == [[name, str(size), "parameter"] for name, size in SIZES.items()]
