/* SPDX-License-Identifier: MIT */
/* cli/serve/served_node.c - the devices of this machine and the processes that are recorded, as
 * JSON: {"devices": [...], "processes": [...]}. */
#include <stdio.h>

#include "base/error.h"
#include "cli/answers/ps_answer.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/serve/served_run.h"
#include "device/device.h"
#include "kit/amount.h"
#include "kit/tree.h"

static void put_devices(struct tmk_tree *t)
{
    struct tmk_device_roots roots = tmk_device_roots_get();
    struct tmk_devices *devices = NULL;
    struct tmk_error err = {0};
    tmk_tree_list(t, "devices");
    if (tmk_devices_open(&roots, &devices, &err) == 0)
        for (unsigned i = 0; i < tmk_devices_count(devices); i++) {
            struct tmk_device_memory m = {0};
            bool is_known = tmk_devices_memory(devices, i, &m, &err) == 0;
            tmk_tree_object(t, NULL);
            tmk_tree_text(t, "device", tmk_devices_get(devices, i)->name);
            tmk_tree_bytes(t, "used", is_known ? m.used_bytes : TMK_BYTES_UNKNOWN);
            tmk_tree_bytes(t, "total", is_known ? m.total_bytes : TMK_BYTES_UNKNOWN);
            tmk_tree_end(t);
        }
    tmk_tree_end(t);
    tmk_devices_close(devices);
}

void tmk_serve_node(struct tmk_served_body *ret)
{
    struct tmk_ps_answer a = {0};
    struct tmk_tree t;
    *ret = (struct tmk_served_body){.status = 200, .type = "application/json"};
    FILE *out = tmk_xmemstream(&ret->bytes, &ret->n);
    tmk_tree_init_json(&t, out, 0);
    tmk_tree_object(&t, NULL);
    put_devices(&t);
    tmk_tree_list(&t, "processes");
    if (tmk_ps_answer_here(&a) == 0) {
        tmk_ps_answer_sort(&a, TMK_PS_BY_PID);
        for (size_t i = 0; i < a.n_rows; i++)
            tmk_ps_answer_put(&t, &a.rows[i]);
    }
    tmk_ps_answer_fini(&a);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
    if (fclose(out) != 0)
        tmk_die("out of memory");
}
