/* SPDX-License-Identifier: MIT */
/* model/alloc_conf.c - see alloc_conf.h.
 *
 * A table of keys gives the kind of each value: a number, a fraction, a truth value, or one of the
 * few with their own syntax. As in torch, blanks mean nothing and an unknown key is an error: a
 * misspelt option would otherwise silently change nothing. */
#include "model/alloc_conf.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { TOKEN_BYTES = 64, MIB_SHIFT = 20 };

void tmk_alloc_conf_init(struct tmk_alloc_conf *conf)
{
    *conf = (struct tmk_alloc_conf){.max_split_bytes = TMK_ALLOC_NO_BOUND,
                                    .max_non_split_rounding_bytes = TMK_ALLOC_LARGE_SEGMENT,
                                    .large_segment_bytes = TMK_ALLOC_LARGE_SEGMENT,
                                    .memory_fraction = 1.0};
}

/* ---- words of the text ---- */

/* The position in the text. `word` is the next word: a key, a value, or one of : , [ ] alone; "" at
 * the end. */
struct conf_scan {
    const char *rest;
    char word[TOKEN_BYTES];
    struct tmk_error *err;
};

static bool is_next_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static void advance_scan(struct conf_scan *s)
{
    size_t n = 0;
    while (*s->rest == ' ')
        s->rest++;
    if (is_next_mark(*s->rest)) {
        s->word[n++] = *s->rest++;
    } else {
        for (; *s->rest && !is_next_mark(*s->rest); s->rest++)
            if (*s->rest != ' ' && n + 1 < sizeof s->word)
                s->word[n++] = *s->rest;
    }
    s->word[n] = '\0';
}

static bool is_next_word(const struct conf_scan *s, const char *text)
{
    return strcmp(s->word, text) == 0;
}

static int expect_mark(struct conf_scan *s, const char *mark)
{
    if (!is_next_word(s, mark))
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: '%s' expected before '%s'", mark,
                        s->word[0] ? s->word : "the end");
    advance_scan(s);
    return 0;
}

static int read_conf_number(struct conf_scan *s, const char *key, uint64_t *ret)
{
    char *end;
    uint64_t n = strtoull(s->word, &end, 10);
    if (s->word[0] < '0' || s->word[0] > '9' || *end || n > UINT32_MAX)
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: %s needs a number, not '%s'", key,
                        s->word);
    *ret = n;
    advance_scan(s);
    return 0;
}

static int read_fraction(struct conf_scan *s, const char *key, double *ret)
{
    char *end;
    double f = strtod(s->word, &end);
    if (!s->word[0] || *end || !(f > 0) || !(f <= 1))
        return tmk_fail(s->err, TMK_EINVAL,
                        "allocator settings: %s needs a number between 0 and 1, not '%s'", key,
                        s->word);
    *ret = f;
    advance_scan(s);
    return 0;
}

static int read_truth(struct conf_scan *s, const char *key, bool *ret)
{
    if (!is_next_word(s, "True") && !is_next_word(s, "False"))
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: %s needs True or False, not '%s'",
                        key, s->word);
    *ret = is_next_word(s, "True");
    advance_scan(s);
    return 0;
}

/* ---- roundup_power2_divisions ---- */

static bool is_power2(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static unsigned log2_floor(uint64_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

static int read_divisions(struct conf_scan *s, const char *key, bool may_be_none, uint64_t *ret)
{
    uint64_t n = 0;
    int rc = read_conf_number(s, key, &n);
    if (rc < 0)
        return rc;
    if (!is_power2(n) && !(may_be_none && n == 0))
        return tmk_fail(s->err, TMK_EINVAL,
                        "allocator settings: divisions of %s must be a power of 2", key);
    *ret = n;
    return 0;
}

static void set_divisions(struct tmk_alloc_conf *conf, unsigned from, unsigned until, uint64_t n)
{
    for (unsigned i = from; i < until; i++)
        conf->roundup_divisions[i] = n;
}

/* Read "256:4" or ">:8". The first interval named also stands for all below it, ">" for all above
 * the last one (above the very first, if none was named: that is how torch 2.11 counts). */
static int read_interval(struct conf_scan *s, const char *key, struct tmk_alloc_conf *conf,
                         int *last)
{
    uint64_t mib = 0, n = 0;
    bool is_rest = is_next_word(s, ">");
    int rc = 0;
    if (is_rest)
        advance_scan(s);
    else
        rc = read_conf_number(s, key, &mib);
    if (rc == 0 && !is_rest && !is_power2(mib))
        rc = tmk_fail(s->err, TMK_EINVAL,
                      "allocator settings: intervals of %s must be a power of 2", key);
    if (rc == 0)
        rc = expect_mark(s, ":");
    if (rc == 0)
        rc = read_divisions(s, key, true, &n);
    if (rc < 0)
        return rc;
    if (is_rest) {
        set_divisions(conf, *last < 0 ? 1 : (unsigned)*last + 1, TMK_ALLOC_N_INTERVALS, n);
        return 0;
    }
    unsigned i = log2_floor(mib);
    if (i >= TMK_ALLOC_N_INTERVALS)
        i = TMK_ALLOC_N_INTERVALS - 1;
    set_divisions(conf, *last < 0 ? 0 : i, i + 1, n);
    *last = (int)i;
    return 0;
}

static int read_roundup(struct conf_scan *s, const char *key, struct tmk_alloc_conf *conf)
{
    uint64_t n = 0;
    if (!is_next_word(s, "[")) {
        int rc = read_divisions(s, key, false, &n);
        if (rc == 0)
            set_divisions(conf, 0, TMK_ALLOC_N_INTERVALS, n);
        return rc;
    }
    int last = -1, rc = 0;
    do {
        advance_scan(s);
        rc = read_interval(s, key, conf, &last);
    } while (rc == 0 && is_next_word(s, ","));
    return rc < 0 ? rc : expect_mark(s, "]");
}

/* ---- keys ---- */

enum conf_value_kind { MIB, FRACTION, THRESHOLD, TRUTH, ROUNDUP, BACKEND, IGNORED };

static const struct conf_key {
    const char *name;
    enum conf_value_kind value;
    uint64_t least; /* least value, for MIB */
    size_t offset;  /* of the field in struct tmk_alloc_conf */
} keys[] = {
#define FIELD(name) offsetof(struct tmk_alloc_conf, name)
    {"max_split_size_mb", MIB, 0, FIELD(max_split_bytes)}, /* see settle_alloc_conf() */
    {"max_non_split_rounding_mb", MIB, 0, FIELD(max_non_split_rounding_bytes)},
    {"large_segment_size_mb", MIB, 11,
     FIELD(large_segment_bytes)}, /* above the largest block in it */
    {"garbage_collection_threshold", THRESHOLD, 0, FIELD(gc_threshold)},
    {"per_process_memory_fraction", FRACTION, 0, FIELD(memory_fraction)},
    {"expandable_segments", TRUTH, 0, FIELD(expandable_segments)},
    {"roundup_power2_divisions", ROUNDUP, 0, 0},
    {"backend", BACKEND, 0, FIELD(is_async)},
    /* Options about pinned host memory, locks and graph capture, which are not modelled. */
    {"pinned_use_cuda_host_register", IGNORED, 0, 0},
    {"pinned_use_hip_host_register", IGNORED, 0, 0},
    {"pinned_num_register_threads", IGNORED, 0, 0},
    {"pinned_reserve_segment_size_mb", IGNORED, 0, 0},
    {"pinned_use_background_threads", IGNORED, 0, 0},
    {"pinned_max_cached_size_mb", IGNORED, 0, 0},
    {"pinned_max_round_threshold_mb", IGNORED, 0, 0},
    {"release_lock_on_cudamalloc", IGNORED, 0, 0},
    {"release_lock_on_hipmalloc", IGNORED, 0, 0},
    {"graph_capture_record_stream_reuse", IGNORED, 0, 0},
    {"throw_on_cudamalloc_oom", IGNORED, 0, 0},
#undef FIELD
};

static const struct conf_key *find_key(const char *name)
{
    for (size_t i = 0; i < TMK_N(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static int read_mib(struct conf_scan *s, const struct conf_key *k, uint64_t *ret)
{
    uint64_t mib = 0;
    int rc = read_conf_number(s, k->name, &mib);
    if (rc < 0)
        return rc;
    if (mib < k->least)
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: %s must be at least %llu", k->name,
                        (unsigned long long)k->least);
    *ret = mib << MIB_SHIFT;
    return 0;
}

static int read_threshold(struct conf_scan *s, const struct conf_key *k, double *ret)
{
    double f = 0;
    int rc = read_fraction(s, k->name, &f);
    if (rc == 0 && f >= 1)
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: %s must be below 1", k->name);
    if (rc == 0)
        *ret = f;
    return rc;
}

static int read_backend(struct conf_scan *s, bool *ret)
{
    if (!is_next_word(s, "native") && !is_next_word(s, "cudaMallocAsync") &&
        !is_next_word(s, "hipMallocAsync"))
        return tmk_fail(s->err, TMK_EINVAL,
                        "allocator settings: backend is native or cudaMallocAsync, not '%s'",
                        s->word);
    *ret = !is_next_word(s, "native");
    advance_scan(s);
    return 0;
}

static int read_conf_value(struct conf_scan *s, const struct conf_key *k,
                           struct tmk_alloc_conf *conf)
{
    void *field = (char *)conf + k->offset;
    switch (k->value) {
    case MIB:
        return read_mib(s, k, field);
    case FRACTION:
        return read_fraction(s, k->name, field);
    case THRESHOLD:
        return read_threshold(s, k, field);
    case TRUTH:
        return read_truth(s, k->name, field);
    case ROUNDUP:
        return read_roundup(s, k->name, conf);
    case BACKEND:
        return read_backend(s, field);
    case IGNORED:
        break;
    }
    advance_scan(s);
    return 0;
}

static int read_option(struct conf_scan *s, struct tmk_alloc_conf *conf)
{
    const struct conf_key *k = find_key(s->word);
    if (!k)
        return tmk_fail(s->err, TMK_EINVAL, "allocator settings: torch knows no option '%s'",
                        s->word);
    advance_scan(s);
    int rc = expect_mark(s, ":");
    return rc < 0 ? rc : read_conf_value(s, k, conf);
}

/* Apply the settings that depend on the size of segments, wherever in the text that is. */
static int settle_alloc_conf(struct tmk_alloc_conf *conf, struct tmk_error *err)
{
    uint64_t least = conf->large_segment_bytes;
    const char *wrong = NULL;
    if (conf->max_non_split_rounding_bytes == TMK_ALLOC_NO_BOUND)
        conf->max_non_split_rounding_bytes = least;
    if (conf->max_split_bytes < least)
        wrong = "max_split_size_mb";
    else if (conf->max_non_split_rounding_bytes < least)
        wrong = "max_non_split_rounding_mb";
    if (!wrong)
        return 0;
    return tmk_fail(err, TMK_EINVAL,
                    "allocator settings: %s must be at least %llu, which is large_segment_size_mb",
                    wrong, (unsigned long long)(least >> MIB_SHIFT));
}

int tmk_alloc_conf_parse(const char *text, struct tmk_alloc_conf *ret_conf, struct tmk_error *err)
{
    struct tmk_alloc_conf conf;
    struct conf_scan s = {.rest = text ? text : "", .err = err};
    tmk_alloc_conf_init(&conf);
    conf.max_non_split_rounding_bytes = TMK_ALLOC_NO_BOUND; /* not given */
    advance_scan(&s);
    while (s.word[0]) {
        int rc = read_option(&s, &conf);
        if (rc == 0 && s.word[0])
            rc = expect_mark(&s, ",");
        if (rc < 0)
            return rc;
    }
    int rc = settle_alloc_conf(&conf, err);
    if (rc == 0)
        *ret_conf = conf;
    return rc;
}

/* ---- rules ---- */

/* Intervals are 1 MiB to 2 MiB and so on; smaller sizes belong to the first. */
static uint64_t divisions_of(const struct tmk_alloc_conf *conf, uint64_t bytes)
{
    unsigned log = log2_floor(bytes);
    unsigned i = log < MIB_SHIFT ? 0 : log - MIB_SHIFT;
    return conf->roundup_divisions[i < TMK_ALLOC_N_INTERVALS ? i : TMK_ALLOC_N_INTERVALS - 1];
}

/* Round up to the next of `divisions` equal steps between two powers of 2. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions)
{
    uint64_t step = (1ull << log2_floor(bytes)) >> log2_floor(divisions);
    return (bytes + step - 1) & ~(step - 1);
}

uint64_t tmk_alloc_round(const struct tmk_alloc_conf *conf, uint64_t bytes)
{
    if (bytes < TMK_ALLOC_UNIT)
        return TMK_ALLOC_UNIT;
    uint64_t divisions = divisions_of(conf, bytes);
    if (divisions > 1 && bytes > TMK_ALLOC_UNIT * divisions)
        return round_to_division(bytes, divisions);
    return (bytes + TMK_ALLOC_UNIT - 1) / TMK_ALLOC_UNIT * TMK_ALLOC_UNIT;
}

uint64_t tmk_alloc_segment_bytes(const struct tmk_alloc_conf *conf, uint64_t rounded)
{
    if (tmk_alloc_is_small(rounded))
        return TMK_ALLOC_SMALL_SEGMENT;
    if (rounded < TMK_ALLOC_OWN_SEGMENT)
        return conf->large_segment_bytes;
    return (rounded + TMK_ALLOC_ROUND_SEGMENT - 1) / TMK_ALLOC_ROUND_SEGMENT *
           TMK_ALLOC_ROUND_SEGMENT;
}

bool tmk_alloc_should_split(const struct tmk_alloc_conf *conf, uint64_t block_bytes,
                            uint64_t rounded)
{
    assert(block_bytes >= rounded);
    uint64_t rest = block_bytes - rounded;
    if (tmk_alloc_is_small(rounded) || conf->expandable_segments)
        return rest >= TMK_ALLOC_UNIT;
    return rounded < conf->max_split_bytes && rest > TMK_ALLOC_SMALL;
}

uint64_t tmk_alloc_page_bytes(const struct tmk_alloc_conf *conf, bool is_small)
{
    return is_small ? TMK_ALLOC_SMALL_SEGMENT : conf->large_segment_bytes;
}
