/* SPDX-License-Identifier: MIT */
/* base/nvml_abi.h - the few types and codes of NVIDIA's NVML that tidemark uses, declared here.
 *
 * They are the library's binary interface, which NVIDIA keeps: a function whose types change gets
 * a new name (_v2, _v3). tests/unit/test_nvml_abi.c pins sizes and offsets. */
#ifndef TMK_BASE_NVML_ABI_H
#define TMK_BASE_NVML_ABI_H

#include <stdint.h>

enum tmk_nvml_code {
    TMK_NVML_OK = 0,
    TMK_NVML_UNINITIALIZED = 1,
    TMK_NVML_INVALID_ARGUMENT = 2,
    TMK_NVML_NOT_SUPPORTED = 3,
    TMK_NVML_NO_PERMISSION = 4,
    TMK_NVML_NOT_FOUND = 6,
    TMK_NVML_INSUFFICIENT_SIZE = 7,
    TMK_NVML_DRIVER_NOT_LOADED = 9,
    TMK_NVML_GPU_IS_LOST = 15,
    TMK_NVML_VERSION_MISMATCH = 18, /* between the library and the kernel's module */
    TMK_NVML_ARGUMENT_VERSION = 25, /* the `version` of a struct is not known */
};

enum tmk_nvml_compute_mode {
    TMK_NVML_MODE_DEFAULT = 0,
    TMK_NVML_MODE_EXCLUSIVE_THREAD = 1, /* of old drivers */
    TMK_NVML_MODE_PROHIBITED = 2,
    TMK_NVML_MODE_EXCLUSIVE_PROCESS = 3,
};

enum { TMK_NVML_SENSOR_GPU = 0 }; /* of the chip, for nvmlDeviceGetTemperature */

enum { TMK_NVML_TEXT_BYTES = 96 }; /* room for a name or an id of any version */

#define TMK_NVML_UNAVAILABLE UINT64_MAX /* bytes of a process that the driver does not tell */
#define TMK_NVML_NO_INSTANCE UINT32_MAX /* instance of a process on a GPU without MIG */
#define TMK_NVML_MEMORY_V2 0x02000028u  /* version 2, 40 bytes */

struct tmk_nvml_device; /* the library's own */

struct tmk_nvml_memory {
    uint64_t total, free, used; /* reserved is in used */
};

struct tmk_nvml_memory_v2 {
    uint32_t version; /* in: TMK_NVML_MEMORY_V2 */
    uint64_t total, reserved, free, used;
};

struct tmk_nvml_utilization { /* percent of the driver's last sampling period */
    uint32_t gpu;             /* in which a kernel ran */
    uint32_t memory;          /* in which memory was read or written */
};

struct tmk_nvml_process { /* of _v2 and _v3 */
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

#endif
