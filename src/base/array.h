/* SPDX-License-Identifier: MIT */
/* base/array.h - the number of elements of an array, known when it is compiled. */
#ifndef TMK_BASE_ARRAY_H
#define TMK_BASE_ARRAY_H

#define TMK_N(array) (sizeof(array) / sizeof((array)[0]))

#endif
