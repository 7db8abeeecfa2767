/* SPDX-License-Identifier: MIT */
/* cuda_list.h - the list that a program keeps of what it allocated, to be compared with a
 * recording.
 *
 * Lines of JSON on stdout, in the order of allocation:
 *     {"pid":1,"family":"device","device":0,"address":1024,"size":512,"freed":false}
 * Families are the kinds of the table `segments`, and "async" for what comes from pools. */
#ifndef CUDA_LIST_H
#define CUDA_LIST_H

#include <stdint.h>

enum { LIST_NO_DEVICE = -1 };

/* Safe from any thread. */
void list_add(const char *family, int device, uint64_t address, uint64_t size);
/* The newest of this family and address that lives. */
void list_free(const char *family, uint64_t address);
/* A pool reserves that much now: another size is another line. */
void list_pool(int device, uint64_t address, uint64_t size);
void list_print(void);

/* End the program when a call did not answer what it should. */
#define NEED(call, code) list_need((call), (code), #call, __LINE__)
#define OK(call) NEED(call, 0)
void list_need(int got, int wanted, const char *call, int line);

#endif
