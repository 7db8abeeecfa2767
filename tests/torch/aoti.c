/* SPDX-License-Identifier: MIT */
/* aoti.c - a function that newer torch has, for torch 1.13, by that one's own.
 *
 * Linked with libtorch_cpu and named like it, so that whoever looks for it in the first
 * library of that name finds this one, and all others in the real one behind it. Only of float32 is
 * the address known; n_asked counts the questions, and is written to AOTI_FILE at the end; while
 * `denies` is not 0 none has an address. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

float *_ZNK2at10TensorBase8data_ptrIfEEPT_v(void **tensor); /* at::TensorBase::data_ptr<float>() */
enum { DTYPE_WORD = 22, FLOAT32 = 6 };

int n_asked, denies;

int32_t aoti_torch_get_data_ptr(void **tensor, void **ret)
{
    if ((uint16_t)((uint64_t *)*tensor)[DTYPE_WORD] != FLOAT32)
        return 1;
    n_asked++;
    *ret = denies ? 0 : _ZNK2at10TensorBase8data_ptrIfEEPT_v(tensor);
    return 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("AOTI_FILE");
    FILE *file = path && n_asked ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d\n", n_asked);
        fclose(file);
    }
}
