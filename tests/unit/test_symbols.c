/* SPDX-License-Identifier: MIT */
/* test_symbols.c - names and lines of native frames: of this program and of a library, with lines
 * that the compiler says (__LINE__); with and without debug information, with it in a file of its
 * own; of files that are missing, wrong or damaged. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "chain.h"
#include "model/symbols.h"
#include "record/native/mapped_files.h"

#define NOINLINE __attribute__((noinline))

static char folder[] = "/tmp/tmk-symbols-XXXXXX";
static struct tmk_symbols *symbols;

struct place { /* an address and its module, as the recorder would say it */
    char path[4096];
    struct tmk_mapped_file module;
    struct tmk_code_address where;
};

static void place_of(uintptr_t pc, struct place *ret)
{
    const struct tmk_mapped_file *m = tmk_mapped_file_find(pc - 1);
    assert_non_null(m);
    memcpy(&ret->module, m, sizeof *m);
    ret->path[tmk_mapped_file_path(m, ret->path, sizeof ret->path - 1)] = '\0';
    ret->where = (struct tmk_code_address){.path = ret->path,
                                           .build_id = ret->module.build_id,
                                           .build_id_bytes = ret->module.build_id_bytes,
                                           .address = pc - m->bias};
    assert_int_equal(ret->module.build_id_bytes, 20);
}

static struct tmk_symbol find(const struct tmk_code_address *where)
{
    struct tmk_symbol symbol = {0};
    assert_int_equal(tmk_symbols_find(symbols, where, &symbol), 0);
    assert_non_null(symbol.function);
    return symbol;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static void check(const struct tmk_code_address *where, const char *function, const char *file,
                  int line)
{
    struct tmk_symbol symbol = find(where), again = find(where);
    assert_string_equal(symbol.function, function);
    assert_non_null(symbol.file);
    assert_true(ends_in(symbol.file, file));
    assert_int_equal(symbol.line, line);
    assert_ptr_equal(again.function, symbol.function); /* remembered */
    assert_ptr_equal(again.file, symbol.file);
}

/* "name+0x..." and no line. */
static void check_offset(const struct tmk_code_address *where, const char *name)
{
    struct tmk_symbol symbol = find(where);
    char *rest = NULL;
    size_t n = strlen(name);
    assert_true(symbol.is_known);
    assert_int_equal(strncmp(symbol.function, name, n), 0);
    assert_int_equal(strncmp(symbol.function + n, "+0x", 3), 0);
    unsigned long offset = strtoul(symbol.function + n + 1, &rest, 16);
    assert_int_equal(*rest, '\0');
    assert_in_range(offset, 1, 100); /* the functions are small */
    assert_null(symbol.file);
    assert_int_equal(symbol.line, 0);
}

/* "libfoo.so+0x1234": the address itself. */
static void check_unknown(const struct tmk_code_address *where, const char *name)
{
    char expected[256];
    struct tmk_symbol symbol = find(where);
    snprintf(expected, sizeof expected, "%s+%#lx", name, (unsigned long)where->address);
    assert_string_equal(symbol.function, expected);
    assert_false(symbol.is_known);
    assert_null(symbol.file);
    assert_int_equal(symbol.line, 0);
}

/* ---- places to ask for ---- */

static NOINLINE uintptr_t caller(void)
{
    __asm__ volatile("" : : : "memory");
    return (uintptr_t)__builtin_return_address(0);
}

static void note_caller(void *arg)
{
    *(uintptr_t *)arg = (uintptr_t)__builtin_return_address(0);
}

enum { INLINED_LINE = __LINE__ + 4 };

static inline __attribute__((always_inline)) uintptr_t call_inlined(void)
{
    uintptr_t pc = caller();
    return pc;
}

static void test_program(void **unused)
{
    (void)unused;
    struct place place;
    uintptr_t pc = caller(), inlined = call_inlined();
    int line = __LINE__ - 1;
    place_of(pc, &place);
    check(&place.where, "test_program", "tests/unit/test_symbols.c", line);
    place_of(inlined, &place);
    check(&place.where, "call_inlined", "tests/unit/test_symbols.c", INLINED_LINE);
}

static void test_library(void **unused)
{
    (void)unused;
    struct place place;
    uintptr_t pc;
    chain_call(note_caller, &pc);
    place_of(pc, &place);
    check(&place.where, "inner", "tests/kit/chain.c", chain_line());
}

/* ---- less and less in the file ---- */

/* A changed copy of the library, made by a command with two %s. */
static void copy_by(const char *command, const char *from, const char *name, char *ret, size_t size)
{
    char text[9000];
    snprintf(ret, size, "%s/%s", folder, name);
    snprintf(text, sizeof text, command, from, ret);
    assert_int_equal(system(text), 0);
}

static void test_without_lines(void **unused)
{
    (void)unused;
    struct place inner, mangled;
    char path[4096];
    uintptr_t pc;
    chain_call(note_caller, &pc);
    place_of(pc, &inner);
    chain_call_mangled(note_caller, &pc);
    place_of(pc, &mangled);

    copy_by("objcopy --strip-debug '%s' '%s'", inner.path, "symbols.so", path, sizeof path);
    inner.where.path = mangled.where.path = path;
    check_offset(&inner.where, "inner");
    check_offset(&mangled.where, "at::native::add");

    copy_by("objcopy --strip-all '%s' '%s'", inner.path, "stripped.so", path, sizeof path);
    check_unknown(&inner.where, "stripped.so"); /* static: only the full table had it */
    check_offset(&mangled.where, "at::native::add");
}

/* Lines in a file of their own, found by build id. */
static void test_debug_file(void **unused)
{
    (void)unused;
    struct place place;
    char stripped[4096], path[4096], hex[64], name[128], command[4300];
    uintptr_t pc;
    chain_call(note_caller, &pc);
    place_of(pc, &place);
    for (uint32_t i = 0; i < 20; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", place.module.build_id[i]);
    snprintf(command, sizeof command, "mkdir -p %s/.build-id/%.2s", folder, hex);
    assert_int_equal(system(command), 0);
    snprintf(name, sizeof name, ".build-id/%.2s/%s.debug", hex, hex + 2);
    copy_by("objcopy --only-keep-debug '%s' '%s'", place.path, name, path, sizeof path);
    copy_by("objcopy --strip-all '%s' '%s'", place.path, "with-debug.so", stripped,
            sizeof stripped);
    place.where.path = stripped;
    check(&place.where, "inner", "tests/kit/chain.c", chain_line());
    unlink(path);
}

/* ---- files that are not it ---- */

static void test_wrong_files(void **unused)
{
    (void)unused;
    struct place place;
    char path[4096];
    uintptr_t pc;
    chain_call(note_caller, &pc);
    place_of(pc, &place);
    place.module.build_id[3] ^= 1; /* another build */
    check_unknown(&place.where, "libchain.so");
    place.module.build_id[3] ^= 1;
    place.where.build_id_bytes = 0; /* one without, while the file has one */
    check_unknown(&place.where, "libchain.so");
    place.where.build_id_bytes = 20;
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    char events[4096];
    int opened = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(opened >= 0 && inotify_add_watch(opened, path, IN_OPEN) >= 0);
    const char *const others[] = {"/nowhere/libfoo.so", "/dev/zero", "/proc/self/mem", "/tmp", path,
                                  "/etc/passwd",        "",          "linux-vdso.so.1"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *slash = strrchr(others[i], '/');
        place.where.path = others[i];
        check_unknown(&place.where, slash ? slash + 1 : others[i]);
    }
    assert_int_equal(read(opened, events, sizeof events), -1); /* nobody did */
    close(opened);
}

static void test_off(void **unused)
{
    (void)unused;
    struct place place;
    place_of(caller(), &place);
    setenv("TIDEMARK_NO_SYMBOLS", "1", 1);
    struct tmk_symbols *before = symbols;
    symbols = tmk_symbols_open();
    unsetenv("TIDEMARK_NO_SYMBOLS");
    check_unknown(&place.where, strrchr(place.path, '/') + 1);
    tmk_symbols_close(symbols);
    symbols = before;
}

/* ---- damage ---- */

static void write_file(const char *path, const uint8_t *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* Whatever the file says, an answer comes; what it is does not matter. True: it is the right one.
 */
static bool ask_all(const char *path, const struct place *place)
{
    struct tmk_symbols *before = symbols;
    struct tmk_code_address where = place->where;
    where.path = path;
    symbols = tmk_symbols_open();
    for (uint64_t address = 0; address < 0x4000; address += 0x73) {
        where.address = address;
        (void)find(&where);
    }
    where.address = UINT64_MAX;
    (void)find(&where);
    where.address = place->where.address;
    struct tmk_symbol symbol = find(&where);
    bool is_right = strcmp(symbol.function, "inner") == 0 && symbol.line == (uint32_t)chain_line();
    tmk_symbols_close(symbols);
    symbols = before;
    return is_right;
}

static void test_damaged(void **unused)
{
    (void)unused;
    struct place place;
    char path[4096];
    uintptr_t pc;
    chain_call(note_caller, &pc);
    place_of(pc, &place);
    static uint8_t whole[1 << 20], bytes[1 << 20];
    int fd = open(place.path, O_RDONLY);
    ssize_t n = read(fd, whole, sizeof whole);
    close(fd);
    assert_in_range(n, 4096, sizeof whole - 1);
    snprintf(path, sizeof path, "%s/damaged.so", folder);
    for (size_t cut = 0; cut < (size_t)n; cut += (size_t)n / 97 + 1) {
        write_file(path, whole, cut);
        assert_false(ask_all(path, &place));
    }
    uint64_t random = 7;
    int n_right = 0;
    for (int round = 0; round < 600; round++) {
        memcpy(bytes, whole, (size_t)n);
        for (int i = 0; i < 1 + round % 8; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[(random >> 20) % (size_t)n] = (uint8_t)(random >> 56);
        }
        write_file(path, bytes, (size_t)n);
        n_right += ask_all(path, &place);
    }
    assert_in_range(n_right, 100, 590); /* the damage was deep, and not all there was to it */
}

/* ---- */

static int open_all(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder) || tmk_mapped_files_open(false) < 0)
        return -1;
    setenv("TIDEMARK_DEBUG_DIR", folder, 1);
    symbols = tmk_symbols_open();
    return symbols ? 0 : -1;
}

static int close_all(void **unused)
{
    (void)unused;
    char command[64];
    symbols = tmk_symbols_close(symbols);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program),       cmocka_unit_test(test_library),
        cmocka_unit_test(test_without_lines), cmocka_unit_test(test_debug_file),
        cmocka_unit_test(test_wrong_files),   cmocka_unit_test(test_off),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
