/* SPDX-License-Identifier: MIT */
/* interop/weights/safetensors.c - reads the header of a safetensors file.
 *
 *     { "__metadata__": {...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} }
 *
 * It is as strict as the format's own library: ranges neither overlap nor leave a gap, and end
 * with the file. So whatever we accept, that library loads. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "interop/weights/weights.h"
#include "interop/weights/weights_in.h"
#include "kit/arena.h"
#include "kit/json_in.h"
#include "kit/language.h"
#include "kit/textmap.h"

enum { MAX_HEADER_BYTES = 100 << 20 }; /* the format's own bound */

static enum tmk_weight_type type_of(const char *name)
{
    static const char *const names[] = {
#define X(id, name, safetensors, bits, is_float, is_scanned) safetensors,
        TMK_WEIGHT_TYPES(X)
#undef X
    };
    for (unsigned i = 0; i < TMK_WEIGHT_N_TYPES; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return (enum tmk_weight_type)i;
    return TMK_WEIGHT_OTHER;
}

/* Read an array of whole numbers, at most `room`. Returns how many. */
static uint32_t read_number_list(struct tmk_json_in *j, uint64_t *to, uint32_t room)
{
    uint32_t n = 0;
    tmk_json_in_array(j);
    while (tmk_json_in_item(j)) {
        uint64_t value = tmk_json_in_u64(j);
        if (n == room) {
            if (!j->problem)
                j->problem = "an array has too many numbers";
            return n;
        }
        to[n++] = value;
    }
    return n;
}

struct header_entry {
    const char *dtype;
    uint64_t shape[TMK_WEIGHT_MAX_DIMS], offsets[2];
    uint32_t n_dims, n_offsets;
    bool has_shape;
};

static void read_header_entry(struct tmk_json_in *j, struct header_entry *e)
{
    const char *key;
    *e = (struct header_entry){0};
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j))) {
        if (strcmp(key, "dtype") == 0 && !e->dtype) {
            e->dtype = tmk_json_in_text(j);
        } else if (strcmp(key, "shape") == 0 && !e->has_shape) {
            e->n_dims = read_number_list(j, e->shape, TMK_WEIGHT_MAX_DIMS);
            e->has_shape = true;
        } else if (strcmp(key, "data_offsets") == 0 && e->n_offsets == 0) {
            e->n_offsets = read_number_list(j, e->offsets, 2);
        } else if (!j->problem) {
            j->problem = "a tensor has a key that is not known, or one twice";
        }
    }
    if (!j->problem && (!e->dtype || !e->has_shape || e->n_offsets != 2))
        j->problem = "a tensor has no dtype, shape or data_offsets";
}

static int add_header_entry(struct tmk_weights *w, const struct tmk_weights_source *s,
                            const char *name, const struct header_entry *e, uint64_t data_start,
                            struct tmk_error *err)
{
    struct tmk_weight *t = tmk_weights_add(w);
    uint64_t *shape = tmk_arena_take(&w->arena, (e->n_dims + 1) * sizeof *shape);
    if (!t || !shape)
        return TMK_ENOMEM;
    memcpy(shape, e->shape, e->n_dims * sizeof *shape);
    t->name = name;
    t->file = s->file;
    t->shape = shape;
    t->n_dims = e->n_dims;
    t->type = type_of(e->dtype);
    int rc = tmk_weight_measure(t, err);
    if (rc < 0)
        return rc;
    if (e->offsets[1] < e->offsets[0] || e->offsets[1] > s->n_bytes - data_start)
        return tmk_fail(err, TMK_EDAMAGED,
                        "the data of %s (%llu to %llu) are not in the file, which has %llu bytes "
                        "of data: it is cut off or damaged",
                        name, (unsigned long long)e->offsets[0], (unsigned long long)e->offsets[1],
                        (unsigned long long)(s->n_bytes - data_start));
    if (t->type == TMK_WEIGHT_OTHER) {
        t->other_type = e->dtype;
        t->n_bytes = e->offsets[1] - e->offsets[0];
    }
    if (e->offsets[1] - e->offsets[0] != t->n_bytes)
        return tmk_fail(err, TMK_EDAMAGED, "%s has %llu bytes of data, and its shape needs %llu",
                        name, (unsigned long long)(e->offsets[1] - e->offsets[0]),
                        (unsigned long long)t->n_bytes);
    t->offset = data_start + e->offsets[0];
    return 0;
}

static int parse_header(struct tmk_weights *w, const struct tmk_weights_source *s,
                        const char *header, uint64_t n, struct tmk_error *err)
{
    struct tmk_json_in j;
    struct tmk_textmap names = {0};
    struct header_entry e;
    const char *name;
    int rc = 0;
    tmk_json_in_init(&j, header, (size_t)n, &w->arena);
    tmk_json_in_object(&j);
    while (rc == 0 && (name = tmk_json_in_key(&j))) {
        uint32_t number;
        uint64_t before = names.n;
        rc = tmk_textmap_put(&names, name, &number);
        if (rc == 0 && names.n == before)
            rc = tmk_fail(err, TMK_EDAMAGED, "the header names %s twice", name);
        if (rc == 0 && strcmp(name, "__metadata__") == 0) {
            tmk_json_in_skip(&j);
        } else if (rc == 0) {
            read_header_entry(&j, &e);
            if (!j.problem)
                rc = add_header_entry(w, s, name, &e, 8 + n, err);
        }
    }
    tmk_textmap_fini(&names);
    if (rc < 0)
        return rc;
    tmk_json_in_end(&j);
    if (!j.problem)
        return 0;
    rc = tmk_fail(err, TMK_EDAMAGED, "the header of this safetensors file: %s", _(j.problem));
    if (err)
        err->offset = 8 + (uint64_t)(j.at - j.start);
    return rc;
}

/* ---- ranges ---- */

static int by_offset(const void *a, const void *b)
{
    const struct tmk_weight *x = *(const struct tmk_weight *const *)a,
                            *y = *(const struct tmk_weight *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static int check_sorted(const struct tmk_weight *const *sorted, uint64_t n, uint64_t data_start,
                        uint64_t file_end, struct tmk_error *err)
{
    uint64_t end = data_start;
    for (uint64_t i = 0; i < n; i++) {
        if (sorted[i]->offset < end)
            return tmk_fail(err, TMK_EDAMAGED, "the data of %s and %s overlap",
                            sorted[i > 0 ? i - 1 : 0]->name, sorted[i]->name);
        if (sorted[i]->offset > end)
            return tmk_fail(err, TMK_EDAMAGED, "%llu bytes before %s belong to no tensor",
                            (unsigned long long)(sorted[i]->offset - end), sorted[i]->name);
        end = sorted[i]->offset + sorted[i]->n_bytes;
    }
    if (end != file_end)
        return tmk_fail(err, TMK_EDAMAGED, "%llu bytes at the end belong to no tensor",
                        (unsigned long long)(file_end - end));
    return 0;
}

static int check_ranges(const struct tmk_weights *w, uint64_t first, uint64_t data_start,
                        uint64_t file_end, struct tmk_error *err)
{
    uint64_t n = w->n - first;
    const struct tmk_weight **sorted = malloc((n + 1) * sizeof(struct tmk_weight *));
    if (!sorted)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        sorted[i] = &w->all[first + i];
    qsort(sorted, n, sizeof(struct tmk_weight *), by_offset);
    int rc = check_sorted(sorted, n, data_start, file_end, err);
    free(sorted);
    return rc;
}

int tmk_safetensors_read(struct tmk_weights *w, const struct tmk_weights_source *s,
                         struct tmk_error *err)
{
    uint8_t head[8];
    uint64_t first = w->n;
    int rc = tmk_weights_pread(s, 0, head, sizeof head, err);
    if (rc < 0)
        return rc;
    uint64_t n = tmk_load_u64(head);
    if (n > MAX_HEADER_BYTES)
        return tmk_fail(err, TMK_EDAMAGED,
                        "not a safetensors file, or damaged: the header would have %llu bytes",
                        (unsigned long long)n);
    if (n > s->n_bytes - 8)
        return tmk_fail(err, TMK_EDAMAGED,
                        "cut off: the header has %llu bytes, the file %llu behind its length",
                        (unsigned long long)n, (unsigned long long)(s->n_bytes - 8));
    char *header = malloc((size_t)n + 1);
    if (!header)
        return TMK_ENOMEM;
    rc = tmk_weights_pread(s, 8, header, (size_t)n, err);
    if (rc == 0)
        rc = parse_header(w, s, header, n, err);
    free(header);
    return rc < 0 ? rc : check_ranges(w, first, 8 + n, s->n_bytes, err);
}
