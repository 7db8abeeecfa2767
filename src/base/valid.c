/* SPDX-License-Identifier: MIT */
/* base/valid.c - see valid.h. */
#include "base/valid.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

struct tmk_invalid tmk_invalid;

bool tmk_note_invalid(const char *text, const char *file, int line)
{
    tmk_invalid = (struct tmk_invalid){text, file, line};
    return false;
}

void tmk_die_invalid(const char *check, const char *file, int line)
{
    char buffer[512];
    struct tmk_text t;
    tmk_text_init(&t, buffer, sizeof buffer);
    tmk_text_add(&t, "%s:%d: after an operation %s is false", file, line, check);
    if (tmk_invalid.text)
        tmk_text_add(&t, "\n%s:%d: this does not hold: %s", tmk_invalid.file, tmk_invalid.line,
                     tmk_invalid.text);
    tmk_text_char(&t, '\n');
    (void)!write(STDERR_FILENO, buffer, t.length);
    abort();
}
