/* SPDX-License-Identifier: MIT */
/* test_gnuplot_word.c - texts of others in a script: gnuplot has each of them again, byte by byte,
 * and does nothing else. Thousands in one script, made of what means something to gnuplot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/gnuplot_word.h"

enum { N_TEXTS = 6000, MOST_PIECES = 12, TEXT_BYTES = 400 };

static const char *const pieces[] = {
    "'",
    "''",
    "'''",
    "\"",
    "\"\"",
    "\\",
    "\\\\",
    "`",
    "`touch pwned`",
    "@x",
    "@n",
    "#",
    "{",
    "}",
    "${",
    "$1",
    "$#",
    "%",
    "%%",
    "%s",
    "%.",
    "\\n",
    "\\101",
    "\\U+0041",
    "\n",
    "\r",
    "\t",
    ";",
    "EOD",
    "!",
    "!ls",
    "system('ls')",
    "=",
    "_",
    "^",
    "~",
    "0",
    "7",
    "9",
    "a",
    "Z",
    " ",
    "\xe4\xb8\xad",
    "é",
    "\xff",
    "(",
    ")",
    ",",
    "\x01",
    "\x7f",
    "exit",
    "set output 'pwned'",
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void make_text(uint32_t *state, char *to)
{
    uint32_t n = next_random(state) % MOST_PIECES;
    for (*to = '\0'; n > 0; n--)
        strcat(to, pieces[next_random(state) % (sizeof pieces / sizeof pieces[0])]);
}

struct stream {
    FILE *out;
    char *text;
    size_t n;
};

static void stream_open(struct stream *s)
{
    *s = (struct stream){0};
    s->out = open_memstream(&s->text, &s->n);
    assert_non_null(s->out);
}

static void check_word(void write_word(FILE *, const char *), const char *text,
                       const char *expected)
{
    struct stream s;
    stream_open(&s);
    write_word(s.out, text);
    fclose(s.out);
    assert_string_equal(s.text, expected);
    free(s.text);
}

static void test_words(void **state)
{
    (void)state;
    check_word(tmk_gnuplot_word, "", "\"\"");
    check_word(tmk_gnuplot_word, "layers.0", "\"layers.0\"");
    check_word(tmk_gnuplot_word, "'a''b'", "\"\\0047a\\0047\\0047b\\0047\"");
    check_word(tmk_gnuplot_word, "`$\"\\", "\"\\140\\0044\\0042\\134\"");
    check_word(tmk_gnuplot_word, "5%", "\"5\\0045\"");
    check_word(tmk_gnuplot_tic_word, "5%", "\"5\\0045\\0045\"");
    check_word(tmk_gnuplot_word, "'7\xe4\xb8\xad", "\"\\00477\xe4\xb8\xad\"");
}

static FILE *output_of(const char *command)
{
    FILE *out = popen(command, "re");
    assert_non_null(out);
    return out;
}

static void test_gnuplot_reads_them(void **state)
{
    (void)state;
    if (system("command -v gnuplot >/dev/null") != 0) {
        print_message("NOT TESTED: gnuplot is not here\n");
        skip();
    }
    char folder[] = "/tmp/test_gnuplot_word.XXXXXX", command[128], path[64], text[TEXT_BYTES];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/script", folder);
    FILE *script = fopen(path, "we");
    assert_non_null(script);
    fputs("set encoding utf8\nn = 'whatever'\nset print '-'\n", script);
    struct stream expected;
    stream_open(&expected);
    uint32_t random = 1;
    for (int i = 0; i < N_TEXTS; i++) {
        make_text(&random, text);
        fputs("print ", script);
        tmk_gnuplot_word(script, text);
        fputs(i % 2 ? "; a = " : "\nset label 1 ", script);
        tmk_gnuplot_word(script, text);
        fputs("\n", script);
        fprintf(expected.out, "%s\n", text);
    }
    fclose(script);
    fclose(expected.out);
    snprintf(command, sizeof command, "cd %s && rm -f pwned; gnuplot -d <script 2>&1; ls", folder);
    FILE *out = output_of(command);
    char *found = calloc(1, expected.n + 64);
    assert_non_null(found);
    size_t n = fread(found, 1, expected.n + 63, out);
    assert_int_equal(pclose(out), 0);
    unlink(path);
    rmdir(folder);
    assert_memory_equal(found, expected.text, expected.n < n ? expected.n : n);
    assert_string_equal(found + expected.n, "script\n");
    free(found);
    free(expected.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_gnuplot_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
