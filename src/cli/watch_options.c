/* SPDX-License-Identifier: MIT */
/* cli/watch_options.c - see watch_options.h. */
#include "cli/watch_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/locate.h"
#include "kit/amount.h"
#include "trace/layout.h"

enum { MAX_RANKS_BYTES = 1024 }; /* what the recorder takes */

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
    uint64_t bytes;
    char least[TMK_AMOUNT_BYTES];
    if (!text)
        return true;
    if (tmk_size_parse(text, &bytes) < 0) {
        tmk_say("--max-size: '%s' is not a size, such as 512MiB or 2GiB", text);
        return false;
    }
    if (bytes < TMK_MAX_SIZE_LEAST) {
        tmk_say("--max-size: %s is too little, a trace needs %s", text,
                tmk_size_text(TMK_MAX_SIZE_LEAST, least));
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

static char *library_or_complain(void)
{
    char *library = tmk_locate_library();
    const char *named = getenv("TIDEMARK_LIB");
    if (library && !library[strcspn(library, " :")])
        return library;
    if (library)
        tmk_say("the loader cannot take '%s', for the space or colon in it; put a copy elsewhere "
                "and set TIDEMARK_LIB to that",
                library);
    else if (named && *named)
        tmk_say("TIDEMARK_LIB says %s, but there is no such library", named);
    else
        tmk_say("libtidemark.so is not beside the program nor in ../lib; set TIDEMARK_LIB to it");
    free(library);
    return NULL;
}

/* Numbers and ranges of them, separated by commas. */
static bool is_rank_list(const char *text)
{
    for (;;) {
        size_t n = strspn(text, "0123456789");
        if (n == 0)
            return false;
        text += n;
        if (*text == '-') {
            n = strspn(++text, "0123456789");
            if (n == 0)
                return false;
            text += n;
        }
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

int tmk_watch_options_read(const struct tmk_args *args, struct tmk_watch *ret)
{
    struct tmk_watch w = *ret;
    if (!parse_size(tmk_args_get(args, "max-size"), &w.max_size_bytes))
        return TMK_EXIT_USAGE;
    w.ranks = tmk_args_get(args, "ranks");
    if (w.ranks && (!is_rank_list(w.ranks) || strlen(w.ranks) >= MAX_RANKS_BYTES)) {
        tmk_say("--ranks: '%s' is not a list of ranks, such as 0,8-15", w.ranks);
        return TMK_EXIT_USAGE;
    }
    w.cpu_tensors = tmk_args_get(args, "cpu-tensors") != NULL;
    w.native = tmk_args_get(args, "native") != NULL;
    w.library = library_or_complain();
    if (!w.library)
        return TMK_EXIT_FINDING;
    *ret = w;
    return 0;
}
