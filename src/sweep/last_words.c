/* SPDX-License-Identifier: MIT */
/* sweep/last_words.c - see last_words.h. */
#include "sweep/last_words.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { LONGEST_LINE = 1024 };

static const char what[] = "what():"; /* printed by C++ */

static bool span_ends_with(const char *text, size_t n, const char *end)
{
    size_t n_end = strlen(end);
    return n >= n_end && strncmp(text + n - n_end, end, n_end) == 0;
}

/* Skip "[rank0]: ", which torch puts before each line of a rank's traceback. */
static const char *skip_rank(const char *line)
{
    const char *close = strncmp(line, "[rank", 5) == 0 ? strstr(line, "]: ") : NULL;
    return close ? close + 3 : line;
}

/* The length of the class in a line like "torch.cuda.OutOfMemoryError: text" or "MemoryError"; 0:
 * it is no such line. */
static size_t exception_class(const char *line)
{
    size_t n = 0;
    while (isalnum((unsigned char)line[n]) || line[n] == '_' || line[n] == '.')
        n++;
    bool ends = line[n] == '\0' || (line[n] == ':' && line[n + 1] == ' ');
    return ends && (span_ends_with(line, n, "Error") || span_ends_with(line, n, "Exception")) ? n
                                                                                              : 0;
}

static bool tells(const char *line)
{
    static const char *const phrases[] = {
        "CUDA out of memory",     "HIP out of memory",     "CUDA error: out of memory",
        "std::bad_alloc",         "not enough memory",     "RESOURCE_EXHAUSTED: Out of memory",
        "Cannot allocate memory", "can't allocate memory",
    };
    size_t n = exception_class(line);
    if (n > 0 && span_ends_with(line, n, "MemoryError"))
        return true;
    for (size_t i = 0; i < TMK_N(phrases); i++)
        if (strstr(line, phrases[i]))
            return true;
    return false;
}

bool tmk_last_words_tell_oom(const char *text)
{
    char last[LONGEST_LINE] = "", error[LONGEST_LINE] = "";
    bool is_indented = false; /* the line before is code of a traceback */
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        snprintf(last, sizeof last, "%.*s", (int)n, text);
        const char *line = skip_rank(last);
        text += n + (text[n] == '\n');
        if (strstr(line, what) || (exception_class(line) > 0 && (is_indented || !*text)))
            snprintf(error, sizeof error, "%s", line);
        is_indented = line[0] == ' ';
    }
    return tells(error[0] ? error : last);
}

bool tmk_last_words_tell_kill(const char *text)
{
    static const char *const phrases[] = {"SIGKILL", "Killed", "signal 9", "exitcode  : -9"};
    for (size_t i = 0; text && i < TMK_N(phrases); i++)
        if (strstr(text, phrases[i]))
            return true;
    return false;
}
