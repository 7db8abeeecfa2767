/* SPDX-License-Identifier: MIT */
/* monitor/selection.c - see selection.h. */
#include "monitor/selection.h"

#include <stdio.h>
#include <string.h>

static bool is_card(const struct tmk_device *device)
{
    return device->kind != TMK_DEVICE_HOST && device->mig != TMK_MIG_PART;
}

/* How many cards come before the device at `index`. */
static unsigned count_cards(const struct tmk_devices *d, unsigned index)
{
    unsigned n = 0;
    for (unsigned i = 0; i < index; i++)
        n += is_card(tmk_devices_get(d, i));
    return n;
}

const char *tmk_device_label(const struct tmk_devices *d, unsigned index, char *buffer)
{
    const struct tmk_device *device = tmk_devices_get(d, index);
    if (device->kind == TMK_DEVICE_HOST && count_cards(d, index) > 0)
        snprintf(buffer, TMK_LABEL_BYTES, "host");
    else if (device->mig == TMK_MIG_PART)
        snprintf(buffer, TMK_LABEL_BYTES, "%u:%u", count_cards(d, device->card) & 0xffff,
                 device->number & 0xffff);
    else
        snprintf(buffer, TMK_LABEL_BYTES, "%u", count_cards(d, index));
    return buffer;
}

/* ---- from names to devices ---- */

static bool is_text(const char *name, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(name, text, n) == 0;
}

static bool is_meant(const struct tmk_devices *d, unsigned index, const char *name, size_t n)
{
    const struct tmk_device *device = tmk_devices_get(d, index);
    char label[TMK_LABEL_BYTES];
    if (is_text(name, n, "all"))
        return is_card(device) || (device->kind == TMK_DEVICE_HOST && count_cards(d, index) == 0);
    return is_text(name, n, tmk_device_label(d, index, label)) ||
           (device->kind == TMK_DEVICE_HOST && is_text(name, n, "host")) ||
           (device->id[0] && is_text(name, n, device->id));
}

static int refuse(const struct tmk_devices *d, const char *name, size_t n, struct tmk_error *err)
{
    char there[160] = "", label[TMK_LABEL_BYTES], absent[64];
    size_t used = 0;
    for (unsigned i = 0; i < tmk_devices_count(d) && used < sizeof there; i++)
        used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", i ? ", " : "",
                                 tmk_device_label(d, i, label));
    snprintf(absent, sizeof absent, "%.*s", (int)n, name);
    return tmk_fail(err, TMK_ENOENT, "there is no device '%s'; there is: %s", absent, there);
}

/* Mark what `name` means. */
static int choose(const struct tmk_devices *d, const char *name, size_t n, bool *chosen,
                  struct tmk_error *err)
{
    bool found = false;
    for (unsigned i = 0; i < tmk_devices_count(d); i++) {
        bool meant = is_meant(d, i, name, n);
        chosen[i] |= meant;
        found |= meant;
    }
    return found ? 0 : refuse(d, name, n, err);
}

int tmk_selection_parse(const struct tmk_devices *d, const char *const *values, unsigned n_values,
                        struct tmk_selection *ret, struct tmk_error *err)
{
    static const char *const everything[] = {"all"};
    bool chosen[TMK_DEVICES_MOST] = {false};
    if (n_values == 0) {
        values = everything;
        n_values = 1;
    }
    for (unsigned i = 0; i < n_values; i++) {
        const char *name = values[i];
        for (;;) {
            size_t n = strcspn(name, ",");
            int rc = choose(d, name, n, chosen, err);
            if (rc < 0)
                return rc;
            if (!name[n])
                break;
            name += n + 1;
        }
    }
    ret->n = 0;
    for (unsigned i = 0; i < tmk_devices_count(d); i++)
        if (chosen[i])
            ret->items[ret->n++] = i;
    return 0;
}
