/* SPDX-License-Identifier: MIT */
/* record/identity/identity.c - see identity.h. */
#include "record/identity/identity.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "record/identity/host_memory.h"
#include "record/identity/redact.h"

#ifndef TMK_VERSION
#define TMK_VERSION "unknown"
#endif

enum { COMMAND_BYTES = 2000, CONF_BYTES = 256 };

/* In each list the first variable that holds a number counts. */
static const char *const rank_names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                         NULL};
static const char *const world_names[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
                                          "PMI_SIZE", NULL};
static const char *const local_names[] = {"LOCAL_RANK",
                                          "SLURM_LOCALID",
                                          "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID",
                                          "MV2_COMM_WORLD_LOCAL_RANK",
                                          NULL};
static const char *const local_size_names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                               "SLURM_NTASKS_PER_NODE", NULL};

/* Numbers that make up a role, in the order of their keys. */
enum { MOST_NAMES = 5 };
struct role_part {
    const char *key;
    const char *names[MOST_NAMES];
};
static const struct role_part parallel_parts[] = {
    {"cp", {"CONTEXT_PARALLEL_RANK", "CP_RANK"}},
    {"dp", {"DATA_PARALLEL_RANK", "DP_RANK"}},
    {"ep", {"EXPERT_MODEL_PARALLEL_RANK", "EXPERT_PARALLEL_RANK", "EP_RANK"}},
    {"pp", {"PIPELINE_MODEL_PARALLEL_RANK", "PIPELINE_PARALLEL_RANK", "PP_RANK"}},
    {"tp", {"TENSOR_MODEL_PARALLEL_RANK", "TENSOR_PARALLEL_RANK", "TP_RANK"}},
};
static const char *const node_names[] = {"GROUP_RANK", "NODE_RANK", "SLURM_NODEID", NULL};

/* Settings of torch's allocator, in the order in which torch looks. */
static const char *const conf_names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                         "PYTORCH_HIP_ALLOC_CONF", NULL};

static int64_t number_in_environment(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        size_t n = text ? strspn(text, "0123456789") : 0;
        if (n == 0 || n > 9 || text[n])
            continue;
        int64_t value = 0;
        for (size_t i = 0; i < n; i++)
            value = value * 10 + (text[i] - '0');
        return value;
    }
    return -1;
}

static void make_trace_id(struct tmk_identity *id)
{
    if (getrandom(id->trace_id, sizeof id->trace_id, GRND_NONBLOCK) == (ssize_t)sizeof id->trace_id)
        return;
    uint64_t a = tmk_hash_mix(tmk_clock_monotonic_ns(), id->pid); /* early boot: no entropy yet */
    uint64_t b = tmk_hash_mix(a, (uintptr_t)id);
    memcpy(id->trace_id, &a, 8);
    memcpy(id->trace_id + 8, &b, 8);
}

static void add_role_part(struct tmk_text *out, const char *key, int64_t number)
{
    if (number < 0)
        return;
    tmk_text_add(out, "%s%s=", out->length > 0 ? "," : "", key);
    tmk_text_u64(out, (uint64_t)number);
}

/* Add the value of a variable, with blanks for control characters. False: it is not set, or does
 * not fit. */
static bool add_role_name(struct tmk_text *out, const char *name)
{
    const char *value = getenv(name);
    if (!value || !*value || strlen(value) >= TMK_ROLE_BYTES)
        return false;
    for (; *value; value++)
        tmk_text_char(out, (unsigned char)*value < ' ' ? ' ' : *value);
    return true;
}

static void read_role(struct tmk_ranks *ranks)
{
    struct tmk_text out;
    tmk_text_init(&out, ranks->role, sizeof ranks->role);
    for (size_t i = 0; i < TMK_N(parallel_parts); i++)
        add_role_part(&out, parallel_parts[i].key, number_in_environment(parallel_parts[i].names));
    if (out.length > 0 || add_role_name(&out, "ROLE_NAME") ||
        (getenv("SLURM_PROCID") && add_role_name(&out, "SLURM_JOB_NAME")))
        return;
    if (ranks->rank < 0) /* nobody has launched it as one of several */
        return;
    add_role_part(&out, "local", ranks->local_rank);
    add_role_part(&out, "node", number_in_environment(node_names));
}

void tmk_ranks_read(struct tmk_ranks *ranks)
{
    ranks->rank = number_in_environment(rank_names);
    ranks->world_size = number_in_environment(world_names);
    ranks->local_rank = number_in_environment(local_names);
    ranks->local_size = number_in_environment(local_size_names);
    read_role(ranks);
}

/* Read a number at *text and move *text behind it; -1 when there is none. */
static int64_t take_rank_number(const char **text)
{
    size_t n = strspn(*text, "0123456789");
    if (n == 0 || n > 9)
        return -1;
    int64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + ((*text)[i] - '0');
    *text += n;
    return value;
}

bool tmk_ranks_include(const char *list, int64_t rank)
{
    bool found = false;
    if (!*list || rank < 0)
        return true;
    for (const char *at = list;; at++) {
        int64_t first = take_rank_number(&at), last = first;
        if (*at == '-') {
            at++;
            last = take_rank_number(&at);
        }
        if (first < 0 || last < 0 || (*at && *at != ','))
            return true;
        found |= first <= rank && rank <= last;
        if (!*at)
            return found;
    }
}

void tmk_identity_init(struct tmk_identity *id, const struct tmk_ranks *ranks)
{
    *id = (struct tmk_identity){.pid = (uint32_t)getpid(), .ranks = *ranks};
    if (gethostname(id->host, sizeof id->host - 1) < 0 || !id->host[0])
        strcpy(id->host, "host");
    for (char *c = id->host; *c; c++)
        if (*c == '/' || *c == '\n')
            *c = '_';
    id->start_realtime_ns = tmk_clock_ns(CLOCK_REALTIME);
    make_trace_id(id);
}

/* Add YYYYMMDDThhmmss.mmm in UTC. It is computed here because gmtime_r() looks at the time zone,
 * which takes locks, the environment and memory. */
static void add_start_time(struct tmk_text *out, uint64_t realtime_ns)
{
    uint64_t seconds = realtime_ns / 1000000000u;
    uint64_t days = seconds / 86400 + 719468; /* since 1 March of the year 0 */
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    uint64_t month = (5 * day + 2) / 153; /* from March */
    tmk_text_padded(out, era * 400 + year + (month >= 10), 4);
    tmk_text_padded(out, month < 10 ? month + 3 : month - 9, 2);
    tmk_text_padded(out, day - (153 * month + 2) / 5 + 1, 2);
    tmk_text_char(out, 'T');
    tmk_text_padded(out, seconds / 3600 % 24, 2);
    tmk_text_padded(out, seconds / 60 % 60, 2);
    tmk_text_padded(out, seconds % 60, 2);
    tmk_text_char(out, '.');
    tmk_text_padded(out, realtime_ns / 1000000 % 1000, 3);
}

void tmk_identity_trace_path(const struct tmk_identity *id, const char *folder,
                             struct tmk_text *out)
{
    tmk_text_add(out, "%s/%s.r", folder, id->host);
    if (id->ranks.rank < 0)
        tmk_text_char(out, '-');
    else
        tmk_text_u64(out, (uint64_t)id->ranks.rank);
    tmk_text_add(out, ".%u.", id->pid);
    add_start_time(out, id->start_realtime_ns);
    tmk_text_string(out, ".trace");
}

void tmk_identity_ring_path(const struct tmk_identity *id, const char *folder, struct tmk_text *out)
{
    tmk_text_add(out, "%s/tidemark.%u.%u.", folder, (unsigned)geteuid(), id->pid);
    add_start_time(out, id->start_realtime_ns);
    tmk_text_string(out, ".ring");
}

/* ---- the info text ---- */

static void add_info_text(struct tmk_text *out, const char *key, const char *value)
{
    tmk_text_add(out, "%s=", key);
    for (; *value; value++) {
        if (*value == '\n')
            tmk_text_string(out, "\\n");
        else if (*value == '\\')
            tmk_text_string(out, "\\\\");
        else
            tmk_text_char(out, *value);
    }
    tmk_text_char(out, '\n');
}

static void add_info_number(struct tmk_text *out, const char *key, int64_t value)
{
    if (value >= 0)
        tmk_text_add(out, "%s=%llu\n", key, (unsigned long long)value);
}

/* The command is cut to what the header has room for, at a character's boundary. */
static void add_command(struct tmk_text *out)
{
    static const char ellipsis[] = "…";
    char raw[COMMAND_BYTES + 1], line[COMMAND_BYTES];
    size_t n = tmk_fd_read_small("/proc/self/cmdline", raw, sizeof raw - 1);
    raw[n] = '\0';
    struct tmk_text text;
    tmk_text_init(&text, line, sizeof line);
    tmk_redact_command(raw, n, &text);
    if (text.cut || n == sizeof raw - 1) {
        size_t keep = text.length > sizeof line - 8 ? sizeof line - 8 : text.length;
        while (keep > 0 && ((unsigned char)line[keep] & 0xc0) == 0x80)
            keep--;
        memcpy(line + keep, ellipsis, sizeof ellipsis);
    }
    add_info_text(out, "command", line);
}

/* An empty value says that there were none. Settings that are too long for torch to mean anything
 * are left out. */
static void add_alloc_conf(struct tmk_text *out)
{
    const char *conf = NULL;
    for (const char *const *name = conf_names; *name && !conf; name++)
        conf = getenv(*name);
    if (!conf)
        conf = "";
    if (strlen(conf) < CONF_BYTES)
        add_info_text(out, "alloc_conf", conf);
}

/* Add what a job on the CPU can run out of. */
static void add_host_memory(struct tmk_text *out)
{
    struct tmk_host_memory memory;
    if (!tmk_host_memory_read(&memory))
        return;
    add_info_number(out, "host_memory", (int64_t)memory.total_bytes);
    add_info_number(out, "host_available", (int64_t)memory.available_bytes);
}

static void add_system(struct tmk_text *out)
{
    char text[256] = {0};
    struct utsname name;
    if (uname(&name) == 0) {
        add_info_text(out, "kernel", name.release);
        add_info_text(out, "arch", name.machine);
    }
    size_t n = tmk_fd_read_small("/proc/sys/kernel/random/boot_id", text, sizeof text - 1);
    text[strcspn(text, "\n")] = '\0';
    if (n > 0)
        add_info_text(out, "boot_id", text);
    tmk_text_add(out, "libc=glibc %s\n", gnu_get_libc_version());
    ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
    if (length > 0) {
        text[length] = '\0';
        add_info_text(out, "exe", text);
    }
}

void tmk_identity_info(const struct tmk_identity *id, const struct tmk_identity_extra *extra,
                       struct tmk_text *out)
{
    add_info_text(out, "tidemark", TMK_VERSION);
    add_info_text(out, "host", id->host);
    add_info_number(out, "pid", id->pid);
    add_info_number(out, "ppid", getppid());
    add_info_number(out, "uid", getuid());
    add_info_number(out, "rank", id->ranks.rank);
    add_info_number(out, "world_size", id->ranks.world_size);
    add_info_number(out, "local_rank", id->ranks.local_rank);
    if (id->ranks.role[0])
        add_info_text(out, "role", id->ranks.role);
    add_info_number(out, "start_realtime_ns", (int64_t)id->start_realtime_ns);
    add_info_number(out, "start_monotonic_ns", (int64_t)extra->start_monotonic_ns);
    add_info_text(out, "clock", tmk_clock_name());
    if (extra->ticks_per_second)
        add_info_number(out, "ticks_per_second", (int64_t)extra->ticks_per_second);
    add_info_number(out, "max_size", (int64_t)extra->max_size_bytes);
    if (extra->ring_path)
        add_info_text(out, "ring", extra->ring_path);
    else
        add_info_text(out, "lock", "trace"); /* which then says whether the process lives */
    if (extra->control_path)
        add_info_text(out, "control", extra->control_path);
    add_system(out);
    add_alloc_conf(out);
    add_host_memory(out);
    add_command(out);
}
