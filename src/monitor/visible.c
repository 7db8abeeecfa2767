/* SPDX-License-Identifier: MIT */
/* monitor/visible.c - see visible.h. */
#include "monitor/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

/* The kind of GPU that programs would use: NVIDIA if there is one. */
static enum tmk_device_kind visible_kind_of(const struct tmk_devices *d)
{
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (tmk_devices_get(d, i)->kind == TMK_DEVICE_NVIDIA)
            return TMK_DEVICE_NVIDIA;
    return TMK_DEVICE_AMD;
}

static bool is_gpu_of_kind(const struct tmk_devices *d, unsigned i, enum tmk_device_kind kind)
{
    return tmk_devices_get(d, i)->kind == kind && tmk_devices_get(d, i)->mig != TMK_MIG_PART;
}

/* The device that a program sees for a GPU: itself, or its first part. */
static unsigned visible_device_of(const struct tmk_devices *d, unsigned card)
{
    for (unsigned i = card + 1; i < tmk_devices_count(d); i++)
        if (tmk_devices_get(d, i)->mig == TMK_MIG_PART && tmk_devices_get(d, i)->card == card)
            return i;
    return card;
}

static void add_visible(struct tmk_selection *s, unsigned index)
{
    if (s->n < TMK_DEVICES_MOST)
        s->items[s->n++] = index;
}

static bool has_selected(const struct tmk_selection *s, unsigned index)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->items[i] == index)
            return true;
    return false;
}

enum match_count { NONE, ONE, SEVERAL };

/* Find a GPU by the driver's number. */
static enum match_count find_by_number(const struct tmk_devices *d, enum tmk_device_kind kind,
                                       const char *word, unsigned *ret)
{
    if (!isdigit((unsigned char)*word))
        return NONE; /* also -1 */
    unsigned long number = strtoul(word, NULL, 10), n = 0;
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (is_gpu_of_kind(d, i, kind) && n++ == number) {
            *ret = i;
            return ONE;
        }
    return NONE;
}

/* Find a GPU or a part, as `prefix` says, by the beginning of its id. */
static enum match_count find_by_id(const struct tmk_devices *d, const char *prefix,
                                   const char *word, size_t n, unsigned *ret)
{
    enum match_count found = NONE;
    if (n <= strlen(prefix) || strncmp(word, prefix, strlen(prefix)) != 0)
        return NONE;
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (strncmp(tmk_devices_get(d, i)->id, word, n) == 0) {
            found = found == NONE ? ONE : SEVERAL;
            *ret = i;
        }
    return found;
}

static void parse_visible(const struct tmk_devices *d, enum tmk_device_kind kind, const char *text,
                          struct tmk_selection *ret)
{
    text += strspn(text, " ");
    const char *prefix = strncmp(text, "GPU-", 4) == 0   ? "GPU-"
                         : strncmp(text, "MIG-", 4) == 0 ? "MIG-"
                                                         : NULL;
    for (;; text++) {
        unsigned index = 0;
        text += strspn(text, " ");
        size_t n = strcspn(text, ", ");
        enum match_count found =
            prefix ? find_by_id(d, prefix, text, n, &index) : find_by_number(d, kind, text, &index);
        if (found == NONE)
            return;
        if (found == SEVERAL || has_selected(ret, index)) {
            ret->n = 0;
            return;
        }
        add_visible(ret, index);
        text += strcspn(text, ",");
        if (!*text)
            return;
    }
}

static struct tmk_visible_texts own_visible_texts(void)
{
    return (struct tmk_visible_texts){getenv("CUDA_VISIBLE_DEVICES"),
                                      getenv("HIP_VISIBLE_DEVICES")};
}

const char *tmk_visible_variable(enum tmk_device_kind kind)
{
    bool is_hip = kind == TMK_DEVICE_AMD && own_visible_texts().hip;
    return is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

static void list_visible(const struct tmk_devices *d, enum tmk_device_kind kind,
                         const struct tmk_visible_texts *texts, struct tmk_selection *ret)
{
    const char *text = kind == TMK_DEVICE_AMD && texts->hip ? texts->hip : texts->cuda;
    ret->n = 0;
    if (text) {
        parse_visible(d, kind, text, ret);
        return;
    }
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (is_gpu_of_kind(d, i, kind))
            add_visible(ret, i);
}

void tmk_visible_named(const struct tmk_devices *d, enum tmk_device_kind kind,
                       struct tmk_selection *ret)
{
    struct tmk_visible_texts own = own_visible_texts();
    list_visible(d, kind, &own, ret);
}

void tmk_visible_devices(const struct tmk_devices *d, const struct tmk_visible_texts *texts,
                         struct tmk_selection *ret)
{
    struct tmk_visible_texts own = own_visible_texts();
    list_visible(d, visible_kind_of(d), texts ? texts : &own, ret);
    for (unsigned i = 0; i < ret->n; i++)
        if (tmk_devices_get(d, ret->items[i])->mig != TMK_MIG_PART)
            ret->items[i] = visible_device_of(d, ret->items[i]);
}
