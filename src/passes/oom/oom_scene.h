/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_scene.h - what was true when memory ran out, or nearly did: the evidence of
 * explain.h.
 *
 * One sweep. At each refused allocation what can only be known there is taken: blocks by category,
 * what forward has kept so far by module, what the allocator held, what the card said. A refusal of
 * the driver that torch's allocator gets over by giving back its cache, and a card of which
 * TMK_NEAR_PERCENT and more is in use, are scenes of near misses; of each device the fullest is
 * kept, and none where it came to an OOM. A storm of errors costs no more than a few: the first
 * ones and the last are kept, all are counted. */
#ifndef TMK_PASSES_OOM_OOM_SCENE_H
#define TMK_PASSES_OOM_OOM_SCENE_H

#include "model/run.h"
#include "passes/group.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/replay.h"
#include "trace/state.h"

enum {
    TMK_NEAR_PERCENT = 95,
    TMK_SCENE_CATEGORIES = TIDEMARK_OTHER + 1,
    TMK_MAX_SCENES = 16, /* OOMs that are kept */
};

enum tmk_scene_kind {
    TMK_SCENE_OOM,
    TMK_SCENE_RETRY, /* near: the driver refused, but giving back the cache made room */
    TMK_SCENE_FULL,  /* near: the card was almost full */
};

/* Bytes are TMK_BYTES_UNKNOWN where the trace does not tell. */
struct tmk_scene {
    enum tmk_scene_kind kind;
    uint64_t time_ns; /* trace time */
    int64_t step;     /* TMK_NO_STEP: before the first */
    uint16_t device;
    bool is_first;          /* OOM of the device */
    uint64_t request_bytes; /* FULL: 0 */
    uint64_t times;         /* RETRY: how often it happened on the device; else 1 */

    bool is_of_driver;     /* an OOM that the driver told somebody else than torch's allocator */
    const char *owner;     /* who that was: "nccl", "jax" ...; NULL: not known */
    bool driver_refused;   /* torch's allocator had asked the driver for it, in vain */
    bool sees_driver;      /* what the allocator asks of the driver is in the trace at all */
    uint64_t stated_bytes; /* a limit that the event itself tells */
    bool tells_free;       /* the event tells what the card had free, as a snapshot's does */

    uint64_t allocated_bytes;    /* in blocks on the device */
    uint64_t turnover_bytes;     /* in all blocks that were ever made on it, until then */
    uint64_t reserved_bytes;     /* by the framework's allocator */
    uint64_t max_reserved_bytes; /* until then */
    uint64_t segment_bytes;      /* that the process had of the driver, whoever asked for it */
    uint64_t card_free_bytes;    /* where it is told with the event, or is what follows: */
    uint64_t card_total_bytes, card_used_bytes; /* as last seen */
    uint64_t own_bytes, others_bytes;           /* of the card, by the driver; as last told */
    uint64_t others_first_bytes;                /* the first time that it was known */
    uint64_t outside_bytes; /* of the process, but not in what the allocator held then */

    bool has_site;
    struct tmk_frame site;      /* who asked */
    const char *module, *stage; /* NULL: none */
    enum tmk_stage stage_kind;

    bool has_blocks; /* else the next are not known */
    uint64_t category_bytes[TMK_SCENE_CATEGORIES];
    uint64_t largest_activation_bytes;      /* one block */
    const struct tmk_peak_row *activations; /* by module, largest first */
    uint64_t n_activations;
    /* By the line that made them: blocks of steps before the last one, but for those of the model
     * and its optimizer. */
    const struct tmk_peak_row *old;
    uint64_t n_old;
};

/* What was asked for and not given: nothing in a near miss. */
static inline uint64_t tmk_scene_lacking(const struct tmk_scene *s)
{
    return s->kind == TMK_SCENE_OOM ? s->request_bytes : 0;
}

struct tmk_scenes;

/* 0 or TMK_ENOMEM. Give the visitor to a sweep, then finish, then ask. close takes NULL. */
int tmk_scenes_open(const struct tmk_process *p, struct tmk_scenes **ret_scenes);
struct tmk_scenes *tmk_scenes_close(struct tmk_scenes *s);
struct tmk_visitor tmk_scenes_visitor(struct tmk_scenes *s);
int tmk_scenes_finish(struct tmk_scenes *s, struct tmk_error *err);

uint64_t tmk_scenes_n_ooms(const struct tmk_scenes *s); /* that happened */
/* Those kept: OOMs in order of time, then near misses by device. Borrowed until close. */
uint64_t tmk_scenes_n(const struct tmk_scenes *s);
const struct tmk_scene *tmk_scenes_get(const struct tmk_scenes *s, uint64_t i);

#endif
