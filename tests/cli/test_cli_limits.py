# SPDX-License-Identifier: MIT
"""Readers of foreign files are bounded by what they have read of the file: small files that stand
for a lot are refused at once, with little memory, whatever lies behind their end or in a hole.
docs/limits.md has the figures.

The pickles are written instruction by instruction, because no pickler writes such files.
"""
import gzip
import json
import os
import struct
import subprocess
import sys
import zipfile

import pytest
from test_golden import BUILD, environment

TIDEMARK = os.path.join(BUILD, "tidemark")
MIB = 1 << 20
REFUSED = 3

# A program of ours needs 5 MiB to start; sanitizers need more.
MOST_MEMORY = 160 * MIB
MOST_SECONDS = 5 # of CPU time


# A process starts with its parent's peak: a small one stands in between.
LAUNCHER = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
said = done.stderr.decode(errors="replace")
json.dump([done.returncode, said, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime], sys.stdout)
"""


def tidemark(*args, cwd):
    """Exit status, standard error, peak of resident memory and CPU seconds of a command."""
    done = subprocess.run([sys.executable, "-c", LAUNCHER, TIDEMARK, *map(str, args)], cwd=cwd,
                          env=environment(), capture_output=True, text=True, check=True,
                          timeout=120)
    return json.loads(done.stdout)


def refuse(*args, cwd, reason):
    """The command refuses the file for this reason, quickly, and leaves nothing behind."""
    before = set(os.listdir(cwd))
    status, said, memory, seconds = tidemark(*args, cwd=cwd)
    assert status == REFUSED, said
    assert reason in said, said
    assert memory < MOST_MEMORY
    assert seconds < MOST_SECONDS
    assert set(os.listdir(cwd)) == before
    return said


# ---- pickles, by instruction

def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def put(i):
    return b"r" + struct.pack("<I", i)


def get(i):
    return b"j" + struct.pack("<I", i)


def dict_of(**pairs):
    return b"}(" + b"".join(text(key) + value for key, value in pairs.items()) + b"u"


def list_of(*items):
    return b"](" + b"".join(items) + b"e"


def snapshot(segments=b"]", events=b"]"):
    return (b"\x80\x02" + dict_of(segments=segments, device_traces=list_of(events)) + b".")


def kept(*values):
    """Values that can be referred to by number afterwards: pushed, memoized and dropped again."""
    return b"".join(value + put(i) + b"0" for i, value in enumerate(values))


def with_kept(values, body):
    return body[:2] + kept(*values) + body[2:]


def block(i):
    return dict_of(address=number((1 << 32) + 512 * i), size=number(512),
                   state=text("active_allocated"))


def segment(blocks, i=0, size=1 << 30):
    return dict_of(address=number((1 << 32) + i * size), total_size=number(size),
                   device=b"K\x00", blocks=blocks)


def event(action="alloc", address=1 << 32, size=512, **more):
    return dict_of(action=text(action), addr=number(address), size=number(size),
                   time_us=number(1), **more)


AGAIN = "steps, the limit for"


def test_references_to_a_segment_of_references(tmp_path):
    blocks = list_of(*[get(0)] * 4000)
    body = with_kept([block(0), segment(blocks)], snapshot(list_of(*[get(1)] * 4000)))
    (tmp_path / "a.pickle").write_bytes(body)
    said = refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)
    assert "KiB read so far" in said and "--no-limits" in said


def test_references_to_an_event_with_many_keys(tmp_path):
    wide = b"}(" + b"".join(text(f"k{i}") + b"N" for i in range(5000)) + b"u"
    body = with_kept([wide], snapshot(events=list_of(*[get(0)] * 50000)))
    (tmp_path / "a.pickle").write_bytes(body)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_events_that_share_a_long_name(tmp_path):
    long = text("x" * 4000)
    body = with_kept([long, text("user_metadata")],
                     snapshot(events=list_of(*[b"}" + get(1) + get(0) + b"s"] * 50000)))
    (tmp_path / "a.pickle").write_bytes(body)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_frames_that_share_a_long_file(tmp_path):
    frames = list_of(*[b"}" + get(1) + get(0) + b"s"] * 900)
    body = with_kept([text("x" * 500000), text("filename"), text("frames")],
                     snapshot(events=list_of(*[b"}" + get(2) + frames + b"s"] * 20)))
    (tmp_path / "a.pickle").write_bytes(body)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_events_that_change_every_segment(tmp_path):
    """Each writes records of all segments: the trace would be the square of the file."""
    size = 2 << 20
    apart = [event("segment_alloc", (1 << 32) + 2 * i * size, size) for i in range(3000)]
    whole = [event("segment_alloc", 0, 1 << 50)] * 3000
    (tmp_path / "a.pickle").write_bytes(snapshot(b"]", list_of(*apart, *whole)))
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_allocations_in_the_middle_of_blocks(tmp_path):
    """Where a block begins at an address that none begins at, its neighbours are walked through."""
    n = 20000
    segments = list_of(segment(list_of(*[block(i) for i in range(n)]), size=512 * n))
    events = [event("alloc", (1 << 32) + 512 * (i % 50) + 8 + i, 1) for i in range(n)]
    (tmp_path / "a.pickle").write_bytes(snapshot(segments, list_of(*events)))
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_many_streams(tmp_path):
    """Streams are looked for one after the other."""
    events = [b"}(" + get(0) + number(i + 1) + b"u" for i in range(60000)]
    last = b"}(" + get(0) + number(60000) + b"u"
    body = with_kept([text("stream"), last],
                     snapshot(events=list_of(*events, *[get(1)] * 100000)))
    (tmp_path / "a.pickle").write_bytes(body)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_gzip_bomb(tmp_path):
    with gzip.open(tmp_path / "a.pickle.gz", "wb", 9) as file:
        file.write(b"\x80\x02")
        for _ in range(300):
            file.write(b"N0" * (MIB // 2))
    size = os.path.getsize(tmp_path / "a.pickle.gz")
    assert size < 400 * 1024
    said = refuse("import", "a.pickle.gz", cwd=tmp_path, reason="the gzip file unpacks to more")
    assert "gzip -d" in said and "--no-limits" in said


def test_gzip_of_values_that_take_memory(tmp_path):
    with gzip.open(tmp_path / "a.pickle.gz", "wb", 9) as file:
        file.write(b"\x80\x04](")
        for _ in range(50):
            file.write(b"N\x94" * 1000000 + b"1]\x94(")
    status, said, memory, seconds = tidemark("import", "a.pickle.gz", cwd=tmp_path)
    assert status == REFUSED
    assert memory < 2 * MOST_MEMORY and seconds < MOST_SECONDS, said


def test_no_limits_reads_it(tmp_path):
    """What was refused for its size is read when asked for, and is what it says."""
    blocks = list_of(*[get(0)] * 300)
    body = with_kept([block(0), segment(blocks)], snapshot(list_of(*[get(1)] * 300)))
    (tmp_path / "a.pickle").write_bytes(body)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)
    status, said, _, _ = tidemark("import", "a.pickle", "--no-limits", cwd=tmp_path)
    assert status == 0, said
    assert "in 90000 blocks" in said


# ---- size without content: holes, padding, what is skipped

def references_to_segments():
    """A pickle of 20 KB that stands for four million blocks."""
    blocks = list_of(*[get(0)] * 2000)
    return with_kept([block(0), segment(blocks)], snapshot(list_of(*[get(1)] * 2000)))


def bytes_of(n):
    return b"\x8e" + struct.pack("<Q", n)


def text_of(n):
    return b"X" + struct.pack("<I", n)


def write_sparse(path, *parts):
    """A file of bytes, and holes where a number stands. Skips where holes are written out."""
    with open(path, "wb") as file:
        for part in parts:
            if isinstance(part, int):
                file.seek(part, os.SEEK_CUR)
            else:
                file.write(part)
        file.truncate()
    if os.stat(path).st_blocks * 512 > 64 * MIB:
        os.remove(path)
        pytest.skip("no sparse files on this file system")


def test_hole_behind_the_end_of_a_snapshot(tmp_path):
    write_sparse(tmp_path / "a.pickle", references_to_segments(), 100 << 30)
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_hole_in_bytes_of_a_snapshot(tmp_path):
    """Bytes are passed over without reading them, and pay for nothing."""
    body = references_to_segments()
    write_sparse(tmp_path / "a.pickle", body[:2] + bytes_of(100 << 30), 100 << 30, b"0" + body[2:])
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_hole_in_texts_of_a_snapshot(tmp_path):
    body = references_to_segments()
    parts = [body[:2]]
    for _ in range(64):
        parts += [text_of(8 * MIB), 8 * MIB, b"0"]
    write_sparse(tmp_path / "a.pickle", *parts, body[2:])
    refuse("import", "a.pickle", cwd=tmp_path, reason=AGAIN)


def test_padded_snapshot_reads_as_before(tmp_path):
    """What lies behind the end changes nothing, and bytes in the middle are passed over."""
    body = snapshot(list_of(segment(list_of(*[block(i) for i in range(300)]))))
    (tmp_path / "a.pickle").write_bytes(body)
    (tmp_path / "b.pickle").write_bytes(body + bytes(MIB))
    (tmp_path / "c.pickle").write_bytes(body[:2] + bytes_of(MIB) + bytes(MIB) + b"0" + body[2:])
    for name in "abc":
        status, said, _, _ = tidemark("import", f"{name}.pickle", cwd=tmp_path)
        assert status == 0 and "in 300 blocks" in said, said


def test_bytes_longer_than_the_file(tmp_path):
    for length in (5, 1 << 20, 1 << 63, (1 << 64) - 1):
        (tmp_path / "a.pickle").write_bytes(b"\x80\x04" + bytes_of(length) + b"1234")
        refuse("import", "a.pickle", cwd=tmp_path, reason="the file ends in the middle")


@pytest.mark.parametrize("member", [True, False])
def test_hole_behind_gzip(tmp_path, member):
    """Neither a hole nor what is skipped lifts a limit of a packed file."""
    bomb = b"\x80\x02" + b"N0" * (100 * MIB) if member else references_to_segments()
    write_sparse(tmp_path / "a.pickle.gz", gzip.compress(bomb, 9), 100 << 30)
    refuse("import", "a.pickle.gz", cwd=tmp_path,
           reason="the gzip file unpacks to more" if member else AGAIN)


# ---- checkpoints

def checkpoint(path, pickle, storages=None, method=zipfile.ZIP_STORED, order=b"little"):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", pickle, method)
        archive.writestr("a/byteorder", order, method)
        for name, data in (storages or {}).items():
            archive.writestr(f"a/data/{name}", data)


def name_of(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def tensor(offset, shape, stride=(1,), key=b"X\x01\x00\x00\x000"):
    storage = (b"(" + text("storage") + name_of("torch", "ByteStorage") + key + text("cpu") +
               number(1) + b"tQ")
    def tuple_of(values):
        return b"(" + b"".join(map(number, values)) + b"t"
    return (name_of("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + number(offset) +
            tuple_of(shape) + tuple_of(stride) + b"\x89}tR")


def test_laughs(tmp_path):
    """Lists of ten references to the list before, ten times over."""
    body = b"\x80\x02" + list_of(b"N") + put(0) + b"0"
    for i in range(9):
        body += list_of(*[get(i)] * 10) + put(i + 1) + b"0"
    checkpoint(tmp_path / "a.pt", body + get(9) + b".")
    said = refuse("model", "a.pt", cwd=tmp_path, reason=AGAIN)
    assert "--no-limits" in said


def laughs():
    body = list_of(b"N") + put(0) + b"0"
    for i in range(9):
        body += list_of(*[get(i)] * 10) + put(i + 1) + b"0"
    return body + get(9) + b"."


@pytest.mark.parametrize("before, after", [
    (b"", bytes(60 * MIB)),
    (bytes_of(60 * MIB) + bytes(60 * MIB) + b"0", b""),
    (b"\x8b" + struct.pack("<I", 60 * MIB) + bytes(60 * MIB) + b"0", b""),
    ((text_of(6 * MIB) + b"x" * (6 * MIB) + b"0") * 9, b""),
], ids=["behind", "bytes", "number", "texts"])
def test_padded_laughs(tmp_path, before, after):
    """Padding pays for no step."""
    checkpoint(tmp_path / "a.pt", b"\x80\x04" + before + laughs() + after)
    status, said, memory, seconds = tidemark("model", "a.pt", cwd=tmp_path)
    assert status == REFUSED and AGAIN in said, said
    assert memory < 2 * MOST_MEMORY and seconds < MOST_SECONDS


def test_memo_number_of_padding(tmp_path):
    """A number that no pickler would have come to makes no table of that length."""
    body = b"\x80\x02N" + put(50 * MIB) + b"." + bytes(60 * MIB)
    checkpoint(tmp_path / "a.pt", body)
    refuse("model", "a.pt", cwd=tmp_path, reason="the memo has a number that makes no sense")


def test_values_of_a_checkpoint(tmp_path):
    """Tuples of nothing, one for each byte."""
    checkpoint(tmp_path / "a.pt", b"\x80\x02](" + b")" * (8 * MIB) + b"e.")
    status, said, memory, _ = tidemark("model", "a.pt", cwd=tmp_path)
    assert status == REFUSED and "its values take more than" in said, said
    assert memory < 3 * MOST_MEMORY


@pytest.mark.parametrize("numbers", [b"K\x05" * 8000000, b"M\x05\x05" * 4000000,
                                     (b"G" + bytes(8)) * 1000000, b"\x88\x89N" * 2000000], ids=len)
def test_lists_of_numbers_in_a_checkpoint(tmp_path, numbers):
    """Long lists of plain numbers are no attack."""
    body = b"\x80\x02" + dict_of(indices=b"](" + numbers + b"e") + b"."
    checkpoint(tmp_path / "a.pt", body)
    status, said, _, _ = tidemark("model", "a.pt", cwd=tmp_path)
    assert status != 0 and "no tensor" in said, said


def test_long_keys_at_every_level(tmp_path):
    """Names of tensors are made of all keys on the way to them."""
    body = b"\x80\x02" + kept(text("x" * 20000))
    value = b"}"
    for _ in range(50):
        value = b"}" + get(0) + value + b"s"
    body += list_of(*[value] * 200) + b"."
    checkpoint(tmp_path / "a.pt", body)
    refuse("model", "a.pt", cwd=tmp_path, reason=AGAIN)


def test_names_of_long_texts(tmp_path):
    body = b"\x80\x04" + kept(text("x" * 100000)) + list_of(*[get(0) + get(0) + b"\x93"] * 20000)
    checkpoint(tmp_path / "a.pt", body + b".")
    refuse("model", "a.pt", cwd=tmp_path, reason=AGAIN)


def test_references_to_a_tensor(tmp_path):
    one = tensor(0, [1] * 60, [1] * 60)
    body = b"\x80\x02" + kept(one) + list_of(*[get(0)] * 200000) + b"."
    checkpoint(tmp_path / "a.pt", body, {"0": b"\0" * 64})
    refuse("model", "a.pt", cwd=tmp_path, reason=AGAIN)


def test_storages_with_long_names(tmp_path):
    """Looking for a storage keeps nothing of its name."""
    key = get(0)
    body = (b"\x80\x02" + kept(text("x" * 100000)) + kept(text("x" * 100000)) +
            list_of(*[tensor(0, [1], [1], key) for _ in range(2000)]) + b".")
    checkpoint(tmp_path / "a.pt", body, {"0": b"\0" * 64})
    refuse("model", "a.pt", cwd=tmp_path, reason="and there is none")


def test_deflated_pickle(tmp_path):
    body = b"\x80\x02](" + b"N0" * (100 * MIB) + b"e."
    checkpoint(tmp_path / "a.pt", body, method=zipfile.ZIP_DEFLATED)
    assert os.path.getsize(tmp_path / "a.pt") < MIB
    refuse("model", "a.pt", cwd=tmp_path, reason="unpacks to")


def test_deflated_pickle_of_values(tmp_path):
    body = b"\x80\x02](" + b")" * (4 * MIB) + b"e."
    checkpoint(tmp_path / "a.pt", body, method=zipfile.ZIP_DEFLATED)
    status, _, memory, seconds = tidemark("model", "a.pt", cwd=tmp_path)
    assert status != 0 and memory < MOST_MEMORY and seconds < MOST_SECONDS


def test_deflated_byte_order(tmp_path):
    checkpoint(tmp_path / "a.pt", b"\x80\x02}.", method=zipfile.ZIP_DEFLATED,
               order=b"little" * (30 * MIB))
    status, said, memory, seconds = tidemark("model", "a.pt", cwd=tmp_path)
    assert status != 0, said
    assert memory < MOST_MEMORY and seconds < MOST_SECONDS


def test_tensors_that_all_show_the_same_storage(tmp_path):
    """Each is scanned on its own: a thousand views of 8 MiB would be 8 GiB to look at."""
    n = 8 * MIB
    views = list_of(*[tensor(i, [n - 2000 - i], [1]) for i in range(1000)])
    checkpoint(tmp_path / "a.pt", b"\x80\x02" + views + b".", {"0": bytes(n)})
    said = refuse("model", "a.pt", cwd=tmp_path, reason="show the same data")
    assert "--no-scan" in said
    status, said, memory, _ = tidemark("model", "--no-scan", "a.pt", cwd=tmp_path)
    assert status == 0 and memory < MOST_MEMORY, said


def test_views_beside_padding(tmp_path):
    """A storage that no tensor shows does not count."""
    n = 8 * MIB
    views = list_of(*[tensor(i, [n - 2000 - i], [1]) for i in range(100)])
    checkpoint(tmp_path / "a.pt", b"\x80\x02" + views + b".", {"0": bytes(n), "1": bytes(6 * n)})
    refuse("model", "a.pt", cwd=tmp_path, reason="show the same data")


def test_sums_that_overflow(tmp_path):
    """Sixteen tensors of 2^60 bytes each: the sum is not zero."""
    meta = (name_of("torch._utils", "_rebuild_meta_tensor_no_storage") + b"(" +
            name_of("torch", "uint8") + b"(" + number(1 << 60) + b"t(" + number(1) + b"t\x89tR")
    checkpoint(tmp_path / "a.pt", b"\x80\x02" + list_of(*[meta] * 16) + b".")
    refuse("model", "a.pt", cwd=tmp_path, reason="larger than any memory")


# ---- safetensors

def test_header_nested_without_end(tmp_path):
    header = b'{"a":' * 200000
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    refuse("model", "a.safetensors", cwd=tmp_path, reason="")


def test_header_longer_than_the_file(tmp_path):
    for length in (1 << 63, (1 << 64) - 1, 99 * MIB):
        (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", length) + b'{"a":1}')
        refuse("model", "a.safetensors", cwd=tmp_path, reason="header")


# Behind any eight bytes, these make the plain hash of a text (base/hash.h) the same.
COLLIDING = b"\xdb\x28\xb4\xa0\xd1\x7e\x03\xe7"


def test_names_that_fall_into_one_place(tmp_path):
    """Tables are seeded: nobody can choose names that are all looked through for each."""
    tail = COLLIDING.replace(b"\x03", b"\\u0003")
    entries = [b'"%08d%s":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % (i, tail)
               for i in range(50000)]
    header = b"{" + b",".join(entries) + b"}"
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    status, said, _, seconds = tidemark("model", "a.safetensors", cwd=tmp_path)
    assert status == 0, said
    assert seconds < MOST_SECONDS

    names = [b"X" + struct.pack("<I", 16) + b"%08d" % i + COLLIDING for i in range(50000)]
    events = list_of(*[b"}(" + get(0) + name + get(1) + get(2) + b"u" for name in names])
    body = with_kept([text("user_metadata"), text("action"), text("snapshot")],
                     snapshot(events=events))
    (tmp_path / "a.pickle").write_bytes(body)
    status, said, _, seconds = tidemark("import", "a.pickle", cwd=tmp_path)
    assert status == 0, said
    assert seconds < MOST_SECONDS


def test_many_tensors_without_elements(tmp_path):
    """They are all alike: looking for tied tensors must not compare each with each."""
    entry = '"t%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join(entry % i for i in range(60000)) + "}").encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    status, said, memory, seconds = tidemark("model", "a.safetensors", cwd=tmp_path)
    assert status == 0, said
    assert memory < MOST_MEMORY and seconds < MOST_SECONDS


def test_many_tensors_over_the_same_bytes(tmp_path):
    entry = '"t%d":{"dtype":"U8","shape":[1000],"data_offsets":[0,1000]}'
    header = ("{" + ",".join(entry % i for i in range(5000)) + "}").encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(1000))
    refuse("model", "a.safetensors", cwd=tmp_path, reason="overlap")
