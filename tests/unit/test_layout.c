/* SPDX-License-Identifier: MIT */
/* test_layout.c - the structs that are mapped or written whole lie as docs/format.md says.
 *
 * The document itself is read: each field below names the table it is in, and the table must have a
 * row with its offset and type. So neither can change without the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace_kit.h"

struct field {
    const char *table; /* a piece of the line before which the table stands */
    size_t offset, size;
    const char *type;
    const char *word; /* that the document's row has */
};

#define FIELD(table, type_, member, doc_type, word)                                                \
    {                                                                                              \
        table, offsetof(struct type_, member), sizeof(((struct type_ *)0)->member), doc_type, word \
    }

static const char header[] = "## 1. File header", status[] = "Status is the only part";
static const char chunk[] = "## 2. Chunks", ring[] = "## 3. The ring",
                  page[] = "A page is 64 bytes";

static const struct field fields[] = {
    FIELD(header, tmk_file_header, magic, "8 bytes", "TIDEMARK"),
    FIELD(header, tmk_file_header, version, "u32", "version"),
    FIELD(header, tmk_file_header, header_bytes, "u32", "header size"),
    FIELD(header, tmk_file_header, trace_id, "16 bytes", "trace id"),
    FIELD(header, tmk_file_header, info_bytes, "u32", "length of the info"),
    FIELD(header, tmk_file_header, crc, "u32", "CRC"),
    {header, TMK_STATUS_OFFSET, TMK_STATUS_BYTES, "128 bytes", "status A"},
    {header, TMK_STATUS_OFFSET + TMK_STATUS_BYTES, TMK_STATUS_BYTES, "128 bytes", "status B"},
    {header, TMK_INFO_OFFSET, 0, "text", "info"},
    FIELD(status, tmk_status, serial, "u64", "serial"),
    FIELD(status, tmk_status, state, "u32", "state"),
    FIELD(status, tmk_status, reason, "u32", "reason"),
    FIELD(status, tmk_status, os_error, "u32", "errno"),
    FIELD(status, tmk_status, flags, "u32", "flags"),
    FIELD(status, tmk_status, last_seq, "u64", "last chunk"),
    FIELD(status, tmk_status, n_events, "u64", "events recorded"),
    FIELD(status, tmk_status, n_dropped, "u64", "dropped"),
    FIELD(status, tmk_status, n_allocs, "u64", "allocations"),
    FIELD(status, tmk_status, n_frees, "u64", "frees"),
    FIELD(status, tmk_status, head, "u64", "head"),
    FIELD(status, tmk_status, tail, "u64", "tail"),
    FIELD(status, tmk_status, oldest_seq, "u64", "oldest"),
    FIELD(status, tmk_status, n_given_up, "u64", "given up"),
    FIELD(status, tmk_status, end_ns, "u64", "last event"),
    FIELD(status, tmk_status, n_untracked, "u64", "could not be followed"),
    FIELD(status, tmk_status, n_unnamed, "u64", "found no room"),
    FIELD(status, tmk_status, reserved, "4 bytes", "reserved"),
    FIELD(status, tmk_status, crc, "u32", "CRC of bytes 0–123"),
    FIELD(chunk, tmk_chunk_header, magic, "4 bytes", "TMKC"),
    FIELD(chunk, tmk_chunk_header, kind, "u16", "kind"),
    FIELD(chunk, tmk_chunk_header, codec, "u8", "codec"),
    FIELD(chunk, tmk_chunk_header, flags, "u8", "flags"),
    FIELD(chunk, tmk_chunk_header, seq, "u64", "sequence number"),
    FIELD(chunk, tmk_chunk_header, payload_bytes, "u32", "payload size"),
    FIELD(chunk, tmk_chunk_header, n_items, "u32", "number of items"),
    FIELD(chunk, tmk_chunk_header, start_ns, "u64", "first item"),
    FIELD(chunk, tmk_chunk_header, end_ns, "u64", "last item"),
    FIELD(chunk, tmk_chunk_header, first_step, "i64", "at the start"),
    FIELD(chunk, tmk_chunk_header, last_step, "i64", "at the end"),
    FIELD(chunk, tmk_chunk_header, payload_crc, "u32", "CRC of the payload"),
    FIELD(chunk, tmk_chunk_header, header_crc, "u32", "CRC of bytes 0–59"),
    FIELD(ring, tmk_ring_header, magic, "8 bytes", "TMKRING1"),
    FIELD(ring, tmk_ring_header, header_bytes, "u32", "header size"),
    FIELD(ring, tmk_ring_header, page_bytes, "u32", "page size"),
    FIELD(ring, tmk_ring_header, n_pages, "u32", "number of pages"),
    FIELD(ring, tmk_ring_header, pid, "u32", "PID"),
    FIELD(ring, tmk_ring_header, trace_id, "16 bytes", "trace id"),
    FIELD(ring, tmk_ring_header, clock_ticks, "u64", "ticks at the last"),
    FIELD(ring, tmk_ring_header, clock_ns, "u64", "trace time"),
    FIELD(ring, tmk_ring_header, clock_rate, "u64", "nanoseconds per tick"),
    FIELD(ring, tmk_ring_header, start_ticks, "u64", "ticks at the trace's start"),
    FIELD(ring, tmk_ring_header, start_monotonic_ns, "u64", "CLOCK_MONOTONIC"),
    FIELD(ring, tmk_ring_header, n_dropped, "u64", "dropped"),
    FIELD(ring, tmk_ring_header, n_unnamed, "u64", "found no room"),
    FIELD(ring, tmk_ring_header, free_list, "u64", "free pages"),
    FIELD(ring, tmk_ring_header, next_page_number, "u64", "next page number"),
    FIELD(ring, tmk_ring_header, next_thread, "u32", "next thread id"),
    FIELD(ring, tmk_ring_header, epoch, "u64", "epoch"),
    FIELD(ring, tmk_ring_header, last_seq, "u64", "last chunk"),
    FIELD(ring, tmk_ring_header, trace_path, "text", "path of the trace"),
    FIELD(page, tmk_page, state, "u32", "state"),
    FIELD(page, tmk_page, thread, "u32", "thread"),
    FIELD(page, tmk_page, number, "u64", "page number"),
    FIELD(page, tmk_page, done, "u64", "done"),
    FIELD(page, tmk_page, done_before, "u64", "one chunk earlier"),
    FIELD(page, tmk_page, next_free, "u32", "next free page"),
};

static size_t size_of_type(const char *type, size_t otherwise)
{
    size_t n = (size_t)strtoul(type, NULL, 10);
    if (n)
        return n;
    n = (size_t)strtoul(type + 1, NULL, 10) / 8;
    return n ? n : otherwise;
}

/* The document has, in the table after `table`, a row with this offset, type and word. */
static void check_row(const char *document, const struct field *f)
{
    char start[64];
    const char *at = strstr(document, f->table);
    assert_non_null(at);
    at = strstr(at, "\n| offset |");
    assert_non_null(at);
    snprintf(start, sizeof start, "\n| %zu | %s |", f->offset, f->type);
    const char *end = strstr(at, "\n\n"), *row = strstr(at, start);
    if (!end || !row || row > end)
        fail_msg("docs/format.md, %s: no row `%s`", f->table, start + 1);
    const char *word = strstr(row, f->word);
    if (!word || word > strchr(row + 1, '\n'))
        fail_msg("docs/format.md, %s: row %zu does not say '%s'", f->table, f->offset, f->word);
    assert_int_equal(f->size, size_of_type(f->type, f->size));
}

static void test_document(void **unused)
{
    (void)unused;
    size_t n;
    char *document = (char *)kit_file_read("docs/format.md", &n);
    document[n] = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        check_row(document, &fields[i]);
    free(document);
}

/* Rows of a table that begin with a number, by that number. */
struct rows {
    char *of[TMK_N_KINDS];
};

static void take_rows(const char *document, const char *heading, struct rows *ret)
{
    const char *at = strstr(document, heading);
    assert_non_null(at);
    at = strstr(at, "\n|");
    memset(ret, 0, sizeof *ret);
    while (at[0] == '\n' && at[1] == '|') {
        const char *end = strchr(at + 1, '\n');
        unsigned long number = strtoul(at + 2, NULL, 10);
        assert_true(number < TMK_N_KINDS);
        if (number) {
            assert_null(ret->of[number]);
            ret->of[number] = strndup(at + 1, (size_t)(end - at - 1));
        }
        at = end;
    }
}

static void free_rows(struct rows *rows)
{
    for (unsigned i = 0; i < TMK_N_KINDS; i++)
        free(rows->of[i]);
}

/* What the document calls the fields of a body: any of these words, in this order. */
static const struct {
    enum tmk_field field;
    const char *words[4];
} body_fields[] = {
    {TMK_HAS_DEVICE, {"varint device"}},
    {TMK_HAS_SEGMENT_KIND, {"varint kind"}},
    {TMK_HAS_ADDRESS, {"varint address"}},
    {TMK_HAS_SIZE, {"varint size", "varint bytes", "varint number", "varint flags"}},
    {TMK_HAS_CAPACITY, {"varint capacity"}},
    {TMK_HAS_STACK, {"varint stack"}},
    {TMK_HAS_NAME, {"varint event name", "varint text"}},
    {TMK_HAS_FREE, {"varint bytes that the device had free"}},
    {TMK_HAS_SAMPLE, {"four varints"}},
    {TMK_HAS_TEXT, {"info text"}},
};

static const char *find_first(const char *at, const char *const words[4])
{
    const char *first = NULL;
    for (size_t i = 0; i < 4 && words[i]; i++) {
        const char *found = strstr(at, words[i]);
        first = found && (!first || found < first) ? found : first;
    }
    return first;
}

/* The row of an "other" event names its fields in their order, and no varint beside them. */
static void check_body(unsigned kind, const char *row)
{
    unsigned has = tmk_kind_fields(kind), n_varints = 0, n_wanted = 0;
    const char *at = row;
    for (size_t i = 0; i < sizeof body_fields / sizeof body_fields[0]; i++) {
        if (!(has & body_fields[i].field))
            continue;
        at = find_first(at, body_fields[i].words);
        if (!at)
            fail_msg("docs/format.md 2.2, kind %u: no %s", kind, body_fields[i].words[0]);
        at++;
        n_wanted += body_fields[i].field < TMK_HAS_SAMPLE;
        has &= ~(unsigned)body_fields[i].field;
    }
    assert_int_equal(has, 0); /* "other" kinds have no field that is not in their body */
    for (at = row; (at = strstr(at, "varint ")) != NULL; at++)
        n_varints += strncmp(at, "varint is 0", 11) != 0;
    assert_int_equal(n_varints, n_wanted);
}

/* The list of kinds and the document's tables have the same kinds, and fields in the same order. */
static void test_kinds(void **unused)
{
    (void)unused;
    size_t n;
    char *document = (char *)kit_file_read("docs/format.md", &n);
    document[n] = '\0';
    struct rows file, other, records, definitions;
    take_rows(document, "### 2.1 Definitions", &definitions);
    take_rows(document, "\n| kind | event |", &file);
    take_rows(document, "\n| type | event |", &other);
    take_rows(document, "\n| kind | record |", &records);
    for (unsigned kind = 1; kind < TMK_N_KINDS; kind++) {
        bool is_other = tmk_kind_is_other(kind);
        bool is_own = kind == TMK_KIND_OTHER || (kind < TMK_KIND_OTHER && tmk_kind_fields(kind));
        assert_int_equal(file.of[kind] != NULL, is_own);
        assert_int_equal(other.of[kind] != NULL, is_other);
        assert_int_equal(records.of[kind] != NULL, tmk_kind_ring_form(kind) != TMK_RING_NEVER);
        assert_int_equal(tmk_kind_word(kind)[0] != '\0', tmk_kind_fields(kind) != 0);
        if (is_other)
            check_body(kind, other.of[kind]);
        if (tmk_kind_ring_form(kind) == TMK_RING_TEXT)
            assert_non_null(
                strstr(records.of[kind], kind == TMK_KIND_DEF_LINES_311 ? "as lines" : "text"));
        if (tmk_kind_is_definition(kind))
            assert_non_null(definitions.of[kind - TMK_KIND_OF_DEF]);
        else
            assert_true(kind <= TMK_KIND_OF_DEF);
    }
    assert_null(definitions.of[TMK_N_KINDS - TMK_KIND_OF_DEF]);
    free_rows(&file);
    free_rows(&other);
    free_rows(&records);
    free_rows(&definitions);
    free(document);
}

/* And once more as numbers, so that changing both together is seen as well: files that exist are
 * read by these. */
static void test_numbers(void **unused)
{
    (void)unused;
    assert_int_equal(offsetof(struct tmk_status, n_untracked), 104);
    assert_int_equal(offsetof(struct tmk_status, n_unnamed), 112);
    assert_int_equal(offsetof(struct tmk_status, crc), 124);
    assert_int_equal(offsetof(struct tmk_chunk_header, header_crc), 60);
    assert_int_equal(offsetof(struct tmk_ring_header, n_dropped), 128);
    assert_int_equal(offsetof(struct tmk_ring_header, free_list), 192);
    assert_int_equal(offsetof(struct tmk_ring_header, next_page_number), 256);
    assert_int_equal(offsetof(struct tmk_ring_header, epoch), 272);
    assert_int_equal(offsetof(struct tmk_ring_header, trace_path), 512);
    assert_int_equal(offsetof(struct tmk_page, done), 16);
    assert_int_equal(offsetof(struct tmk_page, slots), 64);
    assert_int_equal(offsetof(struct tmk_record, ticks), 8);
    assert_int_equal(offsetof(struct tmk_record, a), 16);
    assert_int_equal(offsetof(struct tmk_record, b), 24);
    assert_int_equal(sizeof(struct tmk_file_header), 40);
    assert_int_equal(sizeof(struct tmk_status), 128);
    assert_int_equal(sizeof(struct tmk_chunk_header), 64);
    assert_int_equal(sizeof(struct tmk_ring_header), 4096);
    assert_int_equal(sizeof(struct tmk_page), 16384);
    assert_int_equal(sizeof(struct tmk_record), 32);
    assert_int_equal(TMK_KIND_STEP, 6);
    assert_int_equal(TMK_KIND_MARK, 16);
    assert_int_equal(TMK_KIND_FOUND, 21);
    assert_int_equal(TMK_KIND_RELEASED, 26);
    assert_int_equal(TMK_KIND_HOLDER, 27);
    assert_int_equal(TMK_KIND_DEF_STRING, 32);
    assert_int_equal(TMK_KIND_DEF_LINES_311, 44);
    assert_int_equal(TMK_DEF_LINE_RUNS, 13);
    assert_memory_equal(&(uint32_t){TMK_CHUNK_MAGIC}, "TMKC", 4);
}

/* The first eight bytes of a slot: kind, slots, device, id, in this order. */
static void test_record_head(void **unused)
{
    (void)unused;
    union tmk_record_head head = {{.kind = 1, .n_slots = 2, .device = 0x0403, .id = 0x08070605}};
    assert_true(head.word == 0x0807060504030201u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_record_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
