/* SPDX-License-Identifier: MIT */
/* Files of weights, whole and damaged: every byte of a small one of each format is changed in turn,
 * and it is cut at every length. Whatever is still read lies inside the file; nothing crashes. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"

enum { MAX_FILE = 4096 };

static const char safetensors_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"w.0.a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"w.1.b\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[16,19]}}";

static size_t make_safetensors(uint8_t *to)
{
    static const float numbers[] = {1, -2, 0, 3};
    uint64_t n = strlen(safetensors_header);
    memcpy(to, &n, 8);
    memcpy(to + 8, safetensors_header, n);
    memcpy(to + 8 + n, numbers, sizeof numbers);
    memcpy(to + 8 + n + sizeof numbers, "\1\2\3", 3);
    return 8 + n + sizeof numbers + 3;
}

static size_t load_torch(uint8_t *to)
{
    FILE *in = fopen("tests/data/model/tiny.pt", "rb");
    assert_non_null(in);
    size_t n = fread(to, 1, MAX_FILE, in);
    fclose(in);
    assert_in_range(n, 1000, MAX_FILE - 1);
    return n;
}

/* ---- a file in memory ---- */

struct place {
    int fd;
    char path[64];
};

static void place_open(struct place *p)
{
    p->fd = memfd_create("weights", MFD_CLOEXEC);
    assert_true(p->fd >= 0);
    snprintf(p->path, sizeof p->path, "/proc/self/fd/%d", p->fd);
}

static void place_put(const struct place *p, const void *bytes, size_t n)
{
    assert_int_equal(ftruncate(p->fd, 0), 0);
    assert_int_equal(pwrite(p->fd, bytes, n, 0), (ssize_t)n);
}

static void check_inside(const struct tmk_weights *w)
{
    for (uint64_t i = 0; i < w->n; i++) {
        const struct tmk_weight *t = &w->all[i];
        uint64_t item = tmk_weight_type_bytes(t->type), extent = t->n_bytes;
        if (t->strides && t->n_elements > 0) {
            extent = item;
            for (uint32_t d = 0; d < t->n_dims; d++)
                extent += (t->shape[d] - 1) * t->strides[d] * item;
        }
        assert_true(!t->has_data || t->offset + extent <= w->files[t->file].n_bytes);
        assert_true(t->same_as <= i);
        assert_non_null(t->name);
    }
}

/* Read and scan: the result, and that an error has a text. */
static int try_file(const struct place *p)
{
    struct tmk_weights w;
    struct tmk_error err = {0};
    const char *path = p->path;
    int rc = tmk_weights_read(&w, &path, 1, false, NULL, &err);
    if (rc == 0) {
        check_inside(&w);
        struct tmk_scan_result *results = calloc(w.n + 1, sizeof *results);
        assert_non_null(results);
        assert_int_equal(tmk_weights_scan(&w, results, NULL, NULL, NULL, &err), 0);
        free(results);
    } else {
        assert_true(err.text[0] != '\0');
    }
    tmk_weights_fini(&w);
    return rc;
}

static void damage(const uint8_t *whole, size_t n)
{
    static const uint8_t masks[] = {0xff, 0x01, 0x80, 0x10};
    struct place p;
    uint8_t bytes[MAX_FILE];
    uint64_t random = 88172645463325252u;
    place_open(&p);
    place_put(&p, whole, n);
    assert_int_equal(try_file(&p), 0);
    for (size_t i = 0; i < n; i++) {
        memcpy(bytes, whole, n);
        for (size_t m = 0; m < sizeof masks; m++) {
            bytes[i] = (uint8_t)(whole[i] ^ masks[m]);
            place_put(&p, bytes, n);
            try_file(&p);
        }
        place_put(&p, whole, i);
        assert_true(try_file(&p) < 0);
    }
    for (int round = 0; round < 4000; round++) {
        memcpy(bytes, whole, n);
        for (int k = 0; k < 4; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[random % n] = (uint8_t)(random >> 32);
        }
        place_put(&p, bytes, n);
        try_file(&p);
    }
    close(p.fd);
}

static void test_damaged_safetensors(void **state)
{
    uint8_t bytes[MAX_FILE];
    (void)state;
    damage(bytes, make_safetensors(bytes));
}

static void test_damaged_torch(void **state)
{
    uint8_t bytes[MAX_FILE];
    (void)state;
    damage(bytes, load_torch(bytes));
}

/* ---- what is in them ---- */

static void test_torch(void **state)
{
    struct tmk_weights w;
    struct tmk_scan_result results[5];
    const char *path = "tests/data/model/tiny.pt";
    (void)state;
    assert_int_equal(tmk_weights_read(&w, &path, 1, false, NULL, NULL), 0);
    assert_int_equal(w.n, 5);
    assert_int_equal(tmk_weights_scan(&w, results, NULL, NULL, NULL, NULL), 0);
    assert_string_equal(w.all[1].name, "tied");
    assert_int_equal(w.all[1].same_as, 1);
    assert_null(w.all[0].strides);
    assert_string_equal(w.all[2].name, "t");
    assert_non_null(w.all[2].strides);
    assert_int_equal(w.all[2].offset, w.all[0].offset + 4);
    assert_int_equal(w.all[3].type, TMK_WEIGHT_F16);
    assert_int_equal(results[3].n_nan, 1);
    assert_int_equal(results[3].first_nan, 1);
    assert_true(results[3].mean == 1.5 && isnan(results[3].std));
    assert_true(w.all[4].is_extra && w.all[4].is_parameter && !w.all[4].requires_grad);
    assert_int_equal(w.left_out.n, 0);
    tmk_weights_fini(&w);
}

/* NaN and infinity in each place of blocks and their rests, in every build. */
static void test_places(void **state)
{
    static const char *const levels[] = {"plain", "avx2", "avx512"};
    enum { N = 8192 + 61 };
    float *x = malloc(N * sizeof *x);
    struct tmk_scan_result r;
    (void)state;
    assert_non_null(x);
    for (unsigned level = 0; level < 3; level++) {
        setenv("TIDEMARK_SCAN", levels[level], 1);
        for (uint64_t i = 0; i < N; i++)
            x[i] = i % 2 ? 1.0F : -1.0F;
        for (uint64_t at = 0; at < N; at = at < 70 || at > 8180 ? at + 1 : at + 509) {
            float before = x[at];
            x[at] = NAN;
            tmk_scan_memory(TMK_WEIGHT_F32, x, N, &r);
            assert_int_equal(r.n_nan, 1);
            assert_int_equal(r.first_nan, at);
            assert_true(r.min == -1 && r.max == 1 && r.n_inf == 0 && r.first_inf == UINT64_MAX);
            x[at] = -INFINITY;
            tmk_scan_memory(TMK_WEIGHT_F32, x, N, &r);
            assert_int_equal(r.n_inf, 1);
            assert_int_equal(r.first_inf, at);
            x[at] = before;
        }
    }
    unsetenv("TIDEMARK_SCAN");
    free(x);
}

/* ---- a file that is cut while it is looked at ---- */

static void cut(void *arg, uint32_t done, uint32_t total)
{
    (void)done;
    (void)total;
    assert_int_equal(ftruncate(*(const int *)arg, 4096), 0);
}

static void test_cut_meanwhile(void **state)
{
    enum { N_BYTES = 96 << 20 };
    struct place p;
    struct tmk_weights w;
    struct tmk_scan_result result;
    struct tmk_error err = {0};
    char header[256];
    const char *path = p.path;
    (void)state;
    place_open(&p);
    uint64_t n = (uint64_t)snprintf(header + 8, sizeof header - 8,
                                    "{\"a\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,"
                                    "%d]}}",
                                    N_BYTES / 4, N_BYTES);
    memcpy(header, &n, 8);
    place_put(&p, header, 8 + n);
    assert_int_equal(ftruncate(p.fd, (off_t)(8 + n + N_BYTES)), 0);
    assert_int_equal(tmk_weights_read(&w, &path, 1, false, NULL, NULL), 0);
    assert_int_equal(tmk_weights_scan(&w, &result, cut, &p.fd, NULL, &err), TMK_EDAMAGED);
    assert_string_equal(err.text, "the file became shorter while it was read");
    tmk_weights_fini(&w);
    close(p.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),         cmocka_unit_test(test_places),
        cmocka_unit_test(test_cut_meanwhile), cmocka_unit_test(test_damaged_safetensors),
        cmocka_unit_test(test_damaged_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
