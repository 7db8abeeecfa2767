/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_live.h - what grows in a living process besides its blocks: its memory on the
 * host, and Python's objects by type.
 *
 * Two looks, some seconds apart. A look at Python is one pass over gc.get_objects(), run in the
 * process by its own interpreter (as `tidemark eval`), about 0.3 us an object, during which other
 * Python threads wait. Nothing is kept there. */
#ifndef TMK_CLI_ANSWERS_LEAK_LIVE_H
#define TMK_CLI_ANSWERS_LEAK_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_type_growth {
    char *type; /* "module.Class" */
    uint64_t before, after;
};

struct tmk_leak_live {
    double seconds;                 /* between the looks; 0: there was one only */
    bool has_host;                  /* else the next two are not known */
    uint64_t rss_before, rss_after; /* bytes resident */
    bool has_python;                /* else `reason` says why not */
    char reason[256];
    uint64_t n_objects_before, n_objects; /* that the collector knows */
    double cost_ms;                       /* of one look: time of a core, in the process */
    struct tmk_type_growth *types;        /* those that grew, most objects first */
    uint64_t n_types, room;
};

/* Look at the process, wait, and look again. Call fini in any case. `wants_python` false: Python is
 * not asked. */
void tmk_leak_live_look(const char *pid, double seconds, bool wants_python,
                        struct tmk_leak_live *ret);
void tmk_leak_live_fini(struct tmk_leak_live *live);

#endif
