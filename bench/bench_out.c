/* SPDX-License-Identifier: MIT */
/* bench_out.c - see bench_out.h.
 *
 * Gaps between events are log-normal around 4 us, the pace of an eager training on a GPU: one in
 * twelve is under 1 us, one in a hundred over 40 us. */
#include "bench_out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/state.h"

enum { NAME_SLOTS = 1 << 14, MAX_FRAMES = 64 };

/* The recorder's own default, so that checkpoints are paced as in a real trace. */
#define MAX_SIZE_BYTES (2ull << 30)

enum { RANKS_ON_A_HOST = 8 };
#define GAP_MEDIAN_NS 4000.0
#define GAP_SIGMA 1.0
#define START_REALTIME_NS 1767225600000000000ull /* 2026-01-01T00:00:00Z */

struct tmk_bench_name { /* id 0: an empty slot */
    uint64_t hash;
    uint32_t id;
};

/* ---- random numbers ---- */

uint64_t tmk_bench_out_random(struct tmk_bench_out *o)
{
    o->random += 0x9e3779b97f4a7c15u;
    return tmk_hash_u64(o->random);
}

static double uniform(struct tmk_bench_out *o)
{
    return ((double)(tmk_bench_out_random(o) >> 11) + 0.5) / 9007199254740992.0;
}

static void make_gaps(struct tmk_bench_out *o)
{
    for (int i = 0; i < TMK_BENCH_GAPS; i++) {
        double z = sqrt(-2.0 * log(uniform(o))) * cos(6.283185307179586 * uniform(o));
        o->gaps_ns[i] = (uint32_t)(GAP_MEDIAN_NS * exp(GAP_SIGMA * z));
    }
}

/* ---- open and close ---- */

static int fail(struct tmk_bench_out *o, int rc)
{
    if (o->rc == 0)
        o->rc = rc;
    return o->rc;
}

static int make_file(struct tmk_bench_out *o, const char *folder, const char *command,
                     const struct tmk_bench_rank *r)
{
    if (r->rank == 0 && mkdir(folder, 0777) < 0)
        return tmk_fail_os(&o->error, TMK_EIO, errno, "cannot make the folder %s", folder);
    char path[3000], info[2048], host[24] = "bench", boot[48] = "";
    if (r->world_size > 1) {
        snprintf(host, sizeof host, "node%u", r->rank / RANKS_ON_A_HOST);
        snprintf(boot, sizeof boot, "boot_id=bench-%u\n", r->rank / RANKS_ON_A_HOST);
    }
    snprintf(path, sizeof path, "%s/%s.r%u.%u.20260101T000000.000.trace", folder, host, r->rank,
             4242 + r->rank);
    snprintf(info, sizeof info,
             "host=%s\npid=%u\nrank=%u\nworld_size=%u\ncommand=%s\n"
             "start_realtime_ns=%llu\nstart_monotonic_ns=1000000000\nclock=tsc\n"
             "tidemark=" TMK_VERSION "\n%s",
             host, 4242 + r->rank, r->rank, r->world_size, command, START_REALTIME_NS, boot);
    uint8_t id[16];
    uint64_t words[2] = {tmk_bench_out_random(o), tmk_bench_out_random(o)};
    memcpy(id, words, sizeof id);
    return tmk_writer_create(&o->writer, path, id, info, MAX_SIZE_BYTES, &o->error);
}

int tmk_bench_out_open(struct tmk_bench_out *o, const char *folder, const char *command,
                       uint64_t seed, const struct tmk_bench_limits *limits,
                       const struct tmk_bench_rank *rank)
{
    *o = (struct tmk_bench_out){.limits = *limits, .random = seed, .writer = {.fd = -1}};
    o->names = calloc(NAME_SLOTS, sizeof *o->names);
    if (!o->names)
        return fail(o, TMK_ENOMEM);
    make_gaps(o);
    int rc = make_file(o, folder, command, rank);
    if (rc < 0)
        return fail(o, rc);
    struct tmk_packer_options options =
        tmk_packer_options_for(MAX_SIZE_BYTES, &tmk_state_limits_recorder);
    struct tmk_chunk_out out = tmk_writer_out(&o->writer);
    rc = tmk_packer_open(&options, &out, &o->packer);
    return rc < 0 ? fail(o, rc) : 0;
}

static int finish(struct tmk_bench_out *o)
{
    int rc = tmk_packer_finish(o->packer);
    if (rc == 0) {
        o->writer.status.state = TMK_STATE_CLOSED;
        rc = tmk_writer_put_status(&o->writer, tmk_packer_state(o->packer));
    }
    if (rc < 0)
        o->error = o->writer.error;
    return rc;
}

int tmk_bench_out_close(struct tmk_bench_out *o)
{
    if (o->packer && o->rc == 0)
        fail(o, finish(o));
    o->truth.end_ns = o->now_ns;
    o->truth.file_bytes = o->writer.file_bytes;
    if (o->writer.fd >= 0)
        tmk_writer_close(&o->writer);
    o->packer = tmk_packer_close(o->packer);
    free(o->names);
    o->names = NULL;
    return o->rc;
}

/* ---- definitions ---- */

static void add(struct tmk_bench_out *o, const struct tmk_input *in)
{
    if (o->rc < 0)
        return;
    int rc = tmk_packer_add(o->packer, in);
    if (rc > 0)
        rc = tmk_packer_flush(o->packer);
    if (rc < 0) {
        o->error = o->writer.error;
        fail(o, rc);
    }
}

/* The slot of a name; its id is 0 when it is new. Hashes of some thousand names do not meet. */
static struct tmk_bench_name *find_name(struct tmk_bench_out *o, uint64_t hash)
{
    uint32_t at = (uint32_t)hash % NAME_SLOTS;
    while (o->names[at].id && o->names[at].hash != hash)
        at = (at + 1) % NAME_SLOTS;
    o->names[at].hash = hash;
    return &o->names[at];
}

uint32_t tmk_bench_out_string(struct tmk_bench_out *o, const char *text)
{
    struct tmk_bench_name *name = find_name(o, tmk_hash_bytes(text, strlen(text)));
    if (name->id == 0) {
        name->id = ++o->n_strings;
        struct tmk_input in = {.kind = TMK_KIND_DEF_STRING,
                               .id = name->id,
                               .text = (const uint8_t *)text,
                               .text_bytes = (uint32_t)strlen(text)};
        add(o, &in);
    }
    return name->id;
}

uint32_t tmk_bench_out_frame(struct tmk_bench_out *o, const char *file, const char *function,
                             uint32_t line)
{
    uint64_t file_id = tmk_bench_out_string(o, file);
    uint64_t function_id = tmk_bench_out_string(o, function);
    uint64_t key = tmk_hash_mix(file_id << 32 | function_id, line);
    struct tmk_bench_name *name = find_name(o, key);
    if (name->id == 0) {
        name->id = ++o->n_frames;
        struct tmk_input in = {.kind = TMK_KIND_DEF_FRAME,
                               .id = name->id,
                               .a = file_id << 32 | function_id,
                               .b = line};
        add(o, &in);
    }
    return name->id;
}

uint32_t tmk_bench_out_stack(struct tmk_bench_out *o, const uint32_t *frames, uint32_t n)
{
    uint8_t bytes[4 * MAX_FRAMES];
    n = n < MAX_FRAMES ? n : MAX_FRAMES;
    memcpy(bytes, frames, (size_t)n * 4);
    struct tmk_input in = {
        .kind = TMK_KIND_DEF_STACK, .id = ++o->n_stacks, .text = bytes, .text_bytes = n * 4};
    add(o, &in);
    return o->n_stacks;
}

void tmk_bench_out_thread(struct tmk_bench_out *o, uint32_t id, uint64_t system_id,
                          const char *name)
{
    struct tmk_input in = {.kind = TMK_KIND_DEF_THREAD,
                           .id = id,
                           .a = system_id,
                           .text = (const uint8_t *)name,
                           .text_bytes = (uint32_t)strlen(name)};
    add(o, &in);
}

/* ---- events ---- */

void tmk_bench_out_wait(struct tmk_bench_out *o, uint64_t ns)
{
    o->now_ns += ns;
}

static void count_block(struct tmk_bench_truth *t, const struct tmk_input *in, uint64_t now_ns)
{
    if (in->kind == TMK_KIND_ALLOC) {
        t->n_allocs++;
        t->n_live++;
        t->live_bytes += in->b;
    } else {
        t->n_frees++;
        t->n_live--;
        t->live_bytes -= in->b;
    }
    if (t->live_bytes > t->peak_bytes) {
        t->peak_bytes = t->live_bytes;
        t->peak_ns = now_ns;
    }
}

static void count_range(struct tmk_bench_out *o, const struct tmk_input *in)
{
    bool *stage_open = &o->stage_open[in->thread % TMK_BENCH_THREADS];
    if (in->a == TIDEMARK_STAGE)
        *stage_open = in->kind == TMK_KIND_PUSH;
    else if (in->a == TIDEMARK_MODULE && *stage_open)
        o->truth.n_rows++;
}

static void count(struct tmk_bench_out *o, const struct tmk_input *in)
{
    struct tmk_bench_truth *t = &o->truth;
    t->n_events++;
    if (in->kind == TMK_KIND_ALLOC || in->kind == TMK_KIND_FREE)
        count_block(t, in, o->now_ns);
    else if (in->kind == TMK_KIND_PUSH || in->kind == TMK_KIND_POP)
        count_range(o, in);
    else if (in->kind == TMK_KIND_TAG)
        t->n_tags++;
    else if (in->kind == TMK_KIND_STEP)
        t->n_steps++;
    o->is_full = t->n_events >= o->limits.n_events || t->n_rows >= o->limits.n_rows;
}

void tmk_bench_out_event(struct tmk_bench_out *o, const struct tmk_input *event)
{
    if (o->is_full || o->rc < 0)
        return;
    o->now_ns += o->gaps_ns[tmk_bench_out_random(o) % TMK_BENCH_GAPS];
    struct tmk_input in = *event;
    in.ns = o->now_ns;
    add(o, &in);
    count(o, &in);
}
