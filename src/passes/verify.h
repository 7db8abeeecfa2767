/* SPDX-License-Identifier: MIT */
/* passes/verify.h - is a trace whole and does it agree with itself?
 *
 * Beyond checksums: whatever the file says twice must be the same. The context that each chunk
 * carries is compared with the state that replaying the chunks before it gives; so are the
 * addresses' live blocks, checkpoints, step rows and the totals in the header. */
#ifndef TMK_PASSES_VERIFY_H
#define TMK_PASSES_VERIFY_H

#include "model/run.h"

struct tmk_finding {
    uint64_t offset; /* byte in the file */
    const char *text;
};

struct tmk_trace_verdict {
    uint64_t n_findings; /* the first ones are kept, all are counted */
    uint64_t n_kept;
    const struct tmk_finding *findings;
    uint64_t n_notes; /* what is worth knowing and no fault; offset 0 */
    const struct tmk_finding *notes;

    uint32_t n_chunks;
    uint64_t n_events, n_allocs, n_frees; /* replayed, or known from a checkpoint */
    uint64_t n_step_rows;
    uint32_t n_contexts, n_checkpoints; /* compared */
};

struct tmk_verify;

/* Reads the whole trace. `progress` (its function may be NULL) hears how far it is. 0: *ret_verify
 * is the caller's; TMK_ENOMEM or TMK_EIO: it could not be read to the end. */
int tmk_verify_open(struct tmk_process *p, const struct tmk_visitor *progress,
                    struct tmk_verify **ret_verify, struct tmk_error *err);
struct tmk_verify *tmk_verify_close(struct tmk_verify *v);
/* Borrowed until close. */
const struct tmk_trace_verdict *tmk_verify_verdict(const struct tmk_verify *v);

#endif
