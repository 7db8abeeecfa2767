/* SPDX-License-Identifier: MIT */
/* record/control/preexisting.c - see preexisting.h. */
#include "record/control/preexisting.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/futex.h"
#include "record/core/fast_path_state.h"
#include "record/core/helper.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/loader/library.h"
#include "record/python/python.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { STACK_BYTES = 1 << 20 };
static const uint64_t hook_limit_ns = 5000000000u;
static const uint64_t hold_limit_ns = 3000000000u;

/* Blocks lie one behind the other in their segment; old versions do not give each one's address. A
 * block that waits for its streams has been reported as freed already. */
static const char list_source[] =
    "def note(begin, record):\n"
    "    import sys\n"
    "    torch = sys.modules.get('torch')\n"
    "    if torch is None or not torch.cuda.is_initialized():\n"
    "        return\n"
    "    begin()\n"
    "    for segment in torch.cuda.memory_snapshot():\n"
    "        address = segment['address']\n"
    "        for block in segment['blocks']:\n"
    "            if block['state'] == 'active_allocated':\n"
    "                record(segment['device'], address, block['size'])\n"
    "            address += block['size']\n";

/* One at a time. After a detach, a thread that still waits for the interpreter's lock keeps another
 * from being started, and then finds that it has nothing to do. */
static struct {
    atomic_flag running;
    struct tmk_slot_count count;
    _Atomic uint32_t hooked;
    uint64_t ticks; /* just before the list was made */
    uint32_t stack;
    const struct tmk_python *py;
    struct tmk_lane lane; /* beside the thread's own, in which its records would be out of order */
} listing = {.running = ATOMIC_FLAG_INIT};

static bool is_recording_over(void)
{
    return atomic_load(&tmk_recorder.control->generation) != listing.lane.generation;
}

/* begin(), for the Python side: the list is about to be made. */
static struct tmk_object *begin_list(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self, (void)arguments;
    tmk_packing_hold(tmk_clock_monotonic_ns() + hold_limit_ns);
    /* While packing is held, blocks take the slow path, and afterwards no free reuses an earlier
     * timestamp: no free of a listed block is stamped before these ticks. */
    tmk_fast_path_close();
    listing.ticks = tmk_clock_ticks(tmk_recorder.counter);
    tmk_fast_path_end_all_sharing();
    return listing.py->Py_BuildValue("");
}

/* record(device, address, size), for the Python side. */
static struct tmk_object *record_listed(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self;
    const struct tmk_python *py = listing.py;
    long values[3];
    for (int i = 0; i < 3; i++)
        values[i] = py->PyLong_AsLong(py->PyTuple_GetItem(arguments, i));
    uint16_t device = tmk_cuda_device((unsigned)values[0]);
    if (!is_recording_over())
        tmk_lane_put_at(&listing.lane, listing.ticks, TMK_KIND_FOUND, device, listing.stack,
                        (uint64_t)values[1], (uint64_t)values[2]);
    return py->Py_BuildValue("");
}

/* Needs the interpreter's lock. An exception means that there are no such blocks; it is dropped. */
static void note_with_lock(const struct tmk_python *py)
{
    static struct tmk_python_method begins = {"begin", begin_list, TMK_PYTHON_VARARGS, NULL};
    static struct tmk_python_method records = {"record", record_listed, TMK_PYTHON_VARARGS, NULL};
    struct tmk_object *names = tmk_python_names(py, "_tidemark_existing");
    bool done = names && tmk_python_run(py, names, list_source);
    struct tmk_object *note = done ? py->PyDict_GetItemString(names, "note") : NULL;
    struct tmk_object *arguments = note ? py->PyTuple_New(2) : NULL;
    struct tmk_object *result = NULL;
    if (arguments && /* the tuple takes the functions */
        py->PyTuple_SetItem(arguments, 0, py->PyCFunction_NewEx(&begins, NULL, NULL)) == 0 &&
        py->PyTuple_SetItem(arguments, 1, py->PyCFunction_NewEx(&records, NULL, NULL)) == 0)
        result = py->PyObject_CallObject(note, arguments);
    py->Py_DecRef(result);
    py->Py_DecRef(arguments);
    py->PyErr_Clear();
}

static bool open_own_lane(void)
{
    listing.lane = (struct tmk_lane){.generation = UINT32_MAX};
    if (!tmk_lane_open(&listing.lane))
        return false;
    listing.stack = tmk_intern_label(&listing.lane, "[alive before attach]");
    return true;
}

/* The lane and its definitions come first, so that its records are in order of time. */
static void *list_main(void *unused)
{
    (void)unused;
    const char *reason;
    bool open = open_own_lane();
    listing.count = tmk_torch_slots_put_in();
    tmk_futex_set(&listing.hooked, 1);
    listing.py = open && listing.stack ? tmk_python_find(&reason) : NULL;
    if (listing.py) {
        int state = listing.py->PyGILState_Ensure();
        if (!is_recording_over())
            note_with_lock(listing.py);
        listing.py->PyGILState_Release(state);
    }
    if (open)
        tmk_lane_close(&listing.lane);
    tmk_packing_hold(0);
    atomic_flag_clear(&listing.running);
    return NULL;
}

struct tmk_slot_count tmk_preexisting_hook(void)
{
    void *cuda = tmk_library_symbol("libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa");
    if (!cuda || atomic_flag_test_and_set(&listing.running))
        return tmk_torch_slots_put_in();
    atomic_store(&listing.hooked, 0);
    if (!tmk_helper_start(list_main, NULL, STACK_BYTES)) {
        atomic_flag_clear(&listing.running);
        return tmk_torch_slots_put_in();
    }
    tmk_futex_wait_while(&listing.hooked, 0, hook_limit_ns);
    return listing.count;
}
