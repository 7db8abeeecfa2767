/* SPDX-License-Identifier: MIT */
/* monitor/visible.c - see visible.h. */
#include "monitor/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

/* Cards of the kind that programs would use: NVIDIA's where there is one. */
static enum tmk_device_kind kind_of(const struct tmk_devices *d)
{
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (tmk_devices_get(d, i)->kind == TMK_DEVICE_NVIDIA)
            return TMK_DEVICE_NVIDIA;
    return TMK_DEVICE_AMD;
}

static bool is_card(const struct tmk_devices *d, unsigned i, enum tmk_device_kind kind)
{
    return tmk_devices_get(d, i)->kind == kind && tmk_devices_get(d, i)->mig != TMK_MIG_PART;
}

/* What a program sees of a card: itself, or its first part. */
static unsigned seen_of(const struct tmk_devices *d, unsigned card)
{
    for (unsigned i = card + 1; i < tmk_devices_count(d); i++)
        if (tmk_devices_get(d, i)->mig == TMK_MIG_PART && tmk_devices_get(d, i)->card == card)
            return i;
    return card;
}

static void add(struct tmk_selection *s, unsigned index)
{
    if (s->n < TMK_DEVICES_MOST)
        s->items[s->n++] = index;
}

static bool has(const struct tmk_selection *s, unsigned index)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->items[i] == index)
            return true;
    return false;
}

enum found { NONE, ONE, SEVERAL };

/* By the driver's number. */
static enum found find_number(const struct tmk_devices *d, enum tmk_device_kind kind,
                              const char *word, unsigned *ret)
{
    if (!isdigit((unsigned char)*word))
        return NONE; /* -1 too */
    unsigned long number = strtoul(word, NULL, 10), n = 0;
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (is_card(d, i, kind) && n++ == number) {
            *ret = i;
            return ONE;
        }
    return NONE;
}

/* By the beginning of its id; of cards or of parts, as `prefix` says. */
static enum found find_id(const struct tmk_devices *d, const char *prefix, const char *word,
                          size_t n, unsigned *ret)
{
    enum found found = NONE;
    if (n <= strlen(prefix) || strncmp(word, prefix, strlen(prefix)) != 0)
        return NONE;
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (strncmp(tmk_devices_get(d, i)->id, word, n) == 0) {
            found = found == NONE ? ONE : SEVERAL;
            *ret = i;
        }
    return found;
}

static void parse(const struct tmk_devices *d, enum tmk_device_kind kind, const char *text,
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
        enum found found =
            prefix ? find_id(d, prefix, text, n, &index) : find_number(d, kind, text, &index);
        if (found == NONE)
            return;
        if (found == SEVERAL || has(ret, index)) {
            ret->n = 0;
            return;
        }
        add(ret, index);
        text += strcspn(text, ",");
        if (!*text)
            return;
    }
}

const char *tmk_visible_variable(enum tmk_device_kind kind)
{
    bool is_hip = kind == TMK_DEVICE_AMD && getenv("HIP_VISIBLE_DEVICES");
    return is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

void tmk_visible_named(const struct tmk_devices *d, enum tmk_device_kind kind,
                       struct tmk_selection *ret)
{
    const char *text = getenv(tmk_visible_variable(kind));
    ret->n = 0;
    if (text) {
        parse(d, kind, text, ret);
        return;
    }
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (is_card(d, i, kind))
            add(ret, i);
}

void tmk_visible_devices(const struct tmk_devices *d, struct tmk_selection *ret)
{
    tmk_visible_named(d, kind_of(d), ret);
    for (unsigned i = 0; i < ret->n; i++)
        if (tmk_devices_get(d, ret->items[i])->mig != TMK_MIG_PART)
            ret->items[i] = seen_of(d, ret->items[i]);
}
