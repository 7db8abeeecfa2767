/* SPDX-License-Identifier: MIT */
/* test_request.c - a request comes out as it went in, whatever the bytes; a damaged one is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "cli/remote/request.h"
#include "kit/arena.h"

enum { ROUNDS = 2000, MOST_TEXTS = 12, LONGEST = 40 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Write the request to memory; the caller frees it. */
static char *written(const struct tmk_request *request, size_t *ret_n)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, ret_n);
    assert_non_null(out);
    tmk_request_write(out, request);
    assert_int_equal(fclose(out), 0);
    return bytes;
}

/* Read it again. Returns TMK_E* of what is refused. */
static int read_again(char *bytes, size_t n, struct tmk_arena *arena, struct tmk_request_line *line,
                      struct tmk_request *ret)
{
    char *end = memchr(bytes, '\n', n);
    if (!end)
        return TMK_EFORMAT;
    *end = '\0';
    int rc = tmk_request_parse_line(bytes, line, NULL);
    if (rc < 0)
        return rc;
    char *text = end + 1;
    if (line->n_text + line->n_input > n - (size_t)(text - bytes))
        return TMK_EIO;
    ret->input = text + line->n_text;
    ret->n_input = line->n_input;
    return tmk_request_parse_text(text, line->n_text, arena, ret, NULL);
}

static void assert_same_list(const char **a, const char **b)
{
    for (; *a; a++, b++)
        assert_string_equal(*a, *b);
    assert_null(*b);
}

/* Texts of any bytes but zero, empty ones among them. */
static unsigned make_texts(uint32_t *state, char texts[][LONGEST + 1], const char **list,
                           unsigned least_bytes)
{
    unsigned n = 1 + next_random(state) % (MOST_TEXTS - 1);
    for (unsigned i = 0; i < n; i++) {
        unsigned length = least_bytes + next_random(state) % (LONGEST - least_bytes);
        for (unsigned k = 0; k < length; k++)
            texts[i][k] = (char)(1 + next_random(state) % 255);
        texts[i][length] = '\0';
        list[i] = texts[i];
    }
    list[n] = NULL;
    return n;
}

static void test_round_trip(void **state)
{
    (void)state;
    uint32_t random = 7;
    static char words[MOST_TEXTS][LONGEST + 1], settings[MOST_TEXTS][LONGEST + 1];
    const char *word_list[MOST_TEXTS + 1], *setting_list[MOST_TEXTS + 1];
    for (int round = 0; round < ROUNDS; round++) {
        make_texts(&random, words, word_list, 0);
        make_texts(&random, settings, setting_list, 1);
        char input[64];
        size_t n_input = next_random(&random) % sizeof input, n;
        for (size_t i = 0; i < n_input; i++)
            input[i] = (char)next_random(&random);
        struct tmk_request request = {.host = "ada@node7",
                                      .settings = setting_list,
                                      .file = round % 3 ? NULL : "it's a \"file\".png",
                                      .words = word_list,
                                      .input = input,
                                      .n_input = n_input};
        struct tmk_arena arena = {0};
        struct tmk_request_line line;
        struct tmk_request found = {0};
        char *bytes = written(&request, &n);
        assert_int_equal(read_again(bytes, n, &arena, &line, &found), 0);
        assert_string_equal(line.host, "ada@node7");
        assert_string_equal(line.version, TMK_VERSION);
        assert_same_list(setting_list, found.settings);
        assert_same_list(word_list, found.words);
        assert_int_equal(!request.file, !found.file);
        if (found.file)
            assert_string_equal(found.file, request.file);
        assert_int_equal(found.n_input, n_input);
        assert_memory_equal(found.input, input, n_input);
        tmk_arena_fini(&arena);
        free(bytes);
    }
}

/* Every byte changed, every length: refused, or taken apart within its bounds. */
static void test_damaged(void **state)
{
    (void)state;
    const char *settings[] = {"TERM=xterm", NULL},
               *words[] = {"eval", "--", "12", "print(1)", NULL};
    struct tmk_request request = {.host = "node7", .settings = settings, .words = words};
    size_t n;
    char *whole = written(&request, &n);
    for (size_t at = 0; at < n; at++)
        for (int byte = 0; byte < 256; byte++) {
            char *bytes = malloc(n);
            struct tmk_arena arena = {0};
            struct tmk_request_line line;
            struct tmk_request found = {0};
            assert_non_null(bytes);
            memcpy(bytes, whole, n);
            bytes[at] = (char)byte;
            if (memchr(bytes, '\n', n) && read_again(bytes, n, &arena, &line, &found) == 0)
                assert_non_null(found.words[0]);
            tmk_arena_fini(&arena);
            free(bytes);
        }
    for (size_t cut = 0; cut < n; cut++) {
        char *bytes = malloc(cut + 1);
        struct tmk_arena arena = {0};
        struct tmk_request_line line;
        struct tmk_request found = {0};
        assert_non_null(bytes);
        memcpy(bytes, whole, cut);
        assert_true(read_again(bytes, cut, &arena, &line, &found) < 0);
        tmk_arena_fini(&arena);
        free(bytes);
    }
    free(whole);
}

static void test_lines(void **state)
{
    (void)state;
    struct tmk_request_line line;
    struct tmk_error err = {0};
    assert_int_equal(tmk_request_parse_line("tidemark-remote 1 0.1.0 node7 12 3", &line, &err), 0);
    assert_int_equal(line.n_text, 12);
    assert_int_equal(line.n_input, 3);
    assert_int_equal(tmk_request_parse_line("tidemark-remote 2 0.9.0 anything", &line, &err),
                     TMK_EVERSION);
    assert_string_equal(err.text, "tidemark " TMK_VERSION " on that machine and 0.9.0 here do not "
                                  "understand each other; install the same version on both");
    static const char *const wrong[] = {
        "",
        "GET / HTTP/1.1",
        "tidemark-remote",
        "tidemark-remote 1 0.1.0 node7 12",
        "tidemark-remote 1 0.1.0 node7 12 3 4",
        "tidemark-remote 1 0.1.0 node7 12 -3",
        "tidemark-remote 1 0.1.0 node7 999999999 3",
        "tidemark-remote 1 0.1.0 node7 12 999999999",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tmk_request_parse_line(wrong[i], &line, NULL), TMK_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
