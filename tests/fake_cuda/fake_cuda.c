/* SPDX-License-Identifier: MIT */
/* fake_cuda.c - a libcuda.so.1 for machines without a card: start and devices.
 *
 * It computes nothing and copies nothing, but its accounts are right: what a program allocates is
 * taken from the cards that $FAKE_CUDA_STATE tells of (fake_machine.h), until they are full, and
 * libnvidia-ml.so.1 beside it lists the process with its bytes. $CUDA_VISIBLE_DEVICES is obeyed.
 *
 * Functions have the driver's names, parameters and codes. Rounding is the real card's, see the
 * numbers in fake_cuda.h. Streams are always done: a synchronisation waits for nothing. */
#include "fake_cuda.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_machine.h"
#include "fake_use.h"

pid_t fake_started_by;
static struct fake_machine machine;         /* as last read */
static unsigned visible[FAKE_MOST_VISIBLE]; /* device: number of the card */
static int n_visible;

/* ---- cards ---- */

static struct tmk_nvml_device *card_of(CUdevice device)
{
    return fake_machine_find(&machine, false, FAKE_EVERYWHERE, visible[device]);
}

bool fake_is_device(CUdevice device)
{
    return device >= 0 && device < n_visible;
}

unsigned fake_card_number(CUdevice device)
{
    return visible[device];
}

CUresult fake_card_take(CUdevice device, uint64_t bytes)
{
    fake_machine_read(&machine);
    const struct tmk_nvml_device *card = card_of(device);
    return card && fake_use_take(card->number, bytes, fake_machine_capacity(&machine, card))
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void fake_card_give_back(CUdevice device, uint64_t bytes)
{
    fake_use_give_back(visible[device], bytes);
}

void fake_card_info(CUdevice device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    fake_machine_read(&machine);
    const struct tmk_nvml_device *card = card_of(device);
    uint64_t total = card ? card->total_bytes - card->reserved_bytes : 0;
    uint64_t used = card ? fake_machine_used(&machine, card) : 0;
    *total_bytes = total;
    *free_bytes = used < total ? total - used : 0;
}

/* The number of the card that a word of $CUDA_VISIBLE_DEVICES means: its number, or how its uuid
 * begins; -1: none. */
static int card_by_word(const char *word)
{
    struct tmk_nvml_device *card;
    for (unsigned i = 0; (card = fake_machine_find(&machine, false, FAKE_EVERYWHERE, i)); i++) {
        char number[12];
        snprintf(number, sizeof number, "%u", i);
        if (strcmp(word, number) == 0 ||
            (isalpha((unsigned char)word[0]) && strncmp(word, card->uuid, strlen(word)) == 0))
            return (int)i;
    }
    return -1;
}

/* As the real one: what follows a word that means no card is not seen. */
static void see_devices(void)
{
    const char *words = getenv("CUDA_VISIBLE_DEVICES");
    n_visible = 0;
    if (!words) {
        while (n_visible < FAKE_MOST_VISIBLE &&
               fake_machine_find(&machine, false, FAKE_EVERYWHERE, (unsigned)n_visible)) {
            visible[n_visible] = (unsigned)n_visible;
            n_visible++;
        }
        return;
    }
    char *copy = strdup(words), *rest = copy, *word;
    while (n_visible < FAKE_MOST_VISIBLE && (word = strsep(&rest, ","))) {
        int card = card_by_word(word);
        if (card < 0)
            break;
        visible[n_visible++] = (unsigned)card;
    }
    free(copy);
}

/* ---- start ---- */

CUresult cuInit(unsigned flags)
{
    FAKE_CALL call = fake_enter();
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_started_by) /* in a child of the process that started it, an error */
        return call.code;
    if (!fake_machine_read(&machine))
        return CUDA_ERROR_NO_DEVICE;
    see_devices();
    if (n_visible == 0)
        return CUDA_ERROR_NO_DEVICE;
    fake_use_reset();
    fake_started_by = getpid();
    fake_end_with_process();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    FAKE_CALL call = fake_enter();
    fake_machine_read(&machine);
    *version = machine.cuda;
    return CUDA_SUCCESS;
}

/* ---- devices ---- */

CUresult cuDeviceGetCount(int *count)
{
    FAKE_CALL call = fake_enter();
    if (!call.code)
        *count = n_visible;
    return call.code;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!fake_is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* A call about a device; *ret_card is the card's. */
static CUresult enter_device(const struct fake_call *call, CUdevice device,
                             const struct tmk_nvml_device **ret_card)
{
    if (call->code)
        return call->code;
    if (!fake_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    fake_machine_read(&machine);
    *ret_card = card_of(device);
    return *ret_card ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    const struct tmk_nvml_device *card;
    CUresult code = enter_device(&call, device, &card);
    if (!code)
        snprintf(name, (size_t)length, "%s", card->name);
    return code;
}

/* The bytes that the text GPU-xxxxxxxx-xxxx-... stands for; what is short is filled with zeroes
 * in front. */
static void uuid_of_text(const char *text, CUuuid *uuid)
{
    char digits[33] = "";
    size_t n = 0;
    for (const char *c = strchr(text, '-') ? strchr(text, '-') : text; *c && n < 32; c++)
        if (isxdigit((unsigned char)*c))
            digits[n++] = *c;
    memmove(digits + 32 - n, digits, n);
    memset(digits, '0', 32 - n);
    for (int i = 0; i < 16; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        uuid->bytes[i] = (char)strtoul(pair, NULL, 16);
    }
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    const struct tmk_nvml_device *card;
    CUresult code = enter_device(&call, device, &card);
    if (!code)
        uuid_of_text(card->uuid, uuid);
    return code;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    const struct tmk_nvml_device *card;
    CUresult code = enter_device(&call, device, &card);
    if (!code)
        snprintf(id, (size_t)length, "0000:%02X:00.0", card->number + 1);
    return code;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    const struct tmk_nvml_device *card;
    CUresult code = enter_device(&call, device, &card);
    if (!code)
        *bytes = card->total_bytes - card->reserved_bytes;
    return code;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    const struct tmk_nvml_device *card;
    CUresult code = enter_device(&call, device, &card);
    if (code)
        return code;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
