/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_choices.c - the settings that are worth a try when none is asked for, and
 * the part of a device that torch may have; see whatif.h. */
#include "kit/amount.h"
#include "model/alloc_conf.h"
#include "passes/whatif/whatif.h"

const struct tmk_whatif_choice tmk_whatif_choices[] = {
    {"expandable_segments:True", false},
    {"max_split_size_mb:32", false},
    {"max_split_size_mb:128", false},
    {"max_split_size_mb:512", false},
    {"roundup_power2_divisions:4", false},
    {"roundup_power2_divisions:8", false},
    {"expandable_segments:True,roundup_power2_divisions:8", false},
    {"garbage_collection_threshold:0.8", true},
    {"garbage_collection_threshold:0.8,max_split_size_mb:128", true},
    {0},
};

const char *tmk_whatif_recorded_conf(const struct tmk_whatif_recorded *f)
{
    return f->alloc_conf && !f->is_conf_wrong && !f->is_async ? f->alloc_conf : "";
}

uint64_t tmk_whatif_share(const struct tmk_whatif_recorded *f, uint64_t card_bytes)
{
    uint64_t outside = f->outside_bytes == TMK_BYTES_UNKNOWN ? 0 : f->outside_bytes;
    return card_bytes > outside ? card_bytes - outside : 0;
}

uint64_t tmk_whatif_limit(const struct tmk_alloc_conf *conf, uint64_t limit_bytes,
                          uint64_t card_bytes)
{
    if (conf->memory_fraction >= 1 || card_bytes == TMK_BYTES_UNKNOWN)
        return limit_bytes;
    uint64_t allowed = (uint64_t)(conf->memory_fraction * (double)card_bytes);
    return allowed < limit_bytes ? allowed : limit_bytes;
}
