/* SPDX-License-Identifier: MIT */
/* breaking.h - structures broken on purpose: proof that each invariant can be found not to hold.
 *
 *     BREAK(set, set.n++, tmk_free_set_is_valid(&set));
 *     must_have_failed("src/model/free_set_valid.c"); // all TMK_HOLDS of it */
#ifndef TMK_TESTS_BREAKING_H
#define TMK_TESTS_BREAKING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/valid.h"

enum { MAX_FAILED = 256 };

static struct {
    const char *file;
    int line;
} failed[MAX_FAILED];
static unsigned n_failed;

/* Which one it was this time. */
static inline void note_failed(void)
{
    for (unsigned i = 0; i < n_failed; i++)
        if (failed[i].line == tmk_invalid.line && strcmp(failed[i].file, tmk_invalid.file) == 0)
            return;
    assert_in_range(n_failed, 0, MAX_FAILED - 1);
    failed[n_failed].file = tmk_invalid.file;
    failed[n_failed++].line = tmk_invalid.line;
}

/* `object` is valid, with the change it is not, and afterwards it is what it was. */
#define BREAK(object, change, check)                                                               \
    do {                                                                                           \
        char before[sizeof(object)];                                                               \
        assert_true(check);                                                                        \
        memcpy(before, (const void *)&(object), sizeof before);                                    \
        change;                                                                                    \
        assert_false(check);                                                                       \
        note_failed();                                                                             \
        memcpy((void *)&(object), before, sizeof before);                                          \
    } while (0)

/* Each TMK_HOLDS of a source has been false at least once. */
static inline void must_have_failed(const char *source)
{
    char text[512];
    unsigned n_lines = 0, n_seen = 0;
    FILE *f = fopen(source, "r");
    assert_non_null(f);
    for (int line = 1; fgets(text, sizeof text, f); line++) {
        if (!strstr(text, "TMK_HOLDS("))
            continue;
        n_lines++;
        unsigned i = 0;
        while (i < n_failed && (failed[i].line != line || !strstr(failed[i].file, source)))
            i++;
        n_seen += i < n_failed;
        if (i == n_failed)
            print_message("%s:%d never failed: %s", source, line, text);
    }
    fclose(f);
    assert_int_equal(n_seen, n_lines);
    assert_true(n_lines > 0);
}

#endif
