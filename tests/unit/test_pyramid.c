/* SPDX-License-Identifier: MIT */
/* The pyramid: layers of each bin against what the peak pass says of the bin's moment, by every
 * dimension; blocks that are picked, against all of them; sums against SQL. */
#include "sql_fixture.h"

#include "maker.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "passes/pyramid/picked_blocks.h"
#include "passes/pyramid/pyramid.h"
#include "passes/timeline.h"
#include "sql/sql.h"
#include "tidemark/tidemark.h"
#include "trace/replay.h"

static const enum tmk_by dimensions[] = {TMK_BY_CATEGORY, TMK_BY_MODULE, TMK_BY_COMPONENT,
                                         TMK_BY_STAGE};

static struct tmk_pyramid *sweep_pyramid(struct tmk_run *run, uint32_t n_bins)
{
    struct tmk_pyramid *y = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_pyramid_open(tmk_run_process(run, 0), n_bins, &y), 0);
    struct tmk_visitor visitor = tmk_pyramid_visitor(y);
    assert_int_equal(tmk_process_sweep(tmk_run_process(run, 0), &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_pyramid_finish(y, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return y;
}

static uint64_t bytes_of(const struct tmk_pyramid *y, uint32_t d, enum tmk_by by, const char *key,
                         uint32_t bin)
{
    for (uint32_t k = 0; k < tmk_pyramid_n_keys(y, by); k++) {
        const char *name = tmk_pyramid_key(y, by, k);
        const uint64_t *bytes = tmk_pyramid_bytes(y, d, by, k);
        if (bytes && (name && key ? strcmp(name, key) == 0 : name == key))
            return bytes[bin];
    }
    return 0;
}

static uint64_t sum_of(const struct tmk_pyramid *y, uint32_t d, enum tmk_by by, uint32_t bin)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < tmk_pyramid_n_keys(y, by); k++) {
        const uint64_t *bytes = tmk_pyramid_bytes(y, d, by, k);
        sum += bytes ? bytes[bin] : 0;
    }
    return sum;
}

/* What is alive at a bin's moment, by every dimension. */
static void check_bin(struct tmk_run *run, const struct tmk_pyramid *y, uint32_t d, uint32_t bin)
{
    const struct tmk_timeline *t = tmk_pyramid_timeline(y);
    const struct tmk_timeline_part *part = &tmk_timeline_parts(t, d)[bin];
    struct tmk_moment moment = {
        .kind = TMK_MOMENT_TIME, .time_ns = part->max_ns, .device = tmk_timeline_device(t, d)};
    struct tmk_peak *k = maker_peak(run, moment);
    assert_int_equal(tmk_peak_bytes(k), part->max_bytes);
    for (unsigned i = 0; i < 4; i++) {
        const struct tmk_peak_row *rows;
        uint64_t n;
        assert_int_equal(tmk_peak_group(k, dimensions[i], &rows, &n, NULL), 0);
        for (uint64_t r = 0; r < n; r++)
            assert_int_equal(bytes_of(y, d, dimensions[i], rows[r].key, bin), rows[r].bytes);
        assert_int_equal(sum_of(y, d, dimensions[i], bin), part->max_bytes);
    }
    tmk_peak_close(k);
}

/* ---- by hand ---- */

/* Within a bin: a block that goes before its moment, one that sees it and goes, one that is born
 * and dies behind it; a tag that comes late; one that stays. */
static void test_by_hand(void **state)
{
    (void)state;
    static const struct {
        uint64_t most, parameter, unknown;
    } expected[] = {{160, 100, 60}, {190, 100, 90}, {100, 100, 0}, {107, 100, 7}};
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 0x10, 100, 0);
    m.ns = 20;
    maker_alloc(&m, CUDA0, 0x20, 50, 0);
    m.ns = 30;
    maker_free(&m, CUDA0, 0x20); /* sees 150, which is not the most */
    m.ns = 40;
    maker_alloc(&m, CUDA0, 0x30, 60, 0); /* 160: the first bin's moment */
    m.ns = 60;
    maker_alloc(&m, CUDA0, 0x40, 5, 0);
    m.ns = 61;
    maker_free(&m, CUDA0, 0x30);
    maker_alloc(&m, CUDA0, 0x50, 85, 0); /* 190: the second bin's */
    m.ns = 62;
    maker_free(&m, CUDA0, 0x40);
    maker_alloc(&m, CUDA0, 0x60, 1, 0);
    maker_free(&m, CUDA0, 0x60);
    maker_free(&m, CUDA0, 0x50);
    m.ns = 160;
    maker_tag(&m, CUDA0, 0x10, TIDEMARK_PARAMETER, 0);
    maker_alloc(&m, CUDA0, 0x70, 7, 0);
    m.ns = 200;
    maker_mark(&m, 0, "end");
    struct tmk_run *run = maker_finish(&m);
    struct tmk_pyramid *y = sweep_pyramid(run, 4);
    const struct tmk_timeline_part *parts = tmk_timeline_parts(tmk_pyramid_timeline(y), 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(parts[i].max_bytes, expected[i].most);
        assert_int_equal(bytes_of(y, 0, TMK_BY_CATEGORY, "parameter", i), expected[i].parameter);
        assert_int_equal(bytes_of(y, 0, TMK_BY_CATEGORY, "unknown", i), expected[i].unknown);
        check_bin(run, y, 0, i);
    }
    assert_int_equal(tmk_pyramid_blocks(y)->n_blocks, 7);
    assert_true(tmk_picked_blocks_has_all(tmk_pyramid_blocks(y)));
    tmk_pyramid_close(y);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_nothing(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 5;
    maker_mark(&m, 0, "only");
    struct tmk_run *run = maker_finish(&m);
    struct tmk_pyramid *y = sweep_pyramid(run, 16);
    assert_int_equal(tmk_timeline_n_devices(tmk_pyramid_timeline(y)), 0);
    assert_int_equal(tmk_pyramid_blocks(y)->n_blocks, 0);
    assert_true(tmk_picked_blocks_has_all(tmk_pyramid_blocks(y)));
    tmk_pyramid_close(y);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- at random ---- */

enum { SLOTS = 300, N_MODULES = 30, FIRST_MODULE = 10, FORWARD = 1, BACKWARD = 2 };

static void name_all(struct maker *m)
{
    maker_string(m, FORWARD, "forward");
    maker_string(m, BACKWARD, "backward");
    for (unsigned i = 0; i < N_MODULES; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%u.%s", i, i % 2 ? "attn" : "mlp");
        maker_string(m, FIRST_MODULE + i, name);
    }
}

static void change_range(struct maker *m, uint64_t dice, unsigned *ret_open)
{
    if (*ret_open) {
        maker_pop(m, TIDEMARK_MODULE);
        maker_pop(m, TIDEMARK_STAGE);
    } else {
        maker_push(m, TIDEMARK_STAGE, dice % 2 ? FORWARD : BACKWARD);
        maker_push(m, TIDEMARK_MODULE, FIRST_MODULE + (uint32_t)(dice / 2 % N_MODULES));
    }
    *ret_open = !*ret_open;
}

static void make_at_random(struct maker *m, uint32_t n_events)
{
    static bool live[2][SLOTS];
    uint64_t dice = 99;
    unsigned open = 0;
    memset(live, 0, sizeof live);
    name_all(m);
    for (uint32_t i = 0; i < n_events; i++) {
        plain_random(&dice);
        unsigned d = dice >> 7 & 1 && i > n_events / 3;
        uint32_t slot = (uint32_t)(dice >> 33) % SLOTS;
        m->ns += 10 + dice % 7;
        if (dice % 31 == 0)
            change_range(m, dice >> 40, &open);
        if (live[d][slot])
            maker_free(m, CUDA0 + d, 0x1000 + slot);
        else
            maker_alloc(m, CUDA0 + d, 0x1000 + slot, 1 + (dice >> 20) % 100000, 0);
        live[d][slot] = !live[d][slot];
        if (live[d][slot] && dice >> 60 < 8)
            maker_tag(m, CUDA0 + d, 0x1000 + slot, (unsigned)(dice >> 60) % 9 + 1, 0);
    }
}

static void test_at_random(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 7, 64, 300};
    struct maker m;
    maker_open(&m, 0);
    make_at_random(&m, 12000);
    struct tmk_run *run = maker_finish(&m);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct tmk_pyramid *y = sweep_pyramid(run, counts[c]);
        assert_int_equal(tmk_timeline_n_devices(tmk_pyramid_timeline(y)), 2);
        for (uint32_t i = 0; i < counts[c]; i += 1 + counts[c] / 40)
            for (uint32_t d = 0; d < 2; d++)
                check_bin(run, y, d, i);
        assert_true(tmk_picked_blocks_has_all(tmk_pyramid_blocks(y)));
        tmk_pyramid_close(y);
    }
    tmk_run_close(run);
    maker_remove(&m);
}

/* Where detail was given up, layers still are what was allocated. */
static void test_with_a_gap(void **state)
{
    (void)state;
    enum { BINS = 50 };
    struct maker m;
    maker_open(&m, 1 << 20);
    make_at_random(&m, 600000);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_pyramid *y = sweep_pyramid(run, BINS);
    const struct tmk_timeline *t = tmk_pyramid_timeline(y);
    assert_true(tmk_timeline_known_ns(t) > 0);
    for (uint32_t i = 0; i < BINS; i++)
        for (uint32_t d = 0; d < tmk_timeline_n_devices(t); d++)
            for (unsigned k = 0; k < 4; k++)
                assert_int_equal(sum_of(y, d, dimensions[k], i),
                                 tmk_timeline_parts(t, d)[i].max_bytes);
    tmk_pyramid_close(y);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- against SQL ---- */

static void add_number(struct text *t, uint64_t number, const char *end)
{
    char text[40];
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)number, end);
    text_add(t, text);
}

static char *blocks_as_text(const struct tmk_pyramid *y)
{
    struct text t = {0};
    const struct tmk_picked_blocks *s = tmk_pyramid_blocks(y);
    text_add(&t, "");
    for (uint64_t i = 0; i < s->n_blocks; i++) {
        const struct tmk_picked_block *b = &s->blocks[i];
        add_number(&t, b->alloc_ns, "|");
        if (b->free_ns == UINT64_MAX)
            text_add(&t, "-|");
        else
            add_number(&t, b->free_ns, "|");
        add_number(&t, b->size_bytes, "|");
        for (unsigned k = 0; k < 4; k++) {
            const char *key = tmk_pyramid_key(y, dimensions[k], b->keys[k]);
            text_add(&t, key ? key : "-");
            text_add(&t, k < 3 ? "|" : "\n");
        }
    }
    return t.bytes;
}

static void test_against_sql(void **state)
{
    (void)state;
    static const char query[] =
        "SELECT alloc_ns, free_ns, size, category, module, component, stage FROM allocations "
        "ORDER BY alloc_ns, id";
    struct maker m;
    struct tmk_sql *sql = NULL;
    maker_open(&m, 0);
    make_at_random(&m, 5000);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_pyramid *y = sweep_pyramid(run, 100);
    assert_int_equal(tmk_sql_open(run, &sql, NULL), 0);
    char *found = blocks_as_text(y), *expected = ask(tmk_sql_handle(sql), query);
    same(query, found, expected);
    free(found);
    free(expected);
    tmk_sql_close(sql);
    tmk_pyramid_close(y);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- blocks that are picked ---- */

static struct tmk_picked_block block_at(uint64_t serial, uint64_t alloc_ns, uint64_t free_ns,
                                        uint64_t size_bytes)
{
    return (struct tmk_picked_block){
        .alloc_ns = alloc_ns, .free_ns = free_ns, .size_bytes = size_bytes, .serial = serial};
}

/* One in a thousand is large; all that lived near the peak are there, and the large ones. */
static void test_picked(void **state)
{
    (void)state;
    enum { N = 20000, ROOM = 500 };
    struct tmk_picked_blocks s;
    assert_int_equal(tmk_picked_blocks_init(&s, 10 * N, 10 * N / 4, ROOM), 0);
    for (uint64_t i = 0; i < N; i++) {
        struct tmk_picked_block b =
            block_at(i + 1, 10 * i, 10 * i + 45, i % 1000 == 7 ? 1 << 20 : 1 + i % 90);
        tmk_picked_blocks_offer(&s, &b);
    }
    assert_int_equal(tmk_picked_blocks_finish(&s), 0);
    assert_int_equal(s.n_all, N);
    assert_false(tmk_picked_blocks_has_all(&s));
    assert_true(s.window_start < 10 * N / 4 && s.window_end > 10 * N / 4);
    uint64_t n_inside = 0, n_large = 0, last = 0;
    for (uint64_t i = 0; i < s.n_blocks; i++) {
        const struct tmk_picked_block *b = &s.blocks[i];
        assert_true(b->serial > last); /* in order, none twice */
        last = b->serial;
        n_inside += b->alloc_ns <= s.window_end && b->free_ns >= s.window_start;
        n_large += b->size_bytes == 1 << 20;
    }
    uint64_t first = s.window_start < 45 ? 0 : (s.window_start - 45 + 9) / 10;
    assert_int_equal(n_inside, s.window_end / 10 - first + 1);
    assert_true(n_inside > ROOM / 2 - 10 && n_inside <= ROOM);
    assert_int_equal(n_large, N / 1000);
    tmk_picked_blocks_fini(&s);
}

/* More blocks at one moment than there is room for: no window, but the largest. */
static void test_picked_at_once(void **state)
{
    (void)state;
    struct tmk_picked_blocks s;
    uint64_t sum = 0;
    assert_int_equal(tmk_picked_blocks_init(&s, 1000, 500, 50), 0);
    for (uint64_t i = 0; i < 200; i++) {
        struct tmk_picked_block b = block_at(i + 1, 10, UINT64_MAX, i + 1);
        tmk_picked_blocks_offer(&s, &b);
    }
    assert_int_equal(tmk_picked_blocks_finish(&s), 0);
    assert_true(s.window_start > s.window_end);
    assert_int_equal(s.n_blocks, 64);
    for (uint64_t i = 0; i < s.n_blocks; i++)
        sum += s.blocks[i].size_bytes;
    assert_int_equal(sum, (137 + 200) * 64 / 2);
    tmk_picked_blocks_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_at_random),      cmocka_unit_test(test_with_a_gap),
        cmocka_unit_test(test_against_sql),    cmocka_unit_test(test_picked),
        cmocka_unit_test(test_picked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
