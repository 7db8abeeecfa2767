/* SPDX-License-Identifier: MIT */
/* Devices: NVIDIA's by the stand-in of tests/fake_cuda, and what is said when they cannot be had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "device/device.h"
#include "kit/amount.h"
#include "tree_kit.h"

#define MIB (1ull << 20)

static const char module_text[] =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)\n";

struct fixture {
    struct tree tree;
    struct tmk_devices *devices;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    tree_init(&f->tree);
    tree_file(&f->tree, "MemTotal:  1024 kB\nMemFree:  1 kB\nMemAvailable:  256 kB\n",
              "proc/meminfo");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tmk_devices_close(f->devices);
    tree_fini(&f->tree);
    free(f);
    return 0;
}

static const struct tmk_driver *open_with(struct fixture *f, const char *cards)
{
    if (cards)
        tree_cards(&f->tree, cards);
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    return tmk_devices_driver(f->devices, TMK_DEVICE_NVIDIA);
}

static void assert_memory(struct fixture *f, unsigned index, uint64_t total, uint64_t used,
                          uint64_t reserved)
{
    struct tmk_device_memory m;
    assert_int_equal(tmk_devices_memory(f->devices, index, &m, NULL), 0);
    assert_int_equal(m.total_bytes, total);
    assert_int_equal(m.used_bytes, used);
    assert_int_equal(m.reserved_bytes, reserved);
}

/* ---- how many ---- */

static void test_no_card_is_the_host(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(open_with(f, NULL)->state, TMK_DRIVER_ABSENT);
    assert_int_equal(tmk_devices_count(f->devices), 1);
    assert_int_equal(tmk_devices_get(f->devices, 0)->kind, TMK_DEVICE_HOST);
    assert_memory(f, 0, 1024 * 1024, 768 * 1024, TMK_BYTES_UNKNOWN);
}

static void test_one_card(void **state)
{
    struct fixture *f = *state;
    tree_file(&f->tree, module_text, "proc/driver/nvidia/version");
    const struct tmk_driver *driver = open_with(f, "driver 580.95.05\ncuda 13000\n"
                                                   "device 150754820096 NVIDIA H200\n"
                                                   "uuid GPU-1b2c\nreserved 600000000\nmode 3\n"
                                                   "migmode 0\nprocess 41 1000\n");
    assert_int_equal(driver->state, TMK_DRIVER_READY);
    assert_string_equal(driver->module_version, "580.95.05");
    assert_string_equal(driver->library_version, "580.95.05");
    assert_int_equal(driver->cuda_version, 13000);
    assert_int_equal(tmk_devices_count(f->devices), 2);
    const struct tmk_device *card = tmk_devices_get(f->devices, 0);
    assert_int_equal(card->kind, TMK_DEVICE_NVIDIA);
    assert_string_equal(card->name, "NVIDIA H200");
    assert_string_equal(card->id, "GPU-1b2c");
    assert_int_equal(card->compute_mode, TMK_COMPUTE_EXCLUSIVE);
    assert_int_equal(card->mig, TMK_MIG_OFF);
    assert_memory(f, 0, 150754820096, 1000, 600000000);
    tree_cards(&f->tree, "device 150754820096 NVIDIA H200\nreserved 600000000\n"
                         "process 41 2000\nprocess 42 500\n");
    assert_memory(f, 0, 150754820096, 2500, 600000000);
}

static void test_eight_cards(void **state)
{
    struct fixture *f = *state;
    char text[1024] = "", *end = text;
    for (int i = 0; i < 8; i++)
        end += sprintf(end, "device %d NVIDIA A100\nprocess %d %d\n", (i + 1) * 1000, 10 + i, i);
    open_with(f, text);
    assert_int_equal(tmk_devices_count(f->devices), 9);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(tmk_devices_get(f->devices, i)->number, i);
        assert_int_equal(tmk_devices_get(f->devices, i)->mig, TMK_MIG_NONE);
        assert_memory(f, i, (i + 1) * 1000, i, 0);
    }
}

/* Drivers before 510 know the older functions only; reserved is in used then. */
static void test_older_driver(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    tree_cards(&f->tree, "driver 460.91.03\ncuda 11020\ndevice 1000 Tesla K80\nreserved 100\n"
                         "process 7 30\n");
    f->tree.roots.nvml = getenv("FAKE_NVML_460");
    assert_string_equal(open_with(f, NULL)->library_version, "460.91.03");
    assert_memory(f, 0, 1000, 130, TMK_BYTES_UNKNOWN);
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].used_bytes, 30);
}

/* Chips whose memory is the host's. */
static void test_shared_memory(void **state)
{
    struct fixture *f = *state;
    open_with(f, "device 1000 NVIDIA GB10\nprocess 7 30\nfail nvmlDeviceGetMemoryInfo 3\n"
                 "fail nvmlDeviceGetMemoryInfo_v2 3\n");
    assert_memory(f, 0, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN);
}

static void test_parts(void **state)
{
    struct fixture *f = *state;
    open_with(f, "device 5000 A\nmigmode 1\nmig 1000 A MIG 1g\nprocess 7 30\n"
                 "mig 2000 A MIG 2g\nprocess 8 70\ndevice 6000 B\nmigmode 1\n"
                 "mig 3000 B MIG 3g\nuuid MIG-b\n");
    static const struct {
        unsigned number, card;
        enum tmk_mig mig;
        const char *name, *id;
        uint64_t used;
    } wanted[] = {
        {0, 0, TMK_MIG_ON, "A", "GPU-0", 100},
        {0, 0, TMK_MIG_PART, "A MIG 1g", "MIG-0-0", 30},
        {1, 0, TMK_MIG_PART, "A MIG 2g", "MIG-0-1", 70},
        {1, 3, TMK_MIG_ON, "B", "GPU-1", 0},
        {0, 3, TMK_MIG_PART, "B MIG 3g", "MIG-b", 0},
    };
    assert_int_equal(tmk_devices_count(f->devices), 6);
    for (unsigned i = 0; i < 5; i++) {
        const struct tmk_device *d = tmk_devices_get(f->devices, i);
        struct tmk_device_memory m;
        assert_int_equal(d->number, wanted[i].number);
        assert_int_equal(d->card, wanted[i].card);
        assert_int_equal(d->mig, wanted[i].mig);
        assert_string_equal(d->name, wanted[i].name);
        assert_string_equal(d->id, wanted[i].id);
        assert_int_equal(tmk_devices_memory(f->devices, i, &m, NULL), 0);
        assert_int_equal(m.used_bytes, wanted[i].used);
    }
}

/* ---- processes ---- */

static void add_process(struct fixture *f, int pid, const char *name, const char *numbers)
{
    char text[128];
    snprintf(text, sizeof text, "Name:\t%s\nPid:\t%d\nNSpid:\t%s\nThreads:\t1\n", name, pid,
             numbers);
    tree_file(&f->tree, text, "proc/%d/status", pid);
}

/* 900 is ours; 901 lives in a container as 7; 12 is 902's name for itself, 902 is nowhere else; 30
 * is what two processes call themselves, so nobody knows; 31 is not here at all. 900 draws too. */
static void test_processes(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    add_process(f, 900, "python3", "900");
    add_process(f, 901, "train", "901\t7");
    add_process(f, 902, "in nested", "902\t55\t12");
    add_process(f, 903, "a", "903\t30");
    add_process(f, 904, "b", "904\t30");
    open_with(f, "device 100000 A\nprocess 31 5\nprocess 901 2000\nprocess 900 100\n"
                 "graphics 900 150\nprocess 12 -\nprocess 30 4\n");
    static const struct tmk_device_process wanted[] = {
        {30, 0, 4, ""},
        {31, 0, 5, ""},
        {900, 900, 150, "python3"},
        {901, 7, 2000, "train"},
        {902, 12, TMK_BYTES_UNKNOWN, "in nested"},
    };
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 5);
    assert_int_equal(list.n_left_out, 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(list.items[i].pid, wanted[i].pid);
        assert_int_equal(list.items[i].inner_pid, wanted[i].inner_pid);
        assert_int_equal(list.items[i].used_bytes, wanted[i].used_bytes);
        assert_string_equal(list.items[i].name, wanted[i].name);
    }
    assert_int_equal(tmk_devices_processes(f->devices, 1, &list, NULL), 0);
    assert_int_equal(list.n, 0);
}

/* We are in a container and were given the machine's /proc, where we are 70. What the driver calls
 * 7 is the 71 that is in our namespace, not the machine's own 7, nor another container's 72. 8 is
 * in a container within ours or another's, so nobody knows. 900 is a number of an older driver. */
static void test_processes_from_outside(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    tree_file(&f->tree, "Name:\ttidemark\nNSpid:\t70\t3\n", "proc/self/status");
    tree_link(&f->tree, "pid:[1]", "proc/self/ns/pid");
    add_process(f, 7, "kworker", "7");
    add_process(f, 71, "python3", "71\t7");
    tree_link(&f->tree, "pid:[1]", "proc/71/ns/pid");
    add_process(f, 72, "other", "72\t7");
    tree_link(&f->tree, "pid:[2]", "proc/72/ns/pid");
    add_process(f, 73, "a", "73\t8\t1");
    add_process(f, 74, "b", "74\t8\t1");
    add_process(f, 8, "khungtaskd", "8");
    add_process(f, 900, "old", "900\t12");
    open_with(f, "device 100000 A\nprocess 7 1\nprocess 8 2\nprocess 900 3\n");
    static const struct tmk_device_process wanted[] = {
        {8, 0, 2, ""}, {71, 7, 1, "python3"}, {900, 12, 3, "old"}};
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(list.items[i].pid, wanted[i].pid);
        assert_int_equal(list.items[i].inner_pid, wanted[i].inner_pid);
        assert_int_equal(list.items[i].used_bytes, wanted[i].used_bytes);
        assert_string_equal(list.items[i].name, wanted[i].name);
    }
}

static void write_processes(struct fixture *f, int n)
{
    char *text = malloc((size_t)n * 32 + 64), *end = text;
    end += sprintf(end, "device 100000 A\n");
    for (int i = 0; i < n; i++)
        end += sprintf(end, "process %d %d\n", 1000 + i, i % 2 ? i : 0);
    tree_cards(&f->tree, text);
    free(text);
}

static void test_processes_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    write_processes(f, 512);
    open_with(f, NULL);
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 512);
    assert_int_equal(list.n_left_out, 0);
    write_processes(f, 2000); /* more than NVML is given room for at first */
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 512);
    assert_int_equal(list.n_left_out, 2000 - 512);
    for (unsigned i = 0; i < 512; i++) { /* the last of the odd ones */
        assert_int_equal(list.items[i].pid, 1000 + 977 + 2 * i);
        assert_int_equal(list.items[i].used_bytes, 977 + 2 * i);
    }
}

/* Those that draw too are not counted twice, and what is not known has the least right to a place.
 */
static void test_processes_left_out_are_counted_once(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    char *text = malloc(600 * 64 + 64), *end = text;
    end += sprintf(end, "device 100000 A\n");
    for (int i = 0; i < 600; i++)
        end += sprintf(end, "process %d -\ngraphics %d %s\n", 1000 + i, 1000 + i,
                       i == 599 ? "7" : "-");
    open_with(f, text);
    free(text);
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 512);
    assert_int_equal(list.n_left_out, 600 - 512);
    assert_int_equal(list.items[511].pid, 1599);
    assert_int_equal(list.items[511].used_bytes, 7);
    assert_int_equal(list.items[510].used_bytes, TMK_BYTES_UNKNOWN);
}

/* ---- what goes wrong ---- */

static void assert_broken(struct fixture *f, const char *cards, enum tmk_driver_state state,
                          const char *reason)
{
    const struct tmk_driver *driver = open_with(f, cards);
    assert_int_equal(driver->state, state);
    assert_string_equal(driver->reason, reason);
    assert_int_equal(tmk_devices_count(f->devices), 1);
    f->devices = tmk_devices_close(f->devices);
}

static void test_start_fails(void **state)
{
    struct fixture *f = *state;
    const char *not_loaded = "fail nvmlInit_v2 9\n";
    assert_broken(f, not_loaded, TMK_DRIVER_ABSENT, ""); /* a library without a card */
    tree_file(&f->tree, "0x10de\n", "sys/bus/pci/devices/0000:01:00.0/vendor");
    tree_file(&f->tree, "0x030200\n", "sys/bus/pci/devices/0000:01:00.0/class");
    assert_broken(f, not_loaded, TMK_DRIVER_NOT_LOADED,
                  "a GPU is there, but its module is not loaded");
    tree_file(&f->tree, module_text, "proc/driver/nvidia/version");
    assert_broken(f, not_loaded, TMK_DRIVER_HIDDEN,
                  "the module is loaded, but its device files cannot be seen from here");
    assert_broken(f, "fail nvmlInit_v2 4\n", TMK_DRIVER_NO_PERMISSION,
                  "this user may not open /dev/nvidiactl");
    assert_broken(f, "fail nvmlInit_v2 999\n", TMK_DRIVER_FAILED,
                  "NVML does not start: Unknown Error (999)");
    tree_file(&f->tree, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun\n",
              "proc/driver/nvidia/version");
    assert_broken(f, "fail nvmlInit_v2 18\n", TMK_DRIVER_MISMATCH,
                  "the kernel runs module 535.183.01, but the library is of driver 580.95.05");
}

static void test_no_library(void **state)
{
    struct fixture *f = *state;
    tree_file(&f->tree, "0x10de\n", "sys/bus/pci/devices/0000:01:00.1/vendor");
    tree_file(&f->tree, "0x040300\n", "sys/bus/pci/devices/0000:01:00.1/class"); /* its sound */
    assert_broken(f, NULL, TMK_DRIVER_ABSENT, "");
    tree_file(&f->tree, "0x10de\n", "sys/bus/pci/devices/0000:01:00.0/vendor");
    tree_file(&f->tree, "0x030000\n", "sys/bus/pci/devices/0000:01:00.0/class");
    assert_broken(f, NULL, TMK_DRIVER_NOT_LOADED, "a GPU is there, but no driver");
    tree_file(&f->tree, module_text, "proc/driver/nvidia/version");
    assert_broken(f, NULL, TMK_DRIVER_NO_LIBRARY,
                  "the module is loaded, but there is no libnvidia-ml.so.1");
    f->tree.roots.nvml = "libc.so.6";
    assert_broken(f, NULL, TMK_DRIVER_FAILED, "libnvidia-ml.so.1 has no nvmlInit_v2");
}

/* The others are there. A card may be lost when it is listed, or afterwards. */
static void test_lost_card(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_memory m = {.total_bytes = 1};
    struct tmk_device_processes list;
    struct tmk_error err;
    open_with(f, "device 1000 A\nfail nvmlDeviceGetHandleByIndex_v2 15\ndevice 2000 B\n"
                 "process 3 4\n");
    assert_int_equal(tmk_devices_count(f->devices), 3);
    assert_string_equal(tmk_devices_get(f->devices, 0)->reason, "NVML: GPU is lost (15)");
    assert_int_equal(tmk_devices_memory(f->devices, 0, &m, &err), TMK_EIO);
    assert_string_equal(err.text, "NVML: GPU is lost (15)");
    assert_int_equal(m.total_bytes, 1);
    assert_memory(f, 1, 2000, 4, 0);
    tree_cards(&f->tree, "device 1000 A\ndevice 2000 B\nfail nvmlDeviceGetMemoryInfo 15\n"
                         "fail nvmlDeviceGetMemoryInfo_v2 15\n"
                         "fail nvmlDeviceGetComputeRunningProcesses_v3 4\n");
    assert_int_equal(tmk_devices_memory(f->devices, 1, &m, &err), TMK_EIO);
    assert_string_equal(err.text, "NVML, card 1: GPU is lost (15)");
    assert_int_equal(tmk_devices_processes(f->devices, 1, &list, &err), TMK_EIO);
    assert_string_equal(err.text, "NVML, card 1: Insufficient Permissions (4)");
}

static void test_list_is_bounded(void **state)
{
    struct fixture *f = *state;
    char text[64 * 32] = "", *end = text;
    for (int i = 0; i < 64; i++)
        end += sprintf(end, "device %d A\n", i + 1);
    for (int i = 0; i < 64; i++)
        tree_file(&f->tree, "5\n", "sys/class/drm/card%d/device/mem_info_vram_total", i);
    open_with(f, text);
    assert_int_equal(tmk_devices_count(f->devices), TMK_DEVICES_MOST);
    const struct tmk_device *last = tmk_devices_get(f->devices, TMK_DEVICES_MOST - 1);
    assert_int_equal(last->kind, TMK_DEVICE_HOST);
}

/* ---- AMD ---- */

static void write_amd(struct fixture *f)
{
    const struct tree *t = &f->tree;
    tree_link(t, "../../../devices/0000:c1:00.0", "sys/class/drm/card1/device");
    tree_file(t, "1073741824\n", "sys/devices/0000:c1:00.0/mem_info_vram_total");
    tree_file(t, "5242880\n", "sys/devices/0000:c1:00.0/mem_info_vram_used");
    tree_file(t, "0x744c\n", "sys/devices/0000:c1:00.0/device");
    tree_file(t, "AMD Instinct MI300X\n", "sys/devices/0000:c2:00.0/product_name");
    tree_file(t, "2147483648\n", "sys/devices/0000:c2:00.0/mem_info_vram_total");
    tree_link(t, "../../../devices/0000:c2:00.0", "sys/class/drm/card2/device");
    tree_file(t, "", "sys/class/drm/card1-DP-1/status");
    tree_file(t, "0x8086\n", "sys/class/drm/card0/device/vendor"); /* another maker's */
}

static void open_file(struct fixture *f, int pid, int fd, const char *target, const char *text)
{
    tree_link(&f->tree, target, "proc/%d/fd/%d", pid, fd);
    tree_file(&f->tree, text, "proc/%d/fdinfo/%d", pid, fd);
}

static void test_amd(void **state)
{
    struct fixture *f = *state;
    struct tmk_device_processes list;
    struct tmk_error err;
    struct tmk_device_memory m;
    write_amd(f);
    add_process(f, 50, "python3", "50\t9");
    add_process(f, 51, "other", "51\t50"); /* who is 50 in our namespace does not matter */
    tree_file(&f->tree, "Name:\ttidemark\nNSpid:\t70\t3\n", "proc/self/status");
    const char *first = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\n"
                        "drm-pdev:\t0000:c1:00.0\ndrm-memory-vram:\t1024 KiB\n";
    open_file(f, 50, 3, "/dev/dri/renderD128", first);
    open_file(f, 50, 4, "/dev/dri/renderD128", first); /* the same client: once */
    open_file(f, 50, 5, "/dev/dri/card1",
              "drm-driver:\tamdgpu\ndrm-client-id:\t43\ndrm-pdev:\t0000:c1:00.0\n"
              "drm-memory-vram:\t2 MiB\n");
    open_file(f, 50, 6, "/dev/dri/renderD129",
              "drm-driver:\tamdgpu\ndrm-client-id:\t44\ndrm-pdev:\t0000:c2:00.0\n"
              "drm-memory-vram:\t7 KiB\n");
    open_file(f, 51, 3, "/dev/null", first); /* not a card's file */
    open_with(f, NULL);
    assert_int_equal(tmk_devices_driver(f->devices, TMK_DEVICE_AMD)->state, TMK_DRIVER_READY);
    assert_int_equal(tmk_devices_count(f->devices), 3);
    assert_string_equal(tmk_devices_get(f->devices, 0)->name, "AMD 0x744c");
    assert_string_equal(tmk_devices_get(f->devices, 0)->id, "0000:c1:00.0");
    assert_int_equal(tmk_devices_get(f->devices, 0)->number, 1);
    assert_string_equal(tmk_devices_get(f->devices, 1)->name, "AMD Instinct MI300X");
    assert_memory(f, 0, 1024 * MIB, 5 * MIB, TMK_BYTES_UNKNOWN);
    assert_int_equal(tmk_devices_memory(f->devices, 1, &m, &err), TMK_EIO);
    assert_string_equal(err.text, "amdgpu does not tell the memory of card2");
    assert_int_equal(tmk_devices_processes(f->devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].pid, 50);
    assert_int_equal(list.items[0].inner_pid, 9);
    assert_int_equal(list.items[0].used_bytes, 3 * MIB);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- load ---- */

static void assert_load(struct fixture *f, unsigned index, uint32_t busy, uint32_t power,
                        uint32_t limit, uint32_t temperature)
{
    struct tmk_device_load load = {0};
    tmk_devices_load(f->devices, index, &load);
    assert_int_equal(load.busy_percent, busy);
    assert_int_equal(load.power_mw, power);
    assert_int_equal(load.power_limit_mw, limit);
    assert_int_equal(load.temperature_c, temperature);
}

/* Each value may be unknown by itself; zero is a value. */
static void test_load(void **state)
{
    struct fixture *f = *state;
    open_with(f, "device 1000 A\nbusy 97\npower 512300 700000\ntemperature 61\n"
                 "device 1000 B\nbusy 0\npower 0 -\n"
                 "device 1000 C\n"
                 "device 1000 D\nbusy 5\ntemperature 40\nfail nvmlDeviceGetTemperature 999\n"
                 "device 1000 E\nfail nvmlDeviceGetHandleByIndex_v2 15\n");
    assert_load(f, 0, 97, 512300, 700000, 61);
    assert_load(f, 1, 0, 0, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    assert_load(f, 2, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    assert_load(f, 3, 5, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    assert_load(f, 4, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
}

static void test_load_of_an_older_driver(void **state)
{
    struct fixture *f = *state;
    tree_cards(&f->tree, "driver 460.91.03\ndevice 1000 Tesla K80\nbusy 97\npower 90000 150000\n"
                         "temperature 61\n");
    f->tree.roots.nvml = getenv("FAKE_NVML_460");
    open_with(f, NULL);
    assert_load(f, 0, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
}

/* The host's share of processor time is that since it was read before. */
static void test_load_of_the_host(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *stat;
        uint32_t busy;
    } looks[] = {
        {"cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n", TMK_LOAD_UNKNOWN},
        {"cpu  160 0 115 820 5 0 0 0 0 0\n", 75}, /* of 100 ticks, 20 idle and 5 for a disk */
        {"cpu  160 0 115 920 5 0 0 0 0 0\n", 0},  /* a machine at rest: known, and zero */
        {"cpu  160 0 115 920 5 0 0 0 0 0\n", 0},  /* no time has passed: as it was */
        {"cpu  169 0 115 920 5 0 0 0 0 0\n", 0},  /* nor enough */
        {"cpu  170 0 115 920 5 0 0 0 0 0\n", 100},
        {"cpu  160 0\n", TMK_LOAD_UNKNOWN},        /* not this kernel's */
        {"cpu  260 0 115 920 4 0 0 0 0 0\n", 100}, /* iowait fell */
    };
    open_with(f, NULL);
    assert_load(f, 0, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        tree_file(&f->tree, looks[i].stat, "proc/stat");
        assert_load(f, 0, looks[i].busy, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    }
}

static void test_load_of_amd(void **state)
{
    struct fixture *f = *state;
    write_amd(f);
    open_with(f, NULL);
    assert_load(f, 0, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN);
    tree_file(&f->tree, "42\n", "sys/devices/0000:c2:00.0/gpu_busy_percent");
    tree_file(&f->tree, "203000000\n", "sys/devices/0000:c2:00.0/hwmon/hwmon5/power1_average");
    tree_file(&f->tree, "300000000\n", "sys/devices/0000:c2:00.0/hwmon/hwmon5/power1_cap");
    tree_file(&f->tree, "57000\n", "sys/devices/0000:c2:00.0/hwmon/hwmon5/temp1_input");
    assert_load(f, 1, 42, 203000, 300000, 57);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_no_card_is_the_host),
        CASE(test_one_card),
        CASE(test_eight_cards),
        CASE(test_older_driver),
        CASE(test_shared_memory),
        CASE(test_parts),
        CASE(test_processes),
        CASE(test_processes_from_outside),
        CASE(test_processes_are_bounded),
        CASE(test_processes_left_out_are_counted_once),
        CASE(test_start_fails),
        CASE(test_no_library),
        CASE(test_lost_card),
        CASE(test_list_is_bounded),
        CASE(test_amd),
        CASE(test_load),
        CASE(test_load_of_an_older_driver),
        CASE(test_load_of_the_host),
        CASE(test_load_of_amd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
