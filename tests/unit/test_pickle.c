/* SPDX-License-Identifier: MIT */
/* The pickle reader: what it takes, what it refuses, and that no damage hurts. Pickles are put
 * together by hand, instruction by instruction; real ones are in tests/cli/test_cli_import.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle.h"
#include "interop/pickle/pickle_value.h"
#include "interop/torch/torch_import.h"
#include "interop/torch/torch_snapshot.h"

/* ---- a pickle by hand ---- */

struct program {
    uint8_t bytes[4096];
    size_t n;
};

static void op(struct program *p, const char *bytes, size_t n)
{
    assert_true(p->n + n <= sizeof p->bytes);
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

#define OP(p, literal) op((p), (literal), sizeof(literal) - 1)

static void text(struct program *p, const char *s)
{
    uint8_t head[2] = {0x8c, (uint8_t)strlen(s)};
    op(p, (const char *)head, 2);
    op(p, s, strlen(s));
}

/* LONG1, as picklers write what needs more than 32 bits. */
static void number(struct program *p, uint64_t value)
{
    uint8_t bytes[10] = {0x8a, 8};
    memcpy(bytes + 2, &value, 8);
    op(p, (const char *)bytes, sizeof bytes);
}

static void field(struct program *p, const char *key, uint64_t value)
{
    text(p, key);
    number(p, value);
}

static void word_field(struct program *p, const char *key, const char *value)
{
    text(p, key);
    text(p, value);
}

/* The file's path; it goes when the test ends. */
static const char *file_of(const void *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0)
        fd = memfd_create("pickle", 0);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* ---- a visitor that writes down what it is given ---- */

struct notes {
    uint64_t asked;       /* lists asked about at root["list"][...] */
    uint64_t numbers[16]; /* "n" of each dict handed over */
    uint64_t n;
};

static uint16_t on_list(void *arg, const char *key, unsigned level, uint64_t index)
{
    struct notes *notes = arg;
    if (strcmp(key, "list") != 0)
        return 0;
    notes->asked++;
    return (uint16_t)(level == 2 ? 10 + index : 0);
}

static int on_item(void *arg, uint16_t stream, struct tmk_pickle_object *dict,
                   struct tmk_error *err)
{
    (void)err;
    struct notes *notes = arg;
    const struct tmk_pickle_value *v = tmk_pickle_get(dict, "n");
    assert_non_null(v);
    assert_int_equal(v->kind, TMK_PICKLE_INT);
    assert_true(notes->n < 16);
    notes->numbers[notes->n++] = stream * 100u + (uint64_t)v->number;
    return 0;
}

/* Read it all; the root is shown to `look`, which may be NULL. */
static int read_once(const struct program *p, bool is_careful, struct notes *notes,
                     void (*look)(const struct tmk_pickle_value *root), struct tmk_error *err)
{
    struct tmk_feed feed;
    struct tmk_pickle *pickle = NULL;
    struct tmk_pickle_value root;
    struct tmk_pickle_visitor visitor = {.arg = notes, .stream = on_list, .item = on_item};
    *notes = (struct notes){0};
    assert_int_equal(tmk_feed_init(&feed, file_of(p->bytes, p->n), err), 0);
    assert_int_equal(tmk_pickle_open(&feed, &visitor, is_careful, &pickle), 0);
    int rc = tmk_pickle_read(pickle, &root, err);
    if (rc == 0 && look)
        look(&root);
    tmk_pickle_close(pickle);
    tmk_feed_fini(&feed);
    return rc;
}

/* Both ways, which must say the same, unless the first gives up. */
static int read_program(const struct program *p, struct notes *notes,
                        void (*look)(const struct tmk_pickle_value *root), struct tmk_error *err)
{
    struct notes first;
    int rc = read_once(p, false, &first, look, err);
    int again = read_once(p, true, notes, look, err);
    assert_int_not_equal(again, TMK_EAGAIN);
    if (rc != TMK_EAGAIN) {
        assert_int_equal(rc, again);
        assert_memory_equal(&first, notes, sizeof first);
    }
    return again;
}

static void expect_refused(const struct program *p, int rc, const char *why)
{
    struct notes notes = {0};
    struct tmk_error err = {0};
    assert_int_equal(read_program(p, &notes, NULL, &err), rc);
    if (!strstr(err.text, why))
        fail_msg("said \"%s\" instead of \"%s\"", err.text, why);
}

/* ---- plain values ---- */

static void look_at_values(const struct tmk_pickle_value *root)
{
    static const int64_t ints[] = {200, 65535, -2, -1, INT64_MIN, 0, 128};
    assert_int_equal(root->kind, TMK_PICKLE_TUPLE);
    const struct tmk_pickle_value *v = root->object->items;
    assert_int_equal(root->object->n, 16);
    assert_int_equal(v[0].kind, TMK_PICKLE_NONE);
    assert_true(v[1].kind == TMK_PICKLE_BOOL && v[1].number == 1);
    assert_true(v[2].kind == TMK_PICKLE_BOOL && v[2].number == 0);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(v[3 + i].kind, TMK_PICKLE_INT);
        assert_int_equal(v[3 + i].number, ints[i]);
    }
    assert_true(v[10].kind == TMK_PICKLE_FLOAT && v[10].real == 1.5);
    assert_int_equal(v[11].kind, TMK_PICKLE_BIG);
    assert_int_equal(v[12].kind, TMK_PICKLE_BYTES);
    assert_string_equal(v[13].object->text, "text");
    assert_int_equal(v[14].object->n, 2);
    assert_int_equal(v[14].object->kind, TMK_PICKLE_TUPLE);
    assert_string_equal(tmk_pickle_get(v[15].object, "k")->object->text, "last");
    assert_null(tmk_pickle_get(v[15].object, "other"));
}

static void plain_values(void **state)
{
    (void)state;
    struct program p = {0};
    struct notes notes = {0};
    struct tmk_error err = {0};
    OP(&p, "\x80\5(N\x88\x89"
           "K\xc8"
           "M\xff\xff"
           "J\xfe\xff\xff\xff"
           "\x8a\1\xff"
           "\x8a\x08\0\0\0\0\0\0\0\x80"
           "\x8a\0"
           "\x8a\2\x80\0"
           "G\x3f\xf8\0\0\0\0\0\0"
           "\x8a\x09\0\0\0\0\0\0\0\0\1"
           "C\3abc");
    text(&p, "text");
    OP(&p, "K\1K\2\x86");                             /* (1, 2) */
    OP(&p, "}\x8c\1k\x8c\5firsts\x8c\1k\x8c\4lasts"); /* the last of two counts */
    OP(&p, "N0(NN1");                                 /* pushed and popped again */
    OP(&p, "t.");
    assert_int_equal(read_program(&p, &notes, look_at_values, &err), 0);
}

/* ---- streaming ---- */

static void item(struct program *p, uint8_t n)
{
    uint8_t bytes[] = {'}', 0x94, '(', 0x8c, 1, 'n', 'K', n, 'u'};
    op(p, (const char *)bytes, sizeof bytes);
}

static void look_at_rest(const struct tmk_pickle_value *root)
{
    const struct tmk_pickle_value *list = tmk_pickle_get(root->object, "list");
    assert_int_equal(list->kind, TMK_PICKLE_LIST);
    assert_int_equal(list->object->n, 2);                  /* both inner lists, */
    assert_int_equal(list->object->items[0].object->n, 0); /* emptied */
    assert_int_equal(list->object->items[1].object->n, 0);
    assert_int_equal(tmk_pickle_get(root->object, "kept")->object->n, 1); /* of no interest */
}

/* One outer list of two: items in a group, then one alone; another key has a list of dicts too. */
static void streams(void **state)
{
    (void)state;
    static const uint64_t expected[] = {1001, 1002, 1003, 1001, 1104};
    struct program p = {0};
    struct notes notes = {0};
    struct tmk_error err = {0};
    OP(&p, "\x80\4}\x94(\x8c\4list]\x94(]\x94(");
    item(&p, 1); /* memo 3 */
    item(&p, 2);
    OP(&p, "e(");
    item(&p, 3);
    OP(&p, "h\3e"); /* the first one again: it was handed over, and is kept for this */
    OP(&p, "]\x94");
    item(&p, 4);
    OP(&p, "ae\x8c\4kept](");
    item(&p, 5);
    OP(&p, "eu.");
    assert_int_equal(read_program(&p, &notes, look_at_rest, &err), 0);
    assert_int_equal(notes.n, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(notes.numbers[i], expected[i]);
    assert_int_equal(read_once(&p, false, &notes, NULL, &err), TMK_EAGAIN);
}

/* What an item alone holds goes with it; a text does not, nor what something else refers to. */
static void kept(void **state)
{
    (void)state;
    struct program p = {0};
    struct notes notes = {0};
    struct tmk_error err = {0};
    OP(&p, "\x80\4}(\x8c\4list](]\x94(");                     /* memo 0: the inner list */
    OP(&p, "}\x94(\x8c\1n\x94K\1\x8c\1t\x94K\1K\2\x86\x94u"); /* 1: dict, 2: n, 3: t, 4: tuple */
    OP(&p, "}\x94(h\2K\2h\3K\7\x85\x94u");                    /* 5: dict, 6: tuple */
    size_t n = p.n;
    OP(&p, "}(h\2K\3ueeu.");
    assert_int_equal(read_once(&p, false, &notes, NULL, &err), 0);
    assert_int_equal(notes.n, 3);
    p.n = n;
    OP(&p, "}(h\2K\3h\3h\4ueeu."); /* the first one's tuple */
    assert_int_equal(read_once(&p, false, &notes, NULL, &err), TMK_EAGAIN);
    assert_int_equal(read_once(&p, true, &notes, NULL, &err), 0);
    assert_int_equal(notes.n, 3);
}

/* ---- what is refused ---- */

static void refused(void **state)
{
    (void)state;
    struct program p = {0};
    OP(&p, "\x80\2}cos\nsystem\n\x8c\4true\x85R.");
    expect_refused(&p, TMK_EFORMAT, "refers to os.system: this file wants code run; nothing was");
    p.n = 0;
    OP(&p, "\x80\4}\x8c\2os\x94\x8c\6system\x94\x93\x8c\4true\x85R.");
    expect_refused(&p, TMK_EFORMAT, "refers to os.system: this file wants code run; nothing was");
    p.n = 0;
    OP(&p, "\x80\2(ios\nsystem\n.");
    expect_refused(&p, TMK_EFORMAT, "refers to os.system");
    static const char *const calls[] = {"R", "b", "o", "\x81", "\x92", "\x82", "\x83", "\x84"};
    for (unsigned i = 0; i < 8; i++) {
        p.n = 0;
        OP(&p, "\x80\4NN");
        op(&p, calls[i], 1);
        OP(&p, "\1\1\1\1.");
        expect_refused(&p, TMK_EFORMAT, "this file wants code run; nothing was run");
    }
    static const struct {
        const char *bytes;
        size_t n;
        int rc;
        const char *why;
    } others[] = {
        {"\x80\4\x8f.", 4, TMK_EFORMAT, "it has a set"},
        {"\x80\4Px\n.", 6, TMK_EFORMAT, "data outside of the file"},
        {"\x80\4Q.", 4, TMK_EFORMAT, "data outside of the file"},
        {"\x80\5\x97.", 4, TMK_EFORMAT, "data outside of the file"},
        {"\x80\1I1\n.", 6, TMK_EFORMAT, "protocol 0 or 1"},
        {"\x80\7N.", 4, TMK_EVERSION, "newer than 5"},
        {"N.", 2, TMK_EFORMAT, "not a pickle of protocol 2 to 5"},
        {"\x80\4\xff.", 4, TMK_EDAMAGED, "no pickle instruction"},
        {"\x80\4.", 3, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4(.", 4, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4NN.", 5, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4h\0.", 5, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4Na.", 5, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4}(Nu.", 7, TMK_EDAMAGED, "makes no sense"},
        {"\x80\4Nq\5.", 6, TMK_EFORMAT, "out of order"},
        {"\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", 12, TMK_EFULL, "a text of"},
        {"\x80\4\x8b\xff\xff\xff\x7f.", 8, TMK_EDAMAGED, "it was cut"},
        {"\x80\4N", 3, TMK_EDAMAGED, "it was cut"},
        {"\x80\4J\1\1", 5, TMK_EDAMAGED, "it was cut"},
    };
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        p.n = 0;
        op(&p, others[i].bytes, others[i].n);
        expect_refused(&p, others[i].rc, others[i].why);
    }
}

/* A list that is in itself, lists nested a million deep, and values without end. */
static void bounded(void **state)
{
    (void)state;
    struct program p = {0};
    struct notes notes = {0};
    struct tmk_error err = {0};
    OP(&p, "\x80\4]\x94h\0a.");
    assert_int_equal(read_program(&p, &notes, NULL, &err), 0);

    enum { DEPTH = 1000000, MANY = 5000000 };
    char *bytes = malloc(MANY + 3);
    assert_non_null(bytes);
    memcpy(bytes, "\x80\4", 2);
    memset(bytes + 2, ']', DEPTH);
    memset(bytes + 2 + DEPTH, 'a', DEPTH - 1);
    bytes[1 + 2 * DEPTH] = '.';
    struct tmk_feed feed;
    struct tmk_pickle *pickle = NULL;
    struct tmk_pickle_value root;
    struct tmk_pickle_visitor visitor = {.arg = &notes, .stream = on_list, .item = on_item};
    assert_int_equal(tmk_feed_init(&feed, file_of(bytes, 2 + 2 * DEPTH), &err), 0);
    assert_int_equal(tmk_pickle_open(&feed, &visitor, false, &pickle), 0);
    assert_int_equal(tmk_pickle_read(pickle, &root, &err), 0);
    tmk_pickle_fold(pickle, root.object, 1); /* frees all but the first */
    tmk_pickle_close(pickle);
    tmk_feed_fini(&feed);

    memset(bytes + 2, 'N', MANY);
    assert_int_equal(tmk_feed_init(&feed, file_of(bytes, 2 + MANY), &err), 0);
    assert_int_equal(tmk_pickle_open(&feed, &visitor, false, &pickle), 0);
    assert_int_equal(tmk_pickle_read(pickle, &root, &err), TMK_EFULL);
    tmk_pickle_close(pickle);
    tmk_feed_fini(&feed);
    free(bytes);
}

/* ---- a small snapshot, and all that can befall it ---- */

static void event(struct program *p, const char *action, uint64_t address, uint64_t size,
                  uint64_t time_us)
{
    OP(p, "}(");
    word_field(p, "action", action);
    field(p, "addr", address);
    field(p, "size", size);
    field(p, "stream", 0);
    field(p, "time_us", time_us);
    OP(p, "u");
}

enum { BASE = 0x10000000 };

static void make_snapshot(struct program *p)
{
    OP(p, "\x80\4\x95\0\0\0\0\0\0\0\0}\x94(");
    text(p, "segments");
    OP(p, "](}(");
    field(p, "device", 0);
    field(p, "address", BASE);
    field(p, "total_size", 2 << 20);
    text(p, "blocks");
    OP(p, "](}(");
    field(p, "address", BASE);
    field(p, "size", 1024);
    field(p, "requested_size", 1000);
    word_field(p, "state", "active_allocated");
    text(p, "frames");
    OP(p, "]\x94(}\x94(");
    word_field(p, "filename", "train.py");
    word_field(p, "name", "main");
    field(p, "line", 7);
    OP(p, "ueu}("); /* frames, block; the next one */
    field(p, "address", BASE + 1024);
    field(p, "size", (2 << 20) - 1024);
    word_field(p, "state", "inactive");
    OP(p, "ueue"); /* block, blocks, segment, segments */
    text(p, "device_traces");
    OP(p, "](](");
    event(p, "free_requested", BASE + 1024, 300, 1000);
    event(p, "free_completed", BASE + 1024, 300, 1000);
    event(p, "alloc", BASE + 1024, 5000, 1001);
    event(p, "segment_map", BASE << 1, 2 << 20, 1002);
    event(p, "segment_unmap", (BASE << 1) + 4096, 1 << 20, 1003);
    event(p, "free_requested", BASE + 1024, 5000, 1004);
    event(p, "oom", 100, 1 << 20, 1005);
    event(p, "free_completed", BASE + 1024, 5000, 1006);
    OP(p, "ee");
    text(p, "allocator_settings");
    OP(p, "}\x8c\x13"
          "expandable_segments\x89su.");
}

/* The whole way from the file to the trace. */
static int import(const void *bytes, size_t n, struct tmk_import_summary *sum)
{
    struct tmk_import_snapshot s;
    char path[64];
    snprintf(path, sizeof path, "/tmp/test_pickle.%d.trace", (int)getpid());
    int rc = tmk_import_snapshot_read(&s, file_of(bytes, n), "/tmp", false, NULL, NULL, NULL);
    if (rc < 0)
        return rc;
    rc = tmk_import_write(&s, path, "x", NULL, NULL, sum, NULL);
    tmk_import_snapshot_fini(&s);
    unlink(path);
    return rc;
}

static void small_snapshot(void **state)
{
    (void)state;
    struct program p = {0};
    struct tmk_import_summary sum;
    make_snapshot(&p);
    assert_int_equal(import(p.bytes, p.n, &sum), 0);
    assert_int_equal(sum.n_events, 8);
    assert_int_equal(sum.n_seeds, 2);
    assert_int_equal(sum.seed_bytes, 1024 + 512);
    assert_int_equal(sum.n_odd, 0);
    assert_int_equal(sum.n_wrong, 0);
    assert_int_equal(sum.n_live, 1);
    assert_int_equal(sum.end_bytes, 1024);
    assert_int_equal(sum.n_devices, 1);
    assert_int_equal(sum.devices[0].peak_bytes, 1024 + 5120);
    assert_int_equal(sum.devices[0].peak_reserved_bytes, (2 << 20) + (2 << 20));
}

static void every_truncation(void **state)
{
    (void)state;
    struct program p = {0};
    struct tmk_import_summary sum;
    make_snapshot(&p);
    for (size_t n = 0; n < p.n; n++) {
        int rc = import(p.bytes, n, &sum);
        assert_true(rc == TMK_EDAMAGED || (n < 1 && rc == TMK_EFORMAT));
    }
}

/* Each byte changed in several ways: anything but a crash. */
static void every_flip(void **state)
{
    (void)state;
    struct program p = {0};
    struct tmk_import_summary sum;
    make_snapshot(&p);
    for (size_t i = 0; i < p.n; i++) {
        uint8_t good = p.bytes[i];
        static const uint8_t others[] = {0, 0xff, '}', ']', 'e', 'h'};
        for (unsigned bit = 0; bit < 8; bit += 2) {
            p.bytes[i] = (uint8_t)(good ^ 1u << bit);
            import(p.bytes, p.n, &sum);
        }
        for (unsigned k = 0; k < sizeof others; k++) {
            p.bytes[i] = others[k];
            import(p.bytes, p.n, &sum);
        }
        p.bytes[i] = good;
    }
    assert_int_equal(import(p.bytes, p.n, &sum), 0);
}

static void gzipped(void **state)
{
    (void)state;
    struct program p = {0};
    struct tmk_import_summary sum;
    uint8_t packed[4096];
    make_snapshot(&p);
    z_stream z = {
        .next_in = p.bytes, .avail_in = (uInt)p.n, .next_out = packed, .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    size_t n = sizeof packed - z.avail_out;
    assert_int_equal(import(packed, n, &sum), 0);
    assert_int_equal(sum.end_bytes, 1024);
    for (size_t i = 2; i < n; i++) /* from the magic on */
        assert_int_equal(import(packed, i, &sum), TMK_EDAMAGED);
    for (size_t i = 2; i < n; i++) {
        packed[i] ^= 0x10;
        import(packed, n, &sum);
        packed[i] ^= 0x10;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values),
        cmocka_unit_test(streams),
        cmocka_unit_test(kept),
        cmocka_unit_test(refused),
        cmocka_unit_test(bounded),
        cmocka_unit_test(small_snapshot),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_flip),
        cmocka_unit_test(gzipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
