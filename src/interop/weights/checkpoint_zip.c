/* SPDX-License-Identifier: MIT */
/* interop/weights/checkpoint_zip.c - reads the zip file that torch.save writes: where data.pkl
 * and the storages lie in it.
 *
 *     [local header, name, padding, data] ...  [central directory]  [its end: where it is]
 *
 * Only the central directory says what there is; a local header only tells where its data begin.
 * torch stores without compression, so that data can be mapped; a pickle that somebody compressed
 * is inflated, compressed data are rejected. Zip64 (files over 4 GiB) is read; multi-part and
 * encrypted archives are not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "interop/weights/weights.h"
#include "interop/weights/weights_in.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/textmap.h"

enum {
    END_BYTES = 22,
    END_MOST = END_BYTES + 65535, /* including the longest comment */
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_DIRECTORY_BYTES = 256 << 20,
    MAX_PICKLE_BYTES = 512 << 20,
    MAX_NAME_BYTES = 4096, /* for a storage's name */
    /* The limit of unpacking a pickle: torch packs none; deflate makes them 3 to 4 times smaller.
     */
    UNPACKED_TIMES = 32,
    UNPACKED_LEAST_BYTES = 1 << 20,
    STORED = 0,
    DEFLATED = 8,
};

struct zip_entry {
    uint64_t packed_bytes, n_bytes, local_offset;
    uint32_t method;
    bool is_encrypted;
};

struct zip {
    const struct tmk_weights_source *source;
    uint64_t directory_offset;
    struct tmk_textmap names; /* of the entries */
    struct zip_entry *entries;
    uint64_t room;
    const char *prefix; /* of data.pkl, including its slash */
    struct tmk_arena *arena;
    bool no_limits;
};

static int fail_damaged_zip(struct tmk_error *err, uint64_t offset, const char *what)
{
    int rc = tmk_fail(err, TMK_EDAMAGED, "the zip file: %s", _(what));
    if (err)
        err->offset = offset;
    return rc;
}

/* ---- the end, which says where the directory is ---- */

struct directory {
    uint64_t offset, n_bytes, n_entries;
};

static int read_end64(const struct tmk_weights_source *s, uint64_t end_offset,
                      struct directory *ret, struct tmk_error *err)
{
    uint8_t locator[LOCATOR_BYTES], end[END64_BYTES];
    if (end_offset < LOCATOR_BYTES)
        return fail_damaged_zip(err, end_offset,
                                "its end says zip64, and there is no room for that");
    int rc = tmk_weights_pread(s, end_offset - LOCATOR_BYTES, locator, sizeof locator, err);
    if (rc < 0)
        return rc;
    uint64_t at = tmk_load_u64(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || at > s->n_bytes || s->n_bytes - at < END64_BYTES)
        return fail_damaged_zip(err, end_offset,
                                "the end of its directory (zip64) is not where it should");
    rc = tmk_weights_pread(s, at, end, sizeof end, err);
    if (rc < 0)
        return rc;
    if (memcmp(end, "PK\6\6", 4) != 0)
        return fail_damaged_zip(err, at, "the end of its directory (zip64) is damaged");
    *ret = (struct directory){
        .n_entries = tmk_load_u64(end + 32),
        .n_bytes = tmk_load_u64(end + 40),
        .offset = tmk_load_u64(end + 48),
    };
    return 0;
}

static int read_directory_end(const struct tmk_weights_source *s, struct directory *ret,
                              struct tmk_error *err)
{
    size_t n = s->n_bytes < END_MOST ? (size_t)s->n_bytes : END_MOST;
    uint64_t tail_offset = s->n_bytes - n;
    uint8_t *tail = malloc(n + 1);
    if (!tail)
        return TMK_ENOMEM;
    int rc = tmk_weights_pread(s, tail_offset, tail, n, err);
    size_t at = n < END_BYTES ? 0 : n - END_BYTES;
    while (rc == 0 && at > 0 && memcmp(tail + at, "PK\5\6", 4) != 0)
        at--;
    if (rc == 0 && at == 0) {
        rc = fail_damaged_zip(err, s->n_bytes,
                              "it has no directory at its end: the file is cut off");
    } else if (rc == 0) {
        *ret = (struct directory){
            .n_entries = tmk_load_u16(tail + at + 10),
            .n_bytes = tmk_load_u32(tail + at + 12),
            .offset = tmk_load_u32(tail + at + 16),
        };
        if (ret->n_entries == UINT16_MAX || ret->n_bytes == UINT32_MAX || ret->offset == UINT32_MAX)
            rc = read_end64(s, tail_offset + at, ret, err);
    }
    free(tail);
    return rc;
}

/* ---- the directory ---- */

/* Read numbers that do not fit 32 bits from extra field 1, in this order. */
static bool read_extra64(const uint8_t *extra, size_t n, struct zip_entry *e)
{
    while (n >= 4) {
        size_t id = tmk_load_u16(extra), m = tmk_load_u16(extra + 2);
        extra += 4;
        n -= 4;
        if (m > n)
            return false;
        if (id == 1) {
            uint64_t *fields[] = {&e->n_bytes, &e->packed_bytes, &e->local_offset};
            for (size_t i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX)
                    continue;
                if (m < 8)
                    return false;
                *fields[i] = tmk_load_u64(extra);
                extra += 8;
                n -= 8;
                m -= 8;
            }
        }
        extra += m;
        n -= m;
    }
    return true;
}

static int add_zip_entry(struct zip *z, const uint8_t *at, size_t n_name, size_t n_extra,
                         uint64_t offset, struct tmk_error *err)
{
    struct zip_entry e = {
        .is_encrypted = tmk_load_u16(at + 8) & 1,
        .method = tmk_load_u16(at + 10),
        .packed_bytes = tmk_load_u32(at + 20),
        .n_bytes = tmk_load_u32(at + 24),
        .local_offset = tmk_load_u32(at + 42),
    };
    uint32_t number;
    uint64_t before = z->names.n;
    if (memchr(at + ENTRY_BYTES, 0, n_name))
        return fail_damaged_zip(err, offset, "a name in its directory has a zero byte");
    if (!read_extra64(at + ENTRY_BYTES + n_name, n_extra, &e))
        return fail_damaged_zip(err, offset, "an entry of its directory is damaged");
    const char *name = tmk_arena_text(z->arena, (const char *)at + ENTRY_BYTES, n_name);
    if (!name || TMK_GROW(z->entries, z->names.n + 1, z->room) < 0 ||
        tmk_textmap_put(&z->names, name, &number) < 0)
        return TMK_ENOMEM;
    if (z->names.n == before)
        return fail_damaged_zip(err, offset, "its directory has a name twice");
    z->entries[number] = e;
    return 0;
}

static int parse_directory(struct zip *z, const uint8_t *bytes, const struct directory *d,
                           struct tmk_error *err)
{
    size_t at = 0, n = (size_t)d->n_bytes;
    for (uint64_t i = 0; i < d->n_entries; i++) {
        if (n - at < ENTRY_BYTES || memcmp(bytes + at, "PK\1\2", 4) != 0)
            return fail_damaged_zip(err, d->offset + at, "its directory is damaged");
        size_t n_name = tmk_load_u16(bytes + at + 28), n_extra = tmk_load_u16(bytes + at + 30),
               n_comment = tmk_load_u16(bytes + at + 32);
        if (n - at - ENTRY_BYTES < n_name + n_extra + n_comment)
            return fail_damaged_zip(err, d->offset + at, "its directory is damaged");
        int rc = add_zip_entry(z, bytes + at, n_name, n_extra, d->offset + at, err);
        if (rc < 0)
            return rc;
        at += ENTRY_BYTES + n_name + n_extra + n_comment;
    }
    return 0;
}

static int read_directory(struct zip *z, struct tmk_error *err)
{
    struct directory d = {0};
    int rc = read_directory_end(z->source, &d, err);
    if (rc < 0)
        return rc;
    if (d.offset > z->source->n_bytes || d.n_bytes > z->source->n_bytes - d.offset ||
        d.n_bytes > MAX_DIRECTORY_BYTES)
        return fail_damaged_zip(err, z->source->n_bytes, "its directory would not be in the file");
    z->directory_offset = d.offset;
    uint8_t *bytes = malloc((size_t)d.n_bytes + 1);
    if (!bytes)
        return TMK_ENOMEM;
    rc = tmk_weights_pread(z->source, d.offset, bytes, (size_t)d.n_bytes, err);
    if (rc == 0)
        rc = parse_directory(z, bytes, &d, err);
    free(bytes);
    return rc;
}

/* ---- entries ---- */

/* Find where the data of an entry begin: between its local header and the directory. */
static int locate_entry_data(const struct zip *z, const struct zip_entry *e, uint64_t *ret,
                             struct tmk_error *err)
{
    uint8_t local[LOCAL_BYTES];
    uint64_t end = z->directory_offset;
    if (e->is_encrypted)
        return tmk_fail(err, TMK_EFORMAT, "the zip file is encrypted");
    if (e->local_offset > end || end - e->local_offset < LOCAL_BYTES)
        return fail_damaged_zip(err, e->local_offset, "an entry would not be in the file");
    int rc = tmk_weights_pread(z->source, e->local_offset, local, sizeof local, err);
    if (rc < 0)
        return rc;
    uint64_t begin =
        e->local_offset + LOCAL_BYTES + tmk_load_u16(local + 26) + tmk_load_u16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0 || begin > end || e->packed_bytes > end - begin)
        return fail_damaged_zip(err, e->local_offset,
                                "an entry is damaged, or not where it should be");
    *ret = begin;
    return 0;
}

static const struct zip_entry *entry_of(const struct zip *z, const char *name)
{
    uint32_t number;
    return tmk_textmap_find(&z->names, name, &number) ? &z->entries[number] : NULL;
}

static int find_storage(const void *zip, const char *key, uint64_t *ret_offset, uint64_t *ret_bytes,
                        struct tmk_error *err)
{
    const struct zip *z = zip;
    char name[MAX_NAME_BYTES], shown[64];
    int n = snprintf(name, sizeof name, "%sdata/%s", z->prefix, key);
    const struct zip_entry *e = n > 0 && n < (int)sizeof name ? entry_of(z, name) : NULL;
    snprintf(shown, sizeof shown, "%s", key);
    if (!e)
        return tmk_fail(err, TMK_EDAMAGED, "data.pkl names the storage %s, and there is none",
                        shown);
    if (e->method != STORED || e->packed_bytes != e->n_bytes)
        return tmk_fail(err, TMK_EFORMAT,
                        "data/%s is compressed, which torch never does. Unpack the zip file and "
                        "pack it again without (zip -0 -r)",
                        shown);
    int rc = locate_entry_data(z, e, ret_offset, err);
    if (rc == 0)
        *ret_bytes = e->n_bytes;
    return rc;
}

static int inflate_all(const uint8_t *packed, size_t n_packed, uint8_t *to, size_t n)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed,
                       .avail_in = (uInt)n_packed,
                       .next_out = to,
                       .avail_out = (uInt)n};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return TMK_ENOMEM;
    int got = inflate(&stream, Z_FINISH);
    bool is_whole = got == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole ? 0 : TMK_EDAMAGED;
}

static int check_unpacked_entry(const struct zip *z, const struct zip_entry *e,
                                struct tmk_error *err)
{
    char limit[TMK_AMOUNT_BYTES], packed[TMK_AMOUNT_BYTES];
    uint64_t most = UNPACKED_LEAST_BYTES + UNPACKED_TIMES * e->packed_bytes;
    if (e->method == STORED || z->no_limits || e->n_bytes <= most)
        return 0;
    return tmk_fail(err, TMK_EFULL,
                    "data.pkl unpacks to more than %s, the limit for %s (docs/limits.md). "
                    "--no-limits reads it, whatever memory and time that takes",
                    tmk_size_text(most, limit), tmk_size_text(e->packed_bytes, packed));
}

/* Load a small entry into memory that the caller frees. */
static int load_entry(const struct zip *z, const struct zip_entry *e, uint8_t **ret,
                      struct tmk_error *err)
{
    uint64_t offset = 0;
    int rc = locate_entry_data(z, e, &offset, err);
    if (rc < 0)
        return rc;
    if (e->n_bytes > MAX_PICKLE_BYTES || e->packed_bytes > MAX_PICKLE_BYTES ||
        (e->method != STORED && e->method != DEFLATED) ||
        (e->method == STORED && e->packed_bytes != e->n_bytes))
        return fail_damaged_zip(err, e->local_offset,
                                "data.pkl is too large or packed in an unknown way");
    rc = check_unpacked_entry(z, e, err);
    if (rc < 0)
        return rc;
    uint8_t *packed = calloc((size_t)e->packed_bytes + 1, 1);
    uint8_t *bytes = e->method == STORED ? packed : malloc((size_t)e->n_bytes + 1);
    rc = packed && bytes
             ? tmk_weights_pread(z->source, offset, packed, (size_t)e->packed_bytes, err)
             : TMK_ENOMEM;
    if (rc == 0 && bytes != packed) {
        rc = inflate_all(packed, (size_t)e->packed_bytes, bytes, (size_t)e->n_bytes);
        if (rc == TMK_EDAMAGED)
            rc = fail_damaged_zip(err, e->local_offset, "data.pkl cannot be unpacked");
    }
    if (bytes != packed)
        free(packed);
    if (rc < 0)
        free(bytes);
    else
        *ret = bytes;
    return rc;
}

/* ---- the checkpoint ---- */

/* Find "archive/data.pkl": the only folder is named after the file, or "archive". */
static const struct zip_entry *find_pickle(struct zip *z)
{
    for (uint64_t i = 0; i < z->names.n; i++) {
        const char *slash = strchr(z->names.texts[i], '/');
        if (slash && strcmp(slash, "/data.pkl") == 0) {
            z->prefix = tmk_arena_text(z->arena, z->names.texts[i],
                                       (size_t)(slash + 1 - z->names.texts[i]));
            return z->prefix ? &z->entries[i] : NULL;
        }
    }
    return NULL;
}

static int check_byte_order(const struct zip *z, struct tmk_error *err)
{
    const char *name = tmk_arena_format(z->arena, "%sbyteorder", z->prefix);
    const struct zip_entry *e = name ? entry_of(z, name) : NULL;
    uint8_t *order = NULL;
    if (!e)
        return name ? 0 : TMK_ENOMEM;
    if (e->n_bytes != 3) /* "big"; the other is "little" */
        return 0;
    int rc = load_entry(z, e, &order, err);
    if (rc == 0 && order && memcmp(order, "big", 3) == 0)
        rc = tmk_fail(err, TMK_EFORMAT, "written on a big-endian machine, which is not read here");
    free(order);
    return rc;
}

static int read_tensors(struct tmk_weights *w, struct zip *z, struct tmk_error *err)
{
    const struct zip_entry *pickle = find_pickle(z);
    uint8_t *bytes = NULL;
    if (!pickle)
        return tmk_fail(err, TMK_EFORMAT, "a zip file, but not of torch.save: it has no data.pkl");
    int rc = check_byte_order(z, err);
    if (rc == 0)
        rc = load_entry(z, pickle, &bytes, err);
    struct tmk_checkpoint_entries entries = {z, find_storage};
    if (rc == 0)
        rc = tmk_checkpoint_tensors(w, z->source->file, bytes, (size_t)pickle->n_bytes, &entries,
                                    err);
    free(bytes);
    return rc;
}

int tmk_checkpoint_read(struct tmk_weights *w, const struct tmk_weights_source *s,
                        struct tmk_error *err)
{
    struct zip z = {.source = s, .arena = &w->arena, .no_limits = w->no_limits};
    int rc = read_directory(&z, err);
    if (rc == 0)
        rc = read_tensors(w, &z, err);
    tmk_textmap_fini(&z.names);
    free(z.entries);
    return rc;
}
