/* SPDX-License-Identifier: MIT */
/* cli/remote/request.c - see request.h. */
#include "cli/remote/request.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kit/amount.h"

static size_t bytes_of_texts(const char *const *texts)
{
    size_t n = 0;
    for (; *texts; texts++)
        n += strlen(*texts) + 1;
    return n;
}

static void write_text(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text) + 1, out);
}

void tmk_request_write(FILE *out, const struct tmk_request *request)
{
    const char *file = request->file ? request->file : "";
    size_t n_text =
        bytes_of_texts(request->settings) + 1 + strlen(file) + 1 + bytes_of_texts(request->words);
    fprintf(out, "tidemark-remote %d %s %s %zu %zu\n", TMK_REQUEST_PROTOCOL, TMK_VERSION,
            request->host, n_text, request->n_input);
    for (const char **at = request->settings; *at; at++)
        write_text(out, *at);
    write_text(out, "");
    write_text(out, file);
    for (const char **at = request->words; *at; at++)
        write_text(out, *at);
    if (request->n_input > 0)
        fwrite(request->input, 1, request->n_input, out);
}

/* Take the next word of a line, which ends at a blank. False: it is missing, or does not fit. */
static bool take_request_word(const char **at, char *to, size_t size)
{
    size_t n = strcspn(*at, " ");
    if (n == 0 || n >= size)
        return false;
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += n + ((*at)[n] == ' ');
    return true;
}

static bool take_number(const char **at, size_t most, size_t *ret)
{
    char word[24];
    int64_t number;
    if (!take_request_word(at, word, sizeof word) || tmk_integer_parse(word, &number) < 0 ||
        number < 0 || (uint64_t)number > most)
        return false;
    *ret = (size_t)number;
    return true;
}

int tmk_request_parse_line(const char *line, struct tmk_request_line *ret, struct tmk_error *err)
{
    struct tmk_request_line found = {0};
    char name[16];
    if (!take_request_word(&line, name, sizeof name) || strcmp(name, "tidemark-remote") != 0 ||
        !take_number(&line, UINT32_MAX, &found.protocol) ||
        !take_request_word(&line, found.version, sizeof found.version))
        return tmk_fail(err, TMK_EFORMAT, "this is not a request of another tidemark");
    if (found.protocol != TMK_REQUEST_PROTOCOL)
        return tmk_fail(err, TMK_EVERSION,
                        "tidemark %s on that machine and %s here do not understand each other; "
                        "install the same version on both",
                        TMK_VERSION, found.version);
    if (!take_request_word(&line, found.host, sizeof found.host) ||
        !take_number(&line, TMK_REQUEST_TEXT_MAX, &found.n_text) ||
        !take_number(&line, TMK_REQUEST_INPUT_MAX, &found.n_input) || *line != '\0')
        return tmk_fail(err, TMK_EFORMAT, "the request of the other tidemark is damaged");
    *ret = found;
    return 0;
}

/* List the texts from *at on, up to an empty one where `stops` is set, else to the end. *at moves
 * behind them. NULL: they do not end where they should, or are too many. */
static const char **list_texts(char **at, char *end, bool stops, struct tmk_arena *arena)
{
    const char **list = tmk_arena_take(arena, (TMK_REQUEST_WORDS_MAX + 1) * sizeof *list);
    size_t n = 0;
    for (; list && *at < end; n++) {
        const char *text = *at;
        *at += strlen(text) + 1;
        if (stops && *text == '\0')
            return list;
        if (n == TMK_REQUEST_WORDS_MAX)
            return NULL;
        list[n] = text;
    }
    return stops ? NULL : list;
}

int tmk_request_parse_text(char *text, size_t n, struct tmk_arena *arena, struct tmk_request *ret,
                           struct tmk_error *err)
{
    static const char damaged[] = "the request of the other tidemark is damaged";
    char *at = text, *end = text + n;
    if (n == 0 || end[-1] != '\0')
        return tmk_fail(err, TMK_EFORMAT, "%s", damaged);
    const char **settings = list_texts(&at, end, true, arena);
    if (!settings || at == end)
        return tmk_fail(err, TMK_EFORMAT, "%s", damaged);
    const char *file = at;
    at += strlen(file) + 1;
    const char **words = list_texts(&at, end, false, arena);
    if (!words || !words[0])
        return tmk_fail(err, TMK_EFORMAT, "%s", damaged);
    ret->settings = settings;
    ret->file = *file ? file : NULL;
    ret->words = words;
    return 0;
}
