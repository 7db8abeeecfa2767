/* SPDX-License-Identifier: MIT */
/* test_valid_trace.c - the invariants of ring, segments and state: each of them, broken, is found.
 */
#include "breaking.h"

#include "base/index.h"
#include "base/valid.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"
#include "trace/segments.h"
#include "trace/state.h"

/* ---- ring ---- */

static void put_record(struct tmk_page *page, uint32_t at, uint8_t n_slots)
{
    page->slots[at].ticks = 7;
    tmk_record_publish(&page->slots[at],
                       (union tmk_record_head){{.kind = TMK_KIND_FREE, .n_slots = n_slots}});
}

/* Two pages are in use, one with records of 1, 2 and 1 slots; two are free. */
static void make_ring(struct tmk_ring *ring, struct tmk_page **ret_one, struct tmk_page **ret_two)
{
    static const uint8_t id[16] = "valid ring or no";
    assert_int_equal(tmk_ring_create(ring, NULL, 4, 6, id, "/nowhere", NULL), 0);
    struct tmk_page *one = *ret_one = tmk_ring_take(ring, 1);
    *ret_two = tmk_ring_take(ring, 2);
    put_record(one, 0, 1);
    put_record(one, 1, 2);
    put_record(one, 3, 1);
    atomic_store(&one->done, 5 << 16 | 3);
    atomic_store(&one->done_before, 4 << 16 | 1);
    tmk_page_seal(one);
}

static void ring_header(void **unused)
{
    (void)unused;
    struct tmk_ring r;
    struct tmk_page *one, *two, *free_page;
    make_ring(&r, &one, &two);
    struct tmk_ring_header *h = r.header;
    BREAK(*h, h->magic[0] = 'X', tmk_ring_is_valid(&r));
    BREAK(*h, h->header_bytes = 1, tmk_ring_is_valid(&r));
    BREAK(*h, h->page_bytes = 1, tmk_ring_is_valid(&r));
    BREAK(*h, atomic_store(&h->n_pages, 7), tmk_ring_is_valid(&r));
    BREAK(r, r.pages++, tmk_ring_is_valid(&r));
    BREAK(r, r.size_bytes++, tmk_ring_is_valid(&r));
    BREAK(r, r.max_pages = 5, tmk_ring_is_valid(&r));
    /* The list. */
    free_page = &r.pages[(uint32_t)atomic_load(&h->free_list) - 1];
    uint32_t itself = (uint32_t)(free_page - r.pages) + 1;
    BREAK(*h, atomic_store(&h->free_list, 5), tmk_ring_is_valid(&r)); /* of four pages */
    BREAK(*h, atomic_store(&h->free_list, 1), tmk_ring_is_valid(&r)); /* it is in use */
    BREAK(*h, atomic_store(&h->free_list, free_page->next_free), tmk_ring_is_valid(&r));
    BREAK(*free_page, free_page->next_free = itself, tmk_ring_is_valid(&r));
    BREAK(*free_page, atomic_store(&free_page->state, TMK_PAGE_USED), tmk_ring_is_valid(&r));
    tmk_ring_close(&r);
}

static void ring_pages(void **unused)
{
    (void)unused;
    struct tmk_ring r;
    struct tmk_page *one, *two;
    make_ring(&r, &one, &two);
    struct tmk_page *free_page = &r.pages[(uint32_t)atomic_load(&r.header->free_list) - 1];
    BREAK(*free_page, free_page->slots[TMK_PAGE_SLOTS - 1].b = 1, tmk_ring_is_valid(&r));
    BREAK(*free_page, free_page->slots[0].a = 1, tmk_page_is_blank(&r, free_page));
    assert_false(tmk_page_is_blank(&r, r.pages + 4));
    note_failed();
    BREAK(*one, atomic_store(&one->state, 3), tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->state, TMK_PAGE_FREE), tmk_ring_is_valid(&r));
    BREAK(*two, atomic_store(&two->state, TMK_PAGE_FREE), tmk_ring_is_valid(&r));
    BREAK(*one, one->number = 0, tmk_ring_is_valid(&r));
    BREAK(*one, one->number = 3, tmk_ring_is_valid(&r)); /* not given out yet */
    BREAK(*one, one->number = two->number, tmk_ring_is_valid(&r));
    /* Records. */
    BREAK(*one, atomic_store(&one->slots[1].head, 2 << 8), tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->slots[1].head, TMK_KIND_FREE), tmk_ring_is_valid(&r));
    BREAK(*one, put_record(one, 4, 255); put_record(one, 259, 255), tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->slots[3].head, 0), tmk_ring_is_valid(&r));
    BREAK(*one, one->slots[TMK_PAGE_SLOTS - 1].a = 1, tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->done, 5 << 16 | 2), tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->done, 5 << 16 | 511), tmk_ring_is_valid(&r));
    BREAK(*one, atomic_store(&one->done_before, 2), tmk_ring_is_valid(&r));
    tmk_ring_close(&r);
    must_have_failed("src/trace/ring_valid.c");
}

/* ---- index ---- */

static void index_of_numbers(void **unused)
{
    (void)unused;
    uint64_t slots[8] = {0};
    struct tmk_index x = tmk_index_of(slots, 8);
    for (uint32_t i = 1; i <= 3; i++)
        tmk_index_add(&x, 5, i); /* to slots 5, 6 and 7 */
    BREAK(x, x.mask = 6, tmk_index_is_valid(&x));
    BREAK(x, x.n = 2, tmk_index_is_valid(&x));
    BREAK(slots, slots[5] = 0; x.n = 2, tmk_index_is_valid(&x)); /* a hole in the chain */
    x.n = 3;
    BREAK(slots, slots[6] = UINT64_C(5) << 32, tmk_index_is_valid(&x));
    for (uint32_t i = 4; i <= 5; i++)
        tmk_index_add(&x, 5, i);
    assert_false(tmk_index_is_valid(&x)); /* more than half full */
    note_failed();
    must_have_failed("src/base/index_valid.c");
}

/* ---- segments ---- */

static void segments(void **unused)
{
    (void)unused;
    struct tmk_segments s;
    uint32_t at = 0;
    assert_int_equal(tmk_segments_init(&s, 8), 0);
    for (uint64_t i = 0; i < 4; i++)
        tmk_segments_begin(&s, &(struct tmk_driver_segment){.address = i << 21,
                                                            .size_bytes = 9,
                                                            .kind = TMK_SEGMENT_DEVICE});
    assert_true(tmk_segments_end(&s, TMK_SEGMENT_DEVICE, 1 << 21, NULL));
    while (!s.index.slots[at])
        at++;
    BREAK(s, s.max = 2, tmk_segments_is_valid(&s));
    BREAK(s.index, s.index.n--, tmk_segments_is_valid(&s));
    BREAK(s.index.slots[at], s.index.slots[at] = 0, tmk_segments_is_valid(&s));
    BREAK(s.items[1], s.items[1] = s.items[0], tmk_segments_is_valid(&s));
    tmk_segments_fini(&s);
    must_have_failed("src/trace/segments_valid.c");
}

/* ---- state ---- */

enum { FORWARD = 1, BACKWARD, LAYER, CUDA = 256 };

static void alloc_block(struct tmk_state *s, uint16_t device, uint64_t address, uint64_t size)
{
    struct tmk_shape shape = {.size_bytes = size, .stack = 1};
    tmk_state_alloc(s, tmk_state_entry(s, device, address), s->now_ns + 1, device, 1, &shape);
}

/* Two devices, a block of each and one that was freed; on thread 1 a module in a stage, on thread 2
 * a backward stage, and a range that was closed. */
static void make_state(struct tmk_state *s)
{
    static const struct tmk_state_limits limits = {
        .max_blocks = 16, .max_contexts = 16, .max_ranges = 8, .max_threads = 4, .max_segments = 8};
    assert_int_equal(tmk_state_init(s, &limits), 0);
    tmk_state_learn_stage(s, FORWARD, TMK_STAGE_FORWARD);
    tmk_state_learn_stage(s, BACKWARD, TMK_STAGE_BACKWARD);
    tmk_state_push(s, 1, 1, TIDEMARK_STAGE, FORWARD);
    tmk_state_push(s, 2, 1, TIDEMARK_MODULE, LAYER);
    tmk_state_push(s, 3, 2, TIDEMARK_STAGE, BACKWARD);
    tmk_state_push(s, 4, 2, TIDEMARK_MODULE, LAYER);
    assert_true(tmk_state_pop(s, 5, 2, TIDEMARK_MODULE, NULL));
    alloc_block(s, CUDA, 4096, 512);
    alloc_block(s, CUDA + 1, 4096, 1024);
    alloc_block(s, CUDA, 8192, 2048);
    assert_true(tmk_state_free(s, tmk_state_find(s, CUDA, 8192), 20, CUDA, 1));
    tmk_state_reserved(s, 21, CUDA, 4096);
    tmk_state_segment(s, 22, 1,
                      &(struct tmk_driver_segment){
                          .address = 4096, .size_bytes = 4096, .kind = TMK_SEGMENT_DEVICE});
}

/* Some slot that is taken. */
static uint64_t *taken_slot(const struct tmk_index *index)
{
    uint64_t *slot = index->slots;
    while (!*slot)
        slot++;
    return slot;
}

static void state_entries(void **unused)
{
    (void)unused;
    struct tmk_state s;
    make_state(&s);
    struct tmk_block *b = tmk_state_find(&s, CUDA, 4096);
    uint64_t *slot = taken_slot(&s.entry_index);
    BREAK(s, s.limits.max_blocks = 2, tmk_state_is_valid(&s));
    BREAK(s, s.entry_index.n--, tmk_state_is_valid(&s));
    BREAK(*slot, *slot = 0, tmk_state_is_valid(&s));
    BREAK(*b, b->context = 9, tmk_state_is_valid(&s));
    BREAK(*b, b->address++, tmk_state_is_valid(&s));
    BREAK(*b, b->device++, tmk_state_is_valid(&s)); /* that is another block */
    BREAK(*b, b->live = 0, tmk_state_is_valid(&s));
    BREAK(s, s.n_live++, tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static void state_contexts(void **unused)
{
    (void)unused;
    struct tmk_state s;
    make_state(&s);
    struct tmk_context *stage = &s.contexts[1], *module = &s.contexts[2];
    uint64_t *slot = taken_slot(&s.context_index);
    BREAK(s, s.limits.max_contexts = 2, tmk_state_is_valid(&s));
    BREAK(*slot, *slot = 0, tmk_state_is_valid(&s));
    BREAK(s, s.context_index.n--, tmk_state_is_valid(&s));
    BREAK(s.contexts[0], s.contexts[0].module = 1, tmk_state_is_valid(&s));
    BREAK(*module, module->parent = 2, tmk_state_is_valid(&s));
    BREAK(*module, module->module = 1, tmk_state_is_valid(&s));
    BREAK(*module, module->stage = 2, tmk_state_is_valid(&s));
    BREAK(*module, module->stage_kind = TMK_STAGE_EVAL, tmk_state_is_valid(&s));
    BREAK(*stage, stage->stage_kind = TMK_N_STAGES, tmk_state_is_valid(&s));
    BREAK(*stage, stage->name = LAYER, tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static void state_ranges(void **unused)
{
    (void)unused;
    struct tmk_state s;
    make_state(&s);
    struct tmk_open_range *module = &s.ranges[s.thread_top[1] - 1];
    struct tmk_open_range *backward = &s.ranges[s.thread_top[2] - 1];
    BREAK(s, s.limits.max_ranges = 3, tmk_state_is_valid(&s));
    BREAK(s, s.limits.max_threads = 2, tmk_state_is_valid(&s));
    BREAK(s.thread_top[1], s.thread_top[1] = 5, tmk_state_is_valid(&s));
    BREAK(s.thread_top[1], s.thread_top[1] = 1, tmk_state_is_valid(&s)); /* one is lost */
    BREAK(*module, module->outer = 2, tmk_state_is_valid(&s));           /* itself */
    BREAK(*module, module->outer = 5, tmk_state_is_valid(&s));
    BREAK(*module, module->context = 9, tmk_state_is_valid(&s));
    BREAK(*module, module->context = backward->context, tmk_state_is_valid(&s));
    BREAK(*module, module->name = FORWARD, tmk_state_is_valid(&s));
    BREAK(*module, module->stage = 2, tmk_state_is_valid(&s));
    BREAK(*module, module->is_backward = true, tmk_state_is_valid(&s));
    BREAK(*module, module->in_backward = true, tmk_state_is_valid(&s));
    BREAK(s, s.free_range = 5, tmk_state_is_valid(&s));
    BREAK(s, s.free_range = 0, tmk_state_is_valid(&s));
    BREAK(s, s.n_backward = 0, tmk_state_is_valid(&s));
    BREAK(s, s.backward_start_ns--, tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static void state_devices(void **unused)
{
    (void)unused;
    struct tmk_state s;
    make_state(&s);
    struct tmk_device_use *d = &s.devices[0];
    struct tmk_block *b = tmk_state_find(&s, CUDA, 4096);
    assert_int_equal(d->device, CUDA);
    BREAK(s, s.n_devices = TMK_MAX_DEVICES + 1, tmk_state_is_valid(&s));
    BREAK(s, s.n_stage_names = TMK_MAX_STAGE_NAMES + 1, tmk_state_is_valid(&s));
    BREAK(*d, d->row.device++, tmk_state_is_valid(&s));
    BREAK(*d, d->row.device = ++d->device, tmk_state_is_valid(&s)); /* that is the other one */
    BREAK(s.segments, s.segments.max = 0, tmk_state_is_valid(&s));
    BREAK(s.segments, s.segments.n_begun = 0, tmk_state_adds_up(&s));
    BREAK(*d, d->row.step = 1, tmk_state_adds_up(&s));
    BREAK(*d, d->row.has_reserved = false, tmk_state_adds_up(&s));
    BREAK(*d, d->allocated_bytes++, tmk_state_adds_up(&s));
    BREAK(*b, b->size_bytes--, tmk_state_adds_up(&s));
    BREAK(*d, d->row.peak_bytes = 511, tmk_state_adds_up(&s));
    BREAK(*d, d->max_bytes = 511, tmk_state_adds_up(&s));
    BREAK(*d, d->reserved_bytes++, tmk_state_adds_up(&s));
    BREAK(*d, d->max_reserved_bytes--, tmk_state_adds_up(&s));
    BREAK(*b, b->serial = 4, tmk_state_adds_up(&s));
    BREAK(*b, b->alloc_ns = 23, tmk_state_adds_up(&s));
    s.n_outside = 1; /* a block without an entry has bytes too */
    d->allocated_bytes++;
    assert_true(tmk_state_adds_up(&s));
    tmk_state_fini(&s);
    must_have_failed("src/trace/state_valid.c");
}

/* ---- when a check is due ---- */

static void due(void **unused)
{
    (void)unused;
    struct tmk_checks checks = {0};
    for (int i = 0; i < TMK_CHECK_FIRST; i++)
        assert_true(tmk_check_is_due(&checks, TMK_CHECK_FIRST_ITEMS));
    for (int i = 0; i < 5; i++)
        assert_true(tmk_check_is_due(&checks, TMK_CHECK_PAID_ITEMS));
    for (int round = 0; round < 3; round++) {
        assert_false(tmk_check_is_due(&checks, 2 * TMK_CHECK_PAID_ITEMS + 1));
        assert_false(tmk_check_is_due(&checks, 2 * TMK_CHECK_PAID_ITEMS + 1));
        assert_true(tmk_check_is_due(&checks, 2 * TMK_CHECK_PAID_ITEMS + 1));
    }
    checks = (struct tmk_checks){0};
    assert_false(tmk_check_is_due(&checks, TMK_CHECK_FIRST_ITEMS + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_header),
        cmocka_unit_test(ring_pages),
        cmocka_unit_test(index_of_numbers),
        cmocka_unit_test(segments),
        cmocka_unit_test(state_entries),
        cmocka_unit_test(state_contexts),
        cmocka_unit_test(state_ranges),
        cmocka_unit_test(state_devices),
        cmocka_unit_test(due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
