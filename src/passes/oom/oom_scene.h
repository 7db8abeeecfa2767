/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_scene.h - what was true when memory ran out, or nearly did: the evidence for
 * explain.h.
 *
 * It takes one sweep. At each OOM it takes what can only be known there: blocks by category,
 * what forward has kept so far by module, reserved bytes, the driver's figures. Two kinds of
 * near misses are scenes as well: a request that the driver failed and that torch's allocator
 * met by giving back its cache, and a device of which TMK_NEAR_PERCENT or more is in use. The
 * fullest near miss of a device is kept, and none of a device that came to an OOM. A storm of
 * errors costs no more than a few: the first ones and the last are kept, all are counted. */
#ifndef TMK_PASSES_OOM_OOM_SCENE_H
#define TMK_PASSES_OOM_OOM_SCENE_H

#include "model/run.h"
#include "passes/group.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/replay.h"
#include "trace/state.h"

enum {
    TMK_SCENE_CATEGORIES = TIDEMARK_KV_CACHE + 1,
    TMK_MAX_SCENES = 16, /* OOMs that are kept */
};

enum tmk_scene_kind {
    TMK_SCENE_OOM,
    TMK_SCENE_RETRY, /* near: the driver failed a request, but giving back the cache made room */
    TMK_SCENE_FULL,  /* near: the device was almost full */
};

/* Bytes are TMK_BYTES_UNKNOWN where the trace does not tell. */
struct tmk_scene {
    enum tmk_scene_kind kind;
    uint64_t time_ns; /* trace time */
    int64_t step;     /* TMK_NO_STEP: before the first */
    uint16_t device;
    bool is_first;          /* the first OOM of the device */
    uint64_t request_bytes; /* FULL: 0 */
    uint64_t times;         /* RETRY: how often it happened on the device; otherwise 1 */

    bool is_of_driver;     /* the driver failed a request of somebody else than torch's allocator */
    const char *owner;     /* who that was: "nccl", "jax" ...; NULL: not known */
    bool driver_refused;   /* torch's allocator had asked the driver for it in vain */
    bool sees_driver;      /* the trace has the allocator's requests to the driver at all */
    uint64_t stated_bytes; /* a limit that the event itself tells */
    bool tells_free;       /* the event tells the device's free memory, as a snapshot's does */

    uint64_t allocated_bytes;    /* in blocks on the device */
    uint64_t turnover_bytes;     /* in all blocks that were ever made on the device until then */
    uint64_t reserved_bytes;     /* by the framework's allocator */
    uint64_t max_reserved_bytes; /* until then */
    uint64_t segment_bytes;      /* in all driver segments of the process */
    uint64_t card_free_bytes;    /* as the event tells, or as computed from what follows: */
    uint64_t card_total_bytes, card_used_bytes; /* as last seen */
    uint64_t own_bytes, others_bytes;           /* of the device, by the driver; as last told */
    uint64_t others_first_bytes;                /* others_bytes when it was first known */
    uint64_t outside_bytes; /* of the process, but not in what was reserved then */

    bool has_site;
    struct tmk_frame site;      /* allocation site of the request */
    const char *module, *stage; /* NULL: none */
    enum tmk_stage stage_kind;

    /* How many forwards had begun since the last backward or step, and the most that a backward of
     * earlier steps was ever for; 0: none was seen. */
    uint32_t n_forwards, most_forwards;
    /* The modules that had been entered in this step, by path, those still open left out. */
    const char *const *entered;
    uint32_t n_entered;

    bool has_blocks; /* else the following are not known */
    uint64_t category_bytes[TMK_SCENE_CATEGORIES];
    uint64_t eval_activation_bytes;         /* of activations: made in evaluation mode */
    uint64_t largest_activation_bytes;      /* one block */
    const struct tmk_peak_row *activations; /* by module, largest first */
    uint64_t n_activations;
    /* Blocks of steps before the last one, without those of the model and its optimizer, by
     * allocation site. */
    const struct tmk_peak_row *old;
    uint64_t n_old;
    const struct tmk_peak_row *old_stacks; /* the same by stack */
    uint64_t n_old_stacks;
};

/* The bytes requested and not given; 0 in a near miss. */
static inline uint64_t tmk_scene_lacking(const struct tmk_scene *s)
{
    return s->kind == TMK_SCENE_OOM ? s->request_bytes : 0;
}

/* True when graphs of several forwards were alive and no backward came for them, as in an
 * evaluation without no_grad: in evaluation mode, or where several times as many had begun as
 * training ever needs for a backward. */
bool tmk_scene_keeps_graphs(const struct tmk_scene *s);

struct tmk_scenes;

/* Returns 0 or TMK_ENOMEM. Give the visitor to a sweep, then finish, then ask. close takes NULL. */
int tmk_scenes_open(const struct tmk_process *p, struct tmk_scenes **ret_scenes);
struct tmk_scenes *tmk_scenes_close(struct tmk_scenes *s);
struct tmk_visitor tmk_scenes_visitor(struct tmk_scenes *s);
int tmk_scenes_finish(struct tmk_scenes *s, struct tmk_error *err);

uint64_t tmk_scenes_n_ooms(const struct tmk_scenes *s); /* that happened */
/* The scenes that were kept: OOMs in order of time, then near misses by device. Borrowed until
 * close. */
uint64_t tmk_scenes_n(const struct tmk_scenes *s);
const struct tmk_scene *tmk_scenes_get(const struct tmk_scenes *s, uint64_t i);

#endif
