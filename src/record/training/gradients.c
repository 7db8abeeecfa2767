/* SPDX-License-Identifier: MIT */
/* record/training/gradients.c - see gradients.h.
 *
 * The table uses open addressing and is at most half full. It is made while no backward runs,
 * except one that C++ runs by itself, or one that has failed on a thread that has not found that
 * out yet. A node of such a backward finds its parameter, or none, or an earlier name; no pointer
 * in the table is followed. */
#include "record/training/gradients.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/region.h"
#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/hot.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/loader/import_slots.h"
#include "record/loader/library.h"
#include "record/loader/peek.h"
#include "record/training/bridge_python.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { N_WORDS = 128, MAX_LOOKS = 1 << 12, MAX_SLOTS = 1 << 18, ENOUGH_PEEKS = 16 };

struct tensor {
    const uintptr_t *data; /* an at::Tensor is a pointer to its c10::TensorImpl, and no more */
};

struct node_input { /* the beginning of a std::vector of tensors */
    const struct tensor *begin, *end;
};

struct gradient_slot {
    _Atomic uint64_t cdata; /* 0: free */
    _Atomic uint64_t what;  /* name, device and state, from the low end */
    _Atomic uint64_t said;
    /* the slot after it the last time: mostly also in the next backward */
    _Atomic uint32_t next;
};

/* What AccumulateGrad::apply() returns, a std::vector. It is returned in memory, like C's large
 * structs. */
struct tensor_list {
    void *begin, *end, *limit;
};
typedef struct tensor_list apply_function(void *node, void *input);

/* The data that each node needs, in one cache line. */
static struct {
    struct gradient_slot *slots;
    const struct tensor *(*grad)(const void *data); /* torch's functions */
    int32_t (*address)(const struct tensor *tensor, void **ret);
    apply_function *apply;
    const void *undefined;       /* what an undefined tensor points to */
    _Atomic uint32_t mask;       /* the slots' number - 1 */
    _Atomic uint32_t place;      /* index of the parameter among a node's words; 0: not known */
    _Atomic uint32_t n_expected; /* inputs that have looked as expected */
    _Atomic uint32_t n_captures; /* backwards under way that make no gradients of parameters */
    _Atomic bool is_watched;     /* nodes are looked at */
    _Atomic bool met_listed, met_untrusted, met_stranger;
} gradients TMK_HOT_DATA;
_Static_assert(sizeof gradients <= 64, "one line");

static struct {
    uintptr_t *apply_at;      /* its place in the class's table; NULL: torch lacks something */
    _Atomic bool is_in;       /* the hook is in */
    _Atomic uint32_t n_looks; /* nodes that were searched for the place */
    _Atomic uint32_t hits[N_WORDS]; /* how often each word was a parameter */
    struct tmk_region memory;
} seldom_used;

/* The slot that the thread's last node used. */
static __thread uint32_t last_slot __attribute__((tls_model("initial-exec")));

static bool find_functions(void)
{
    static const char c10[] = "libc10.so", cpu[] = "libtorch_cpu.so";
    uintptr_t *table = tmk_library_symbol(cpu, "_ZTVN5torch8autograd14AccumulateGradE");
    *(void **)&gradients.apply = tmk_library_symbol(
        cpu, "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE");
    *(void **)&gradients.grad = tmk_library_symbol(c10, "_ZNK3c1010TensorImpl4gradEv");
    gradients.undefined = tmk_library_symbol(c10, "_ZN3c1019UndefinedTensorImpl10_singletonE");
    *(void **)&gradients.address = tmk_library_symbol(cpu, "aoti_torch_get_data_ptr");
    if (!table || !gradients.apply || !gradients.grad || !gradients.undefined || !gradients.address)
        return false;
    size_t n = tmk_library_symbol_bytes(table) / sizeof *table;
    for (size_t i = 2; i < n; i++) /* the table begins with an offset and the class's description */
        if (table[i] == (uintptr_t)gradients.apply) {
            seldom_used.apply_at = &table[i];
            return true;
        }
    return false;
}

/* ---- the table ---- */

/* Find the parameter's slot, or the slot where a new one is to go; NULL: there is none. */
static inline struct gradient_slot *find_slot(uint64_t cdata, bool is_new)
{
    uint32_t mask = atomic_load_explicit(&gradients.mask, memory_order_relaxed);
    uint32_t i = (uint32_t)((cdata >> 4) * 0x9e3779b97f4a7c15u >> 32) & mask;
    for (uint32_t n = 0; cdata && gradients.slots && n <= mask; n++, i = (i + 1) & mask) {
        struct gradient_slot *slot = &gradients.slots[i];
        uint64_t found = atomic_load_explicit(&slot->cdata, memory_order_acquire);
        if (found == cdata)
            return slot;
        if (found == 0)
            return is_new ? slot : NULL;
    }
    return NULL;
}

static uint64_t pack_parameter(const struct tmk_gradients_parameter *p)
{
    return (uint64_t)p->state << 48 | (uint64_t)p->device << 32 | p->name;
}

void tmk_gradients_clear(uint32_t n)
{
    uint32_t n_slots = 16;
    tmk_gradients_stop();
    if (!gradients.slots &&
        tmk_region_init(&seldom_used.memory, MAX_SLOTS * sizeof *gradients.slots) == 0)
        gradients.slots = seldom_used.memory.base;
    if (!gradients.slots)
        return;
    tmk_region_clear(&seldom_used.memory);
    while (n_slots < MAX_SLOTS && n_slots < 2 * n)
        n_slots *= 2;
    atomic_store(&gradients.mask, n_slots - 1);
    for (uint32_t i = 0; i < N_WORDS; i++)
        atomic_store(&seldom_used.hits[i], 0);
}

/* If two entries have the same tensor the first counts, because the other tables have its name. */
void tmk_gradients_put(const struct tmk_gradients_parameter *p)
{
    struct gradient_slot *slot = find_slot(p->cdata, true);
    if (!slot || atomic_load(&slot->cdata))
        return;
    atomic_store(&slot->what, pack_parameter(p));
    atomic_store(&slot->said, p->said);
    atomic_store_explicit(&slot->cdata, p->cdata, memory_order_release);
}

bool tmk_gradients_find(uint64_t cdata, struct tmk_gradients_parameter *ret)
{
    const struct gradient_slot *slot = find_slot(cdata, false);
    if (!slot)
        return false;
    uint64_t what = atomic_load(&slot->what);
    *ret = (struct tmk_gradients_parameter){.cdata = cdata,
                                            .state = (enum tmk_gradients_state)(what >> 48),
                                            .name = (uint32_t)what,
                                            .device = (uint16_t)(what >> 32),
                                            .said = atomic_load(&slot->said)};
    return true;
}

bool tmk_gradients_watch(void)
{
    bool is_placed = atomic_load(&gradients.place) != 0;
    bool may_look = is_placed || atomic_load(&seldom_used.n_looks) < MAX_LOOKS;
    if (!gradients.slots || !may_look || !(seldom_used.apply_at || find_functions()) ||
        !(atomic_load(&seldom_used.is_in) || tmk_gradients_switch(true, false)))
        return false;
    atomic_store(&gradients.is_watched, true);
    return is_placed;
}

void tmk_gradients_stop(void)
{
    atomic_store(&gradients.is_watched, false);
}

bool tmk_gradients_are_watched(void)
{
    return atomic_load(&gradients.is_watched);
}

/* The first word that was a parameter in most nodes: a node has no other parameter in itself. */
bool tmk_gradients_learn(uint32_t n_gradients)
{
    uint32_t n_looks = atomic_load(&seldom_used.n_looks);
    uint32_t n_nodes = n_gradients < n_looks ? n_gradients : n_looks;
    if (atomic_load(&gradients.place) || n_nodes == 0)
        return false;
    for (uint32_t i = 1; i < N_WORDS; i++)
        if (atomic_load(&seldom_used.hits[i]) > n_nodes / 2 &&
            atomic_load(&seldom_used.hits[i]) > 1) {
            atomic_store(&gradients.place, i);
            return true;
        }
    return false;
}

static bool take_flag(_Atomic bool *flag)
{
    return atomic_load_explicit(flag, memory_order_relaxed) && atomic_exchange(flag, false);
}

bool tmk_gradients_met_listed(void)
{
    return take_flag(&gradients.met_listed);
}

bool tmk_gradients_met_untrusted(void)
{
    return take_flag(&gradients.met_untrusted);
}

bool tmk_gradients_met_stranger(void)
{
    return take_flag(&gradients.met_stranger);
}

void tmk_gradients_begin_capture(void)
{
    atomic_fetch_add(&gradients.n_captures, 1);
}

/* The count is 0 in a child that was forked inside such a backward. */
void tmk_gradients_end_capture(void)
{
    uint32_t n = atomic_load(&gradients.n_captures);
    while (n > 0 && !atomic_compare_exchange_weak(&gradients.n_captures, &n, n - 1))
        ;
}

void tmk_gradients_reset(void)
{
    tmk_gradients_clear(0);
    atomic_store(&seldom_used.n_looks, 0);
    atomic_store(&gradients.n_captures, 0);
}

/* ---- nodes ---- */

/* Words behind the node's own may be parameters too: those of other nodes. */
__attribute__((noinline, cold)) static void look_for_place(const void *node)
{
    uint64_t words[N_WORDS];
    if (atomic_fetch_add(&seldom_used.n_looks, 1) >= MAX_LOOKS)
        tmk_gradients_stop();
    else if (tmk_peek(node, words, sizeof words))
        for (uint32_t i = 1; i < N_WORDS; i++)
            if (find_slot(words[i], false))
                atomic_fetch_add(&seldom_used.hits[i], 1);
}

/* Check through the kernel, the first few times, that the input is what we take it for. */
static bool is_input_expected(const void *input, uintptr_t class)
{
    struct node_input in;
    struct tensor tensor;
    uintptr_t its_class;
    if (atomic_load_explicit(&gradients.n_expected, memory_order_relaxed) >= ENOUGH_PEEKS)
        return true;
    if (!tmk_peek(input, &in, sizeof in) || in.end - in.begin != 1 ||
        !tmk_peek(in.begin, &tensor, sizeof tensor) ||
        !tmk_peek(tensor.data, &its_class, sizeof its_class) || its_class != class)
        return false;
    atomic_fetch_add(&gradients.n_expected, 1);
    return true;
}

/* The address of the gradient that will be made of the input. A tensor of another class than the
 * parameter's, such as a sparse one, may have no address, which torch may report on stderr. */
static uint64_t address_of_gradient(const struct node_input *in, uintptr_t class)
{
    void *address = NULL;
    if (!is_input_expected(in, class) || in->end - in->begin != 1 || in->begin->data[0] != class ||
        gradients.address(in->begin, &address) != 0 || !address)
        return TMK_GRADIENT_SOMEWHERE;
    return (uint64_t)(uintptr_t)address;
}

/* Each slot is used once in a backward, when the caches have forgotten it: fetch the next one. */
static inline void fetch_next(struct gradient_slot *slot)
{
    uint32_t i = (uint32_t)(slot - gradients.slots), last = last_slot;
    if (atomic_load_explicit(&gradients.slots[last].next, memory_order_relaxed) != i)
        atomic_store_explicit(&gradients.slots[last].next, i, memory_order_relaxed);
    last_slot = i;
    uint32_t next = atomic_load_explicit(&slot->next, memory_order_relaxed);
    __builtin_prefetch((const void *)&gradients.slots[next]);
}

static struct gradient_slot *slot_of_node(const void *node, uint64_t *ret_parameter)
{
    uint32_t place = atomic_load_explicit(&gradients.place, memory_order_relaxed);
    if (__builtin_expect(place == 0, 0)) {
        look_for_place(node);
        return NULL;
    }
    *ret_parameter = ((const uint64_t *)node)[place];
    struct gradient_slot *slot = find_slot(*ret_parameter, false);
    if (slot)
        fetch_next(slot);
    else
        atomic_store_explicit(&gradients.met_stranger, true, memory_order_relaxed);
    return slot;
}

/* A gradient that exists already is added to, and was tagged when it was made. It is not looked at,
 * because another thread may be about to take it away. */
TMK_HOT_CODE(5) struct tmk_gradients_found tmk_gradients_look(const void *node, const void *input)
{
    struct tmk_gradients_found found = {0};
    if (tmk_bridge_is_off() || atomic_load_explicit(&gradients.n_captures, memory_order_relaxed))
        return found;
    uint64_t parameter;
    struct gradient_slot *slot = slot_of_node(node, &parameter);
    if (!slot)
        return found;
    uint64_t what = atomic_load_explicit(&slot->what, memory_order_relaxed);
    enum tmk_gradients_state state = (enum tmk_gradients_state)(what >> 48);
    if (state == TMK_GRADIENT_LISTED) {
        atomic_store_explicit(&slot->said, TMK_GRADIENT_SOMEWHERE, memory_order_relaxed);
        atomic_store_explicit(&gradients.met_listed, true, memory_order_relaxed);
        return found;
    }
    const uintptr_t *data = (const uintptr_t *)(uintptr_t)parameter; /* the node holds it */
    if (gradients.grad(data)->data != gradients.undefined)
        return found;
    if (state != TMK_GRADIENT_TRUSTED)
        atomic_store_explicit(&gradients.met_untrusted, true, memory_order_relaxed);
    if (state == TMK_GRADIENT_ODD)
        return found;
    uint64_t address = address_of_gradient(input, data[0]);
    atomic_store_explicit(&slot->said, address, memory_order_relaxed);
    if (state == TMK_GRADIENT_TRUSTED && address != TMK_GRADIENT_SOMEWHERE)
        found = (struct tmk_gradients_found){what, address};
    return found;
}

/* True when the tag may reuse the timestamp of the lane's last record. The gradient's block came
 * before the tag; if the last block record of the device was written on this thread, the lane's
 * last record is not before that. (A record of another block may be being written.) False when the
 * tag would turn the page, and for a device whose place belongs to another one. */
static inline bool is_behind_block(const struct tmk_lane *lane, uint16_t device)
{
    const struct tmk_fast_path_device *said = tmk_fast_path_device_of(device);
    return lane->cursor < lane->end && tmk_fast_path_may_share(lane, said) &&
           atomic_load_explicit(&said->torch_device, memory_order_relaxed) ==
               tmk_accelerator_of(device);
}

/* Reading the TSC dominates the cost of a tag (fast_path.h). */
TMK_HOT_CODE(5) void tmk_gradients_tag(struct tmk_gradients_found found)
{
    struct tmk_lane *lane = found.address && !tmk_bridge_is_off() ? tmk_lane_enter() : NULL;
    if (!lane)
        return;
    uint16_t device = (uint16_t)(found.what >> 32);
    bool shares = is_behind_block(lane, device);
    uint64_t ticks = shares ? lane->cursor[-1].ticks : tmk_clock_ticks(tmk_recorder.counter);
    tmk_lane_put_at(lane, ticks, TMK_KIND_TAG, device, (uint32_t)found.what, found.address,
                    TIDEMARK_GRADIENT);
    lane->is_block = shares;
    tmk_lane_leave(lane);
}

/* The hook in front of AccumulateGrad::apply(). What that raises passes through here. */
TMK_HOT_CODE(5) static struct tensor_list hook_apply(void *node, void *input)
{
    struct tmk_gradients_found found = {0};
    if (atomic_load_explicit(&gradients.is_watched, memory_order_relaxed))
        found = tmk_gradients_look(node, input);
    struct tensor_list result = gradients.apply(node, input);
    tmk_gradients_tag(found);
    return result;
}

bool tmk_gradients_switch(bool in, bool stays_open)
{
    uintptr_t function = (uintptr_t)(in ? hook_apply : gradients.apply);
    if (!seldom_used.apply_at || !tmk_import_word_write(seldom_used.apply_at, function, stays_open))
        return false;
    atomic_store(&seldom_used.is_in, in);
    return true;
}
