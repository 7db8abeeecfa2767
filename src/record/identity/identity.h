/* SPDX-License-Identifier: MIT */
/* record/identity/identity.h - who this process is: the names of its files, and the trace header's
 * text.
 *
 * It is read once, when arming, from /proc, the environment and the system. Only what
 * docs/format.md names is kept: no environment; command-line values that look like secrets are
 * replaced. No malloc, no stdio. */
#ifndef TMK_RECORD_IDENTITY_H
#define TMK_RECORD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { TMK_ROLE_BYTES = 128 };

/* The process's place in its job; -1: not known. From RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK,
 * PMI_RANK and similar variables. The role is the first that the environment tells: its places in
 * parallel groups, such as "dp=2,pp=1,tp=0"; the name that torchrun has for it; the job's name in
 * SLURM; where the launcher put it, "local=1,node=0". */
struct tmk_ranks {
    int64_t rank;
    int64_t world_size;
    int64_t local_rank;
    int64_t local_size;        /* ranks on this node */
    char role[TMK_ROLE_BYTES]; /* "": not known */
};

/* Read the ranks from the environment, on a thread of the program. The helper thread must not: it
 * does not know when the program changes its environment. */
void tmk_ranks_read(struct tmk_ranks *ranks);

/* True when a list such as "0,8-15" has this rank. True also for an empty list, for one that is
 * malformed, and for a process without a rank: when in doubt, watch. */
bool tmk_ranks_include(const char *list, int64_t rank);

struct tmk_identity {
    char host[64];
    uint32_t pid;
    struct tmk_ranks ranks;
    uint64_t start_realtime_ns;
    uint8_t trace_id[16];
};

void tmk_identity_init(struct tmk_identity *id, const struct tmk_ranks *ranks);

/* `FOLDER/HOST.rRANK.PID.START.trace` */
void tmk_identity_trace_path(const struct tmk_identity *id, const char *folder,
                             struct tmk_text *out);

/* `FOLDER/tidemark.UID.PID.START.ring` */
void tmk_identity_ring_path(const struct tmk_identity *id, const char *folder,
                            struct tmk_text *out);

struct tmk_identity_extra { /* what else the header says */
    uint64_t start_monotonic_ns;
    uint64_t ticks_per_second; /* 0: not known */
    uint64_t max_size_bytes;
    const char *ring_path;    /* NULL: none */
    const char *control_path; /* path of the control socket; NULL: none */
};

/* Write the header's info text. */
void tmk_identity_info(const struct tmk_identity *id, const struct tmk_identity_extra *extra,
                       struct tmk_text *out);

#endif
