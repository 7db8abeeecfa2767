/* SPDX-License-Identifier: MIT */
/* Definitions as a file may have them: in any order, twice, in parts, with holes, out of bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/defs.h"
#include "trace/kinds.h"
#include "trace/layout.h"

struct chunk {
    uint8_t bytes[1 << 16];
    struct tmk_sink out;
};

static void begin(struct chunk *c)
{
    c->out = tmk_sink_of(c->bytes, sizeof c->bytes);
}

/* A definition: numbers, then bytes. */
static void add(struct chunk *c, enum tmk_def type, const uint64_t *numbers, size_t n_numbers,
                const void *text, size_t n_text)
{
    uint8_t body[200];
    struct tmk_sink head = tmk_sink_of(body, sizeof body);
    for (size_t i = 0; i < n_numbers; i++)
        tmk_sink_varint(&head, numbers[i]);
    tmk_sink_varint(&c->out, (uint64_t)type);
    tmk_sink_varint(&c->out, tmk_sink_length(&head) + n_text);
    tmk_sink_bytes(&c->out, body, tmk_sink_length(&head));
    tmk_sink_bytes(&c->out, text, n_text);
    assert_false(c->out.full);
}

#define ADD(c, type, text, n, ...)                                                                 \
    add(c, type, (const uint64_t[]){__VA_ARGS__},                                                  \
        sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), text, n)

static void read_chunk(struct tmk_defs *d, const struct chunk *c)
{
    struct tmk_view payload = tmk_view_of(c->bytes, tmk_sink_length(&c->out));
    assert_int_equal(tmk_defs_read(d, payload), 0);
}

static uint32_t line_of(const struct tmk_defs *d, uint32_t frame)
{
    struct tmk_frame f = {0};
    assert_true(tmk_defs_frame(d, frame, &f));
    return f.line;
}

/* Code 1 begins at line 10; each of its instructions is one line further (layout 310). */
static void add_code(struct chunk *c)
{
    ADD(c, TMK_DEF_STRING, "model.py", 8, 1);
    ADD(c, TMK_DEF_STRING, "forward", 7, 2);
    ADD(c, TMK_DEF_CODE, "", 0, 1, 1, 2, 10, TMK_PY_LINES_310);
    for (uint64_t i = 0; i < 6; i++)
        ADD(c, TMK_DEF_CODE_FRAME, "", 0, i + 1, 1, 2 * i);
}

static void test_python_frames(void **unused)
{
    (void)unused;
    struct tmk_defs d;
    static struct chunk c;
    struct tmk_frame f;
    begin(&c);
    ADD(&c, TMK_DEF_LINES, "\2\1\2\1", 4, 1, 4); /* the second part first, even before the code */
    add_code(&c);
    ADD(&c, TMK_DEF_LINES, "\2\1\2\1", 4, 1, 0);
    ADD(&c, TMK_DEF_LINES, "\2\1\2\1\2\1", 6, 1, 2); /* overlaps, and goes no further */
    add_code(&c);                                    /* all again */
    assert_int_equal(tmk_defs_init(&d), 0);
    read_chunk(&d, &c);
    assert_int_equal(tmk_defs_settle(&d), 0);
    static const uint32_t lines[] = {11, 12, 13, 14, 10, 10};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(line_of(&d, i + 1), lines[i]);
    assert_true(tmk_defs_frame(&d, 3, &f));
    assert_string_equal(f.file, "model.py");
    assert_string_equal(f.function, "forward");
    assert_int_equal(f.address, 0);
    /* More comes: as when the ring of a living process is read. */
    begin(&c);
    ADD(&c, TMK_DEF_LINES, "\2\x80\4\x14", 4, 1, 8);
    read_chunk(&d, &c);
    assert_int_equal(tmk_defs_settle(&d), 0);
    assert_int_equal(line_of(&d, 4), 14);
    assert_int_equal(line_of(&d, 5), 0);
    assert_int_equal(line_of(&d, 6), 34);
    tmk_defs_fini(&d);
}

/* A hole, a part too far out, a code that is not there: the first line, or none. */
static void test_missing_parts(void **unused)
{
    (void)unused;
    static const uint64_t places[] = {2, TMK_LINES_MAX_BYTES, TMK_LINES_MAX_BYTES - 3, UINT64_MAX};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct tmk_defs d;
        static struct chunk c;
        begin(&c);
        add_code(&c);
        ADD(&c, TMK_DEF_LINES, i ? "\2\1\2\1" : "", i ? 4 : 0, 1, 0);
        ADD(&c, TMK_DEF_LINES, "\2\1\2\1", 4, 1, places[i]);
        ADD(&c, TMK_DEF_CODE_FRAME, "", 0, 7, 99, 2);
        assert_int_equal(tmk_defs_init(&d), 0);
        read_chunk(&d, &c);
        assert_int_equal(tmk_defs_settle(&d), 0);
        assert_int_equal(line_of(&d, 1), 10);
        assert_int_equal(line_of(&d, 2), 10);
        assert_int_equal(line_of(&d, 7), 0);
        tmk_defs_fini(&d);
    }
}

static void test_native_frames(void **unused)
{
    (void)unused;
    struct tmk_defs d;
    static struct chunk c;
    struct tmk_frame f;
    struct tmk_native native;
    begin(&c);
    ADD(&c, TMK_DEF_NATIVE_FRAME, "", 0, 1, 1, 0x1234);
    ADD(&c, TMK_DEF_NATIVE_FRAME, "", 0, 2, 9, 0x99);
    ADD(&c, TMK_DEF_MODULE, "\xab\xcd/lib/libm.so", 14, 1, 2);
    ADD(&c, TMK_DEF_MODULE, "ab", 2, 3, 5); /* a build id longer than the body */
    ADD(&c, TMK_DEF_NATIVE_FRAME, "", 0, 4, 3, 1);
    assert_int_equal(tmk_defs_init(&d), 0);
    read_chunk(&d, &c);
    assert_int_equal(tmk_defs_settle(&d), 0);
    assert_true(tmk_defs_frame(&d, 1, &f));
    assert_string_equal(f.file, "/lib/libm.so");
    assert_null(f.function);
    assert_int_equal(f.line, 0);
    assert_int_equal(f.address, 0x1234);
    assert_true(tmk_defs_native(&d, 1, &native));
    assert_string_equal(native.path, "/lib/libm.so");
    assert_int_equal(native.build_id_bytes, 2);
    assert_memory_equal(native.build_id, "\xab\xcd", 2);
    assert_int_equal(native.address, 0x1234);
    assert_true(tmk_defs_frame(&d, 2, &f)); /* of a module that is not defined */
    assert_null(f.file);
    assert_false(tmk_defs_native(&d, 2, &native));
    assert_false(tmk_defs_native(&d, 4, &native));
    assert_false(tmk_defs_native(&d, 3, &native));
    tmk_defs_fini(&d);
}

static void test_streams(void **unused)
{
    (void)unused;
    struct tmk_defs d;
    static struct chunk c;
    struct tmk_stream s;
    begin(&c);
    ADD(&c, TMK_DEF_STREAM, "", 0, 5, 0x101, UINT64_MAX);
    ADD(&c, TMK_DEF_STREAM, "", 0, 1 << 16, 0x101, 3); /* beyond the bound */
    ADD(&c, TMK_DEF_STREAM, "", 0, 6, 0x101);          /* cut */
    assert_int_equal(tmk_defs_init(&d), 0);
    read_chunk(&d, &c);
    assert_true(tmk_defs_stream(&d, 5, &s));
    assert_int_equal(s.device, 0x101);
    assert_true(s.handle == UINT64_MAX);
    assert_false(tmk_defs_stream(&d, 0, &s));
    assert_false(tmk_defs_stream(&d, 6, &s));
    assert_false(tmk_defs_stream(&d, 1 << 16, &s));
    tmk_defs_fini(&d);
}

static void test_torch(void **unused)
{
    (void)unused;
    struct tmk_defs d;
    static struct chunk c;
    struct tmk_parameter p;
    begin(&c);
    ADD(&c, TMK_DEF_STRING, "layers.0", 8, 1);
    ADD(&c, TMK_DEF_STRING, "torch.nn.modules.linear.Linear", 30, 2);
    ADD(&c, TMK_DEF_STRING, "my.Linear", 9, 3);
    ADD(&c, TMK_DEF_STRING, "layers.0.weight", 15, 4);
    ADD(&c, TMK_DEF_TORCH_MODULE, "", 0, 1, 2);
    ADD(&c, TMK_DEF_TORCH_MODULE, "", 0, 1, 3); /* the last counts */
    ADD(&c, TMK_DEF_TORCH_MODULE, "", 0, 3, 9); /* a class that is not defined */
    ADD(&c, TMK_DEF_TORCH_MODULE, "", 0, 2);    /* cut */
    ADD(&c, TMK_DEF_PARAMETER, "float32 [2, 3]", 14, 7, 4, 5, 0x101, 0xfeed, 24);
    ADD(&c, TMK_DEF_PARAMETER, "", 0, 8, 4, 0, 0, 1, 2);
    ADD(&c, TMK_DEF_PARAMETER, "", 0, 9, 4, 0, 0, 1);
    assert_int_equal(tmk_defs_init(&d), 0);
    read_chunk(&d, &c);
    assert_string_equal(tmk_defs_class(&d, 1), "my.Linear");
    assert_null(tmk_defs_class(&d, 0));
    assert_null(tmk_defs_class(&d, 2));
    assert_null(tmk_defs_class(&d, 3));
    assert_true(tmk_defs_parameter(&d, 7, &p));
    assert_string_equal(p.name, "layers.0.weight");
    assert_string_equal(p.shape, "float32 [2, 3]");
    assert_int_equal(p.flags, TMK_PARAMETER_REQUIRES_GRAD | TMK_PARAMETER_OPTIMIZED);
    assert_int_equal(p.device, 0x101);
    assert_int_equal(p.address, 0xfeed);
    assert_int_equal(p.size_bytes, 24);
    assert_true(tmk_defs_parameter(&d, 8, &p));
    assert_string_equal(p.shape, "");
    assert_false(tmk_defs_parameter(&d, 9, &p));
    assert_false(tmk_defs_parameter(&d, 1, &p));
    tmk_defs_fini(&d);
}

/* Every way to cut a chunk: an error or fewer definitions, never harm. */
static void test_cut_anywhere(void **unused)
{
    (void)unused;
    static struct chunk c;
    begin(&c);
    add_code(&c);
    ADD(&c, TMK_DEF_LINES, "\2\1\2\1", 4, 1, 0);
    ADD(&c, TMK_DEF_MODULE, "\xab\xcd/lib/libm.so", 14, 1, 2);
    ADD(&c, TMK_DEF_NATIVE_FRAME, "", 0, 9, 1, 0x1234);
    ADD(&c, TMK_DEF_STREAM, "", 0, 5, 0x101, 7);
    ADD(&c, TMK_DEF_TORCH_MODULE, "", 0, 1, 2);
    ADD(&c, TMK_DEF_PARAMETER, "int8 [3]", 8, 1, 1, 7, 0x101, 4096, 3);
    size_t n = tmk_sink_length(&c.out);
    for (size_t cut = 0; cut < n; cut++) {
        struct tmk_defs d;
        uint8_t *copy = malloc(cut + !cut);
        memcpy(copy, c.bytes, cut);
        assert_int_equal(tmk_defs_init(&d), 0);
        int rc = tmk_defs_read(&d, tmk_view_of(copy, cut));
        assert_true(rc == 0 || rc == TMK_EDAMAGED);
        free(copy);
        assert_int_equal(tmk_defs_settle(&d), 0);
        struct tmk_frame f;
        for (uint32_t id = 0; id < 12; id++)
            (void)tmk_defs_frame(&d, id, &f);
        tmk_defs_fini(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python_frames), cmocka_unit_test(test_missing_parts),
        cmocka_unit_test(test_native_frames), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_torch),         cmocka_unit_test(test_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
