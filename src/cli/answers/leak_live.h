/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_live.h - what grows in a living process besides its blocks: its memory on the
 * host, and Python's objects by type.
 *
 * A look at Python is one pass over gc.get_objects(), run in the process by its own interpreter (as
 * `tidemark eval`), about 0.3 us an object, during which other Python threads wait. Nothing is kept
 * there. The looks are spread over the time, ten at most, and so few that they take a hundredth of
 * it at most; from seven on they show what leaks and what only swings. */
#ifndef TMK_CLI_ANSWERS_LEAK_LIVE_H
#define TMK_CLI_ANSWERS_LEAK_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_type_growth {
    char *type; /* "module.Class" */
    uint64_t before, after;
    bool is_leak; /* more and more of them, by a hundred or more; false if there is no verdict */
};

struct tmk_leak_live {
    double seconds;                 /* from the first look to the last; 0: there was one only */
    bool has_host;                  /* else the next two are not known */
    uint64_t rss_before, rss_after; /* bytes resident */
    bool has_python;                /* else `reason` says why not */
    char reason[256];
    uint64_t n_objects_before, n_objects; /* that the collector knows */
    double cost_ms;                       /* of one look: time of a core, in the process */
    struct tmk_type_growth *types;        /* those that grew: leaks, then most objects first */
    uint64_t n_types, n_leaks, room;
    unsigned n_looks;
};

enum { TMK_LEAK_LIVE_LOOKS = 7 }; /* that a verdict takes */

/* Whether there is a verdict about Python's types. */
static inline bool tmk_leak_live_is_judged(const struct tmk_leak_live *live)
{
    return live->has_python && live->n_looks >= TMK_LEAK_LIVE_LOOKS;
}

/* Why there is no verdict about Python's types: writes to the caller's buffer and returns it; NULL:
 * there is one, or Python was not counted. */
enum { TMK_LEAK_LIVE_REASON_BYTES = 128 };
const char *tmk_leak_live_reason(const struct tmk_leak_live *live, char *buffer);

/* Look at the process, again and again for so long. Call fini in any case. `wants_python` false:
 * Python is not asked. */
void tmk_leak_live_look(const char *pid, double seconds, bool wants_python,
                        struct tmk_leak_live *ret);
void tmk_leak_live_fini(struct tmk_leak_live *live);

#endif
