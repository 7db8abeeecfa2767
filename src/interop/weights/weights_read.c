/* SPDX-License-Identifier: MIT */
/* interop/weights/weights_read.c - reads files, folders and indexes of weights, and tells formats
 * by their bytes; see weights.h. */
#include "interop/weights/weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "interop/weights/weights_in.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/json_in.h"
#include "kit/language.h"
#include "kit/seeded_hash.h"
#include "kit/textmap.h"

enum {
    MAX_INDEX_BYTES = 64 << 20,
    MAX_SHARDS = 100000,
    MOST_PER_ELEMENT = 64, /* bytes an element that an estimate allows, and more */
};

static const struct {
    const char *name;
    uint32_t bits;
    bool is_float, is_scanned;
} types[] = {
#define X(id, name, safetensors, bits, is_float, is_scanned) {name, bits, is_float, is_scanned},
    TMK_WEIGHT_TYPES(X)
#undef X
};

const char *tmk_weight_type_name(enum tmk_weight_type type)
{
    return types[type].name;
}

uint32_t tmk_weight_type_bytes(enum tmk_weight_type type)
{
    return types[type].bits / 8;
}

bool tmk_weight_type_is_float(enum tmk_weight_type type)
{
    return types[type].is_float;
}

bool tmk_weight_type_is_scanned(enum tmk_weight_type type)
{
    return types[type].is_scanned;
}

const char *tmk_weight_dtype(const struct tmk_weight *t)
{
    return t->other_type ? t->other_type : types[t->type].name;
}

/* ---- for the readers ---- */

int tmk_weights_pread(const struct tmk_weights_source *s, uint64_t offset, void *to, size_t n,
                      struct tmk_error *err)
{
    if (offset > s->n_bytes || n > s->n_bytes - offset) {
        int rc = tmk_fail(err, TMK_EDAMAGED, "the file ends too early: it is cut off");
        if (err)
            err->offset = s->n_bytes;
        return rc;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(s->fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tmk_fail_os(err, TMK_EIO, errno, "cannot read");
        if (got == 0)
            return tmk_fail(err, TMK_EDAMAGED, "the file became shorter while it was read");
        done += (size_t)got;
    }
    return 0;
}

struct tmk_weight *tmk_weights_add(struct tmk_weights *w)
{
    if (TMK_GROW(w->all, w->n + 1, w->room) < 0)
        return NULL;
    w->all[w->n] = (struct tmk_weight){.has_data = true};
    return &w->all[w->n++];
}

int tmk_weight_measure(struct tmk_weight *t, struct tmk_error *err)
{
    uint64_t n = 1, n_bits;
    bool is_empty = false, is_huge = false;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        is_empty |= t->shape[i] == 0;
        is_huge |= t->shape[i] != 0 && __builtin_mul_overflow(n, t->shape[i], &n);
    }
    if (is_empty) {
        t->n_elements = t->n_bytes = 0;
        return 0;
    }
    if (is_huge || n > INT64_MAX || __builtin_mul_overflow(n, types[t->type].bits, &n_bits))
        return tmk_fail(err, TMK_EDAMAGED, "the shape of %s is larger than any memory", t->name);
    if (n_bits % 8 != 0)
        return tmk_fail(err, TMK_EDAMAGED, "%s has %llu elements of %u bits: no whole bytes",
                        t->name, (unsigned long long)n, types[t->type].bits);
    t->n_elements = n;
    t->n_bytes = n_bits / 8;
    return 0;
}

/* ---- a file ---- */

/* The magic number of torch.save before 1.6. It follows the two bytes of the pickle's protocol. */
static const uint8_t legacy_magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                       0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

static int fail_legacy_format(struct tmk_error *err)
{
    return tmk_fail(err, TMK_EFORMAT,
                    "written in torch.save's format of before 1.6. Convert it: python3 -c 'import "
                    "torch; torch.save(torch.load(\"OLD\", map_location=\"cpu\"), \"NEW\")'");
}

static int read_by_kind(struct tmk_weights *w, const struct tmk_weights_source *s,
                        struct tmk_error *err)
{
    uint8_t head[16] = {0};
    size_t n = s->n_bytes < sizeof head ? (size_t)s->n_bytes : sizeof head;
    int rc = tmk_weights_pread(s, 0, head, n, err);
    if (rc < 0)
        return rc;
    if (n >= 4 && memcmp(head, "PK\3\4", 4) == 0) {
        w->files[s->file].format = "torch";
        return tmk_checkpoint_read(w, s, err);
    }
    if (n == sizeof head && memcmp(head + 2, legacy_magic, sizeof legacy_magic) == 0)
        return fail_legacy_format(err);
    if (n >= 9 && head[8] == '{') {
        w->files[s->file].format = "safetensors";
        return tmk_safetensors_read(w, s, err);
    }
    if (n >= 4 && memcmp(head, "GGUF", 4) == 0)
        return tmk_fail(err, TMK_EFORMAT, "this is a GGUF file, which is not read here");
    return tmk_fail(err, TMK_EFORMAT, "neither a safetensors file nor one of torch.save");
}

static int open_source(const char *path, struct tmk_weights_source *ret, struct tmk_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return tmk_fail(err, TMK_EFORMAT, "not a file");
    }
    *ret = (struct tmk_weights_source){.fd = fd, .n_bytes = (uint64_t)st.st_size};
    return 0;
}

static int read_weight_file(struct tmk_weights *w, const char *path, const char **ret_path,
                            struct tmk_error *err)
{
    struct tmk_weights_source s = {.fd = -1};
    if (TMK_GROW(w->files, w->n_files + 1, w->files_room) < 0)
        return TMK_ENOMEM;
    *ret_path = tmk_arena_text(&w->arena, path, strlen(path));
    if (!*ret_path)
        return TMK_ENOMEM;
    int rc = open_source(path, &s, err);
    if (rc < 0)
        return rc;
    s.file = (uint32_t)w->n_files;
    w->files[w->n_files++] = (struct tmk_weight_file){.path = *ret_path, .n_bytes = s.n_bytes};
    rc = read_by_kind(w, &s, err);
    close(s.fd);
    return rc;
}

/* ---- an index of shards ---- */

struct shard_index {
    struct tmk_textmap names, shards; /* tensors; files, in order of first occurrence */
    uint32_t *shard_of;               /* by name */
    uint64_t room;
};

static void index_fini(struct shard_index *x)
{
    tmk_textmap_fini(&x->names);
    tmk_textmap_fini(&x->shards);
    free(x->shard_of);
}

static int index_put(struct shard_index *x, const char *name, const char *shard,
                     struct tmk_error *err)
{
    uint32_t number, file;
    uint64_t before = x->names.n;
    if (strchr(shard, '/') || strcmp(shard, "..") == 0 || strcmp(shard, ".") == 0 || !shard[0])
        return tmk_fail(err, TMK_EDAMAGED, "the index names a file that is not beside it: %s",
                        shard);
    if (tmk_textmap_put(&x->names, name, &number) < 0 ||
        tmk_textmap_put(&x->shards, shard, &file) < 0)
        return TMK_ENOMEM;
    if (x->names.n == before)
        return tmk_fail(err, TMK_EDAMAGED, "the index names the tensor %s twice", name);
    if (x->shards.n > MAX_SHARDS)
        return tmk_fail(err, TMK_EDAMAGED, "the index names too many files");
    if (TMK_GROW(x->shard_of, (uint64_t)number + 1, x->room) < 0)
        return TMK_ENOMEM;
    x->shard_of[number] = file;
    return 0;
}

static int index_parse(struct tmk_weights *w, struct shard_index *x, const char *text, size_t n,
                       struct tmk_error *err)
{
    struct tmk_json_in j;
    const char *key;
    bool has_map = false;
    int rc = 0;
    tmk_json_in_init(&j, text, n, &w->arena);
    tmk_json_in_object(&j);
    while (rc == 0 && (key = tmk_json_in_key(&j))) {
        if (strcmp(key, "weight_map") != 0) {
            tmk_json_in_skip(&j);
            continue;
        }
        has_map = true;
        tmk_json_in_object(&j);
        while (rc == 0 && (key = tmk_json_in_key(&j))) {
            const char *shard = tmk_json_in_text(&j);
            if (shard)
                rc = index_put(x, key, shard, err);
        }
    }
    if (rc < 0)
        return rc;
    tmk_json_in_end(&j);
    if (_(j.problem)) {
        rc = tmk_fail(err, TMK_EDAMAGED, "the index: %s", _(j.problem));
        if (err)
            err->offset = (uint64_t)(j.at - j.start);
        return rc;
    }
    return has_map ? 0 : tmk_fail(err, TMK_EFORMAT, "this JSON is no index: it has no weight_map");
}

static int index_load(struct tmk_weights *w, struct shard_index *x, const char *path,
                      struct tmk_error *err)
{
    struct tmk_weights_source s = {.fd = -1};
    int rc = open_source(path, &s, err);
    if (rc < 0)
        return rc;
    char *text = NULL;
    if (s.n_bytes > MAX_INDEX_BYTES)
        rc = tmk_fail(err, TMK_EFORMAT, "too large for an index");
    else if (!(text = malloc((size_t)s.n_bytes + 1)))
        rc = TMK_ENOMEM;
    else
        rc = tmk_weights_pread(&s, 0, text, (size_t)s.n_bytes, err);
    close(s.fd);
    if (rc == 0)
        rc = index_parse(w, x, text, (size_t)s.n_bytes, err);
    free(text);
    return rc;
}

/* Check that each tensor is in the shard that the index names. */
static int index_check(const struct tmk_weights *w, const struct shard_index *x, uint64_t first,
                       uint64_t first_file, struct tmk_error *err)
{
    if (!x->shard_of)
        return 0; /* it names none */
    bool *seen = calloc(x->names.n + 1, sizeof *seen);
    if (!seen)
        return TMK_ENOMEM;
    for (uint64_t i = first; i < w->n; i++) {
        uint32_t number;
        if (tmk_textmap_find(&x->names, w->all[i].name, &number) &&
            x->shard_of[number] == w->all[i].file - first_file)
            seen[number] = true;
    }
    int rc = 0;
    for (uint64_t i = 0; i < x->names.n && rc == 0; i++)
        if (!seen[i])
            rc = tmk_fail(err, TMK_EDAMAGED, "the index says that %s is in %s, and it is not",
                          x->names.texts[i], x->shards.texts[x->shard_of[i]]);
    free(seen);
    return rc;
}

static const char *path_beside(struct tmk_weights *w, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    return tmk_arena_format(&w->arena, "%.*s%s", n, path, name);
}

static int read_index(struct tmk_weights *w, const char *path, const char **ret_path,
                      struct tmk_error *err)
{
    struct shard_index x = {0};
    uint64_t first = w->n, first_file = w->n_files;
    *ret_path = tmk_arena_text(&w->arena, path, strlen(path));
    const char *index_path = *ret_path;
    int rc = index_path ? index_load(w, &x, path, err) : TMK_ENOMEM;
    for (uint64_t i = 0; i < x.shards.n && rc == 0; i++) {
        const char *shard = path_beside(w, path, x.shards.texts[i]);
        rc = shard ? read_weight_file(w, shard, ret_path, err) : TMK_ENOMEM;
    }
    if (rc == 0) {
        *ret_path = index_path;
        rc = index_check(w, &x, first, first_file, err);
    }
    index_fini(&x);
    return rc;
}

/* ---- folders ---- */

static bool has_name_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static int is_safetensors(const struct dirent *e)
{
    return e->d_name[0] != '.' && has_name_suffix(e->d_name, ".safetensors");
}

static int is_torch_file(const struct dirent *e)
{
    /* training_args.bin lies beside a Trainer's model, and is a pickle of settings. */
    return e->d_name[0] != '.' && strcmp(e->d_name, "training_args.bin") != 0 &&
           (has_name_suffix(e->d_name, ".bin") || has_name_suffix(e->d_name, ".pt") ||
            has_name_suffix(e->d_name, ".pth"));
}

static int read_all_of(struct tmk_weights *w, const char *folder,
                       int (*fits)(const struct dirent *), const char **ret_path,
                       struct tmk_error *err)
{
    struct dirent **found = NULL;
    int n = scandir(folder, &found, fits, alphasort), rc = 0;
    if (n < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot list");
    for (int i = 0; i < n; i++) {
        if (rc == 0) {
            const char *path = tmk_arena_format(&w->arena, "%s/%s", folder, found[i]->d_name);
            rc = path ? read_weight_file(w, path, ret_path, err) : TMK_ENOMEM;
        }
        free(found[i]);
    }
    free(found);
    return rc < 0 ? rc : n;
}

static int read_folder(struct tmk_weights *w, const char *folder, const char **ret_path,
                       struct tmk_error *err)
{
    static const char *const indexes[] = {"model.safetensors.index.json",
                                          "diffusion_pytorch_model.safetensors.index.json",
                                          "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < TMK_N(indexes); i++) {
        struct stat st;
        const char *path = tmk_arena_format(&w->arena, "%s/%s", folder, indexes[i]);
        if (!path)
            return TMK_ENOMEM;
        if (stat(path, &st) == 0)
            return read_index(w, path, ret_path, err);
    }
    int rc = read_all_of(w, folder, is_safetensors, ret_path, err);
    if (rc == 0)
        rc = read_all_of(w, folder, is_torch_file, ret_path, err);
    if (rc == 0)
        return tmk_fail(err, TMK_EFORMAT,
                        "no .safetensors, .bin, .pt or .pth file is in this folder");
    return rc < 0 ? rc : 0;
}

/* Check the sums here, so that callers that add sizes need no test. */
static int check_sums(const struct tmk_weights *w, struct tmk_error *err)
{
    uint64_t n_elements = 0, n_bytes = 0;
    for (uint64_t i = 0; i < w->n; i++)
        if (__builtin_add_overflow(n_elements, w->all[i].n_elements, &n_elements) ||
            __builtin_add_overflow(n_bytes, w->all[i].n_bytes, &n_bytes) ||
            n_elements > INT64_MAX / MOST_PER_ELEMENT || n_bytes > INT64_MAX / MOST_PER_ELEMENT)
            return tmk_fail(err, TMK_EDAMAGED, "its tensors together are larger than any memory");
    return 0;
}

/* ---- what is there twice ---- */

static bool has_same_data(const struct tmk_weight *a, const struct tmk_weight *b)
{
    if (a->file != b->file || a->offset != b->offset || a->type != b->type ||
        a->n_elements != b->n_elements || a->n_elements == 0 || !a->has_data || !b->has_data)
        return false;
    if (!a->strides != !b->strides)
        return false;
    return !a->strides || (a->n_dims == b->n_dims &&
                           memcmp(a->shape, b->shape, a->n_dims * sizeof *a->shape) == 0 &&
                           memcmp(a->strides, b->strides, a->n_dims * sizeof *a->strides) == 0);
}

static uint64_t hash_of_tensor_data(const struct tmk_weight *t)
{
    uint64_t h = tmk_hash_mix(tmk_hash_mix(tmk_hash_seeded_u64(t->offset), t->file), t->n_elements);
    if (!t->strides)
        return h;
    h = tmk_hash_mix(h, tmk_hash_seeded_bytes(t->shape, t->n_dims * sizeof *t->shape));
    return tmk_hash_mix(h, tmk_hash_seeded_bytes(t->strides, t->n_dims * sizeof *t->strides));
}

/* The number + 1 of a tensor with the same data; 0: none has. */
static uint32_t find_same_data(const struct tmk_weights *w, const struct tmk_index *index,
                               uint64_t hash, const struct tmk_weight *t)
{
    struct tmk_probe probe = tmk_index_probe(index, hash);
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && !has_same_data(&w->all[i - 1], t))
        continue;
    return i;
}

/* Find tied tensors by an index of data ranges, so that a million tensors do not take quadratic
 * time. */
static int find_tied(struct tmk_weights *w)
{
    struct tmk_index index = {0};
    int rc = 0;
    for (uint64_t i = 0; i < w->n && rc == 0; i++) {
        struct tmk_weight *t = &w->all[i];
        if (t->n_elements == 0 || !t->has_data)
            continue; /* equal, and not tied to a third one */
        uint64_t hash = hash_of_tensor_data(t);
        t->same_as = find_same_data(w, &index, hash, t);
        if (!t->same_as && (rc = tmk_grow_index(&index)) == 0)
            tmk_index_add(&index, hash, (uint32_t)i + 1);
    }
    free(index.slots);
    return rc;
}

static int find_names_twice(struct tmk_weights *w)
{
    struct tmk_textmap names = {0};
    uint32_t number;
    int rc = 0;
    for (uint64_t i = 0; i < w->n && rc == 0; i++) {
        uint64_t before = names.n;
        rc = tmk_textmap_put(&names, w->all[i].name, &number);
        if (rc == 0 && names.n == before)
            rc = tmk_textmap_put(&w->twice, w->all[i].name, &number);
    }
    tmk_textmap_fini(&names);
    return rc;
}

/* ---- all ---- */

static int read_path(struct tmk_weights *w, const char *path, const char **ret_path,
                     struct tmk_error *err)
{
    struct stat st;
    *ret_path = tmk_arena_text(&w->arena, path, strlen(path));
    if (stat(path, &st) < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open");
    if (S_ISDIR(st.st_mode))
        return read_folder(w, path, ret_path, err);
    return has_name_suffix(path, ".json") ? read_index(w, path, ret_path, err)
                                          : read_weight_file(w, path, ret_path, err);
}

int tmk_weights_read(struct tmk_weights *w, const char *const *paths, uint32_t n_paths,
                     bool no_limits, const char **ret_path, struct tmk_error *err)
{
    const char *path = NULL;
    int rc = 0;
    *w = (struct tmk_weights){.no_limits = no_limits};
    for (uint32_t i = 0; i < n_paths && rc == 0; i++)
        rc = read_path(w, paths[i], &path, err);
    if (rc == 0 && w->n > UINT32_MAX / 4)
        rc = tmk_fail(err, TMK_EFULL, "more tensors than can be counted");
    if (rc == 0)
        rc = check_sums(w, err);
    if (rc == 0)
        rc = find_tied(w);
    if (rc == 0)
        rc = find_names_twice(w);
    if (rc == TMK_ENOMEM)
        tmk_fail(err, rc, "out of memory");
    if (ret_path)
        *ret_path = path;
    return rc;
}

void tmk_weights_fini(struct tmk_weights *w)
{
    free(w->all);
    free(w->files);
    tmk_textmap_fini(&w->left_out);
    tmk_textmap_fini(&w->classes);
    tmk_textmap_fini(&w->twice);
    tmk_arena_fini(&w->arena);
    *w = (struct tmk_weights){0};
}
