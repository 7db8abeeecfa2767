/* SPDX-License-Identifier: MIT */
/* test_valid_sql.c - the invariants of the store of decoded columns and of what it is made of: each
 * of them, broken, is found. */
#include "breaking.h"

#include "kit/textmap.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/slab.h"
#include "sql/source.h"
#include "sql/store.h"
#include "sql/textpool.h"

/* ---- texts ---- */

static void textmap(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"one", "two", NULL, "three"};
    struct tmk_textmap m = {0};
    uint32_t number;
    assert_true(tmk_textmap_is_valid(&m));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(tmk_textmap_put(&m, texts[i], &number), 0);
        assert_int_equal(number, i);
    }
    BREAK(m, m.room = 3, tmk_textmap_is_valid(&m));
    BREAK(m, m.index.n--, tmk_textmap_is_valid(&m));
    BREAK(m, m.index.mask--, tmk_textmap_is_valid(&m));
    BREAK(m.texts[1], m.texts[1] = "one", tmk_textmap_is_valid(&m));
    tmk_textmap_fini(&m);
    must_have_failed("src/kit/textmap_valid.c");
}

/* ---- memory ---- */

static void slabs(void **unused)
{
    (void)unused;
    struct tmk_slabs s = {0};
    uint64_t *first = tmk_slabs_take(&s, 100), *second = tmk_slabs_take(&s, 200);
    assert_non_null(first);
    assert_non_null(second);
    assert_non_null(tmk_slabs_take(&s, 70000)); /* in a block of its own */
    struct tmk_slab *newest = s.newest, *oldest = newest->older;
    struct tmk_slab_piece *piece = (struct tmk_slab_piece *)(void *)first - 1;
    struct tmk_slab_piece *next = (struct tmk_slab_piece *)(void *)second - 1;
    BREAK(s, s.n_bytes += 1 << 20, tmk_slabs_is_valid(&s));
    BREAK(s, s.spare = newest, tmk_slabs_is_valid(&s));
    BREAK(*oldest, oldest->newer = NULL, tmk_slabs_is_valid(&s));
    BREAK(*newest, newest->newer = oldest, tmk_slabs_is_valid(&s));
    BREAK(*oldest, oldest->used = oldest->size + 8, tmk_slabs_is_valid(&s));
    BREAK(*oldest, oldest->n_pieces = 0, tmk_slabs_is_valid(&s));
    BREAK(*oldest, oldest->n_pieces++, tmk_slabs_is_valid(&s));
    BREAK(*piece, piece->slab = newest, tmk_slabs_is_valid(&s));
    BREAK(*piece, piece->n_bytes = 0, tmk_slabs_is_valid(&s));
    BREAK(*piece, piece->n_bytes += 4, tmk_slabs_is_valid(&s));
    BREAK(*next, next->n_bytes = 1 << 20, tmk_slabs_is_valid(&s));
    tmk_slabs_drop(&s, first);
    assert_true(tmk_slabs_is_valid(&s)); /* one piece less than there were */
    tmk_slabs_drop(&s, second);
    assert_true(tmk_slabs_is_valid(&s));
    assert_ptr_equal(s.spare, oldest);
    tmk_slabs_fini(&s);
    must_have_failed("src/sql/slab_valid.c");
}

/* ---- the store ---- */

enum { N_COLUMNS = 3, N_ROWS = 100, ALL = 7 };

/* A number, a text and one value for all rows. */
static int fill_rows(struct tmk_fill *f, struct tmk_error *err)
{
    (void)err;
    tmk_rows_constant_int(f->rows, 2, f->chunk);
    for (uint32_t i = 0; i < N_ROWS; i++) {
        uint64_t row = tmk_rows_add(f->rows);
        tmk_rows_int(f->rows, 0, row, i);
        tmk_rows_text(f->rows, 1, row, i);
    }
    return 0;
}

static const struct tmk_column_spec specs[N_COLUMNS] = {
    {TMK_CELL_INT, 0}, {TMK_CELL_TEXT, 0}, {TMK_CELL_INT, 0}};
static const struct tmk_vtab_def table = {
    .doc = {.n_columns = N_COLUMNS}, .specs = specs, .scope = TMK_SCOPE_CHUNK, .fill = fill_rows};

/* Two sources with four segments: pinned, left, left, never asked for. */
struct scene {
    struct tmk_source sources[2];
    struct tmk_textpool pool;
    struct tmk_store store;
};

static void make_scene(struct scene *s)
{
    *s = (struct scene){.sources = {{.n_chunks = 3}, {.n_chunks = 1}}};
    assert_int_equal(tmk_store_init(&s->store, &table, s->sources, 2, &s->pool, NULL), 0);
    struct tmk_segment *segments = s->store.segments;
    assert_int_equal(tmk_store_pin(&s->store, &segments[0], ALL, NULL), 0);
    assert_int_equal(tmk_store_pin(&s->store, &segments[1], ALL, NULL), 0);
    assert_int_equal(tmk_store_pin(&s->store, &segments[2], 1, NULL), 0);
    tmk_store_unpin(&s->store, &segments[1]);
    tmk_store_unpin(&s->store, &segments[2]);
}

static void fini_scene(struct scene *s)
{
    tmk_store_fini(&s->store);
    tmk_textpool_fini(&s->pool);
}

#define BREAK_STORE(object, change) BREAK(object, change, tmk_store_is_valid(&s.store))

static void store_segments(void **unused)
{
    (void)unused;
    struct scene s;
    make_scene(&s);
    struct tmk_segment *g = s.store.segments;
    BREAK_STORE(g[3], g[3].source = 2);
    BREAK_STORE(g[3], g[3].chunk = 1);
    BREAK_STORE(g[1], g[1].chunk = 2);
    BREAK_STORE(g[0], g[0].held |= 8);
    BREAK_STORE(g[2], g[2].constants |= 2);
    BREAK_STORE(g[0], g[0].counted = false);
    BREAK_STORE(g[0], g[0].held = 3; g[0].constants = 0);
    BREAK_STORE(g[2], g[2].held = 3);
    BREAK_STORE(g[3], g[3].held = 1; g[3].counted = true);
    BREAK_STORE(g[0], g[0].n_rows = 1000);
    BREAK_STORE(g[0].columns[0], g[0].columns[0] = g[1].columns[0]);
    BREAK_STORE(g[0], g[0].blocks = NULL);
    fini_scene(&s);
}

static void store_list(void **unused)
{
    (void)unused;
    struct scene s;
    make_scene(&s);
    struct tmk_segment *g = s.store.segments;
    assert_ptr_equal(s.store.left_first, &g[1]);
    BREAK_STORE(s.store, s.store.left_first = NULL);
    BREAK_STORE(s.store, s.store.left_first = &g[2]);
    BREAK_STORE(s.store, s.store.left_last = &g[1]);
    BREAK_STORE(g[1], g[1].after = NULL);
    BREAK_STORE(g[2], g[2].before = NULL);
    BREAK_STORE(g[1], g[1].n_pins = 1);
    BREAK_STORE(g[0], g[0].n_pins = 0);
    struct tmk_segment was[2] = {g[1], g[2]};
    g[2].after = &g[1], g[1].before = &g[2]; /* round and round */
    s.store.left_first->before = NULL;
    g[1].before = NULL, g[2].after = &g[2], g[2].before = &g[1];
    assert_false(tmk_store_is_valid(&s.store));
    note_failed();
    g[1] = was[0], g[2] = was[1];
    BREAK_STORE(s.store, s.store.slabs.n_bytes -= 8);
    BREAK_STORE(s.store, s.store.slabs.n_bytes += 1 << 20);
    void *more = tmk_slabs_take(&s.store.slabs, 8); /* nobody's */
    assert_false(tmk_store_is_valid(&s.store));
    note_failed();
    tmk_slabs_drop(&s.store.slabs, more);
    assert_true(tmk_store_is_valid(&s.store));
    fini_scene(&s);
}

/* Segments that were left are forgotten, the first one first. */
static void store_forgets(void **unused)
{
    (void)unused;
    struct scene s;
    make_scene(&s);
    struct tmk_segment *g = s.store.segments;
    s.store.limit_bytes = 0;
    tmk_store_unpin(&s.store, &g[0]);
    assert_true(tmk_store_is_valid(&s.store));
    for (uint32_t i = 0; i < s.store.n_segments; i++)
        assert_int_equal(g[i].held, 0);
    assert_int_equal(s.store.slabs.n_bytes, 0);
    fini_scene(&s);
    must_have_failed("src/sql/store_valid.c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(textmap),        cmocka_unit_test(slabs),
        cmocka_unit_test(store_segments), cmocka_unit_test(store_list),
        cmocka_unit_test(store_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
